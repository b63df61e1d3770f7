"""Settings of timm and transformers that change what the same tensors compute: norma gives their numbers, or refuses the file.
A case that must work says so by `True`. Weights are random; errors are shares of the largest value."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import timm
import torch
import transformers as hf
from safetensors.torch import save_file
from timm.models import save_for_hf
from torchvision.models.swin_transformer import SwinTransformer

from common import NORMA, scratch, shake

BOUND = 1e-4
failed = ran = 0


def compare(title, folder, model, x, read, what, must):
    """Equal numbers, or a refusal in one line."""
    global failed, ran
    with torch.no_grad():
        want = read(model(torch.from_numpy(x))).double().numpy()
    np.save(folder / "x.npy", x)
    done = subprocess.run([NORMA, "infer", folder, "--input", folder / "x.npy", "--output", folder / "y.npy", "--what", what],
                          capture_output=True, text=True)
    ran += 1
    if done.returncode:
        text = done.stderr.strip()
        bad = must or "\n" in text or done.returncode < 0
        print(f"{'FAILED' if bad else 'ok    '}  {title}: refused: {text}")
    else:
        got = np.load(folder / "y.npy")
        error = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
        bad = error > BOUND
        print(f"{'FAILED' if bad else 'ok    '}  {title}: {error:.2e}")
    failed += bad


def picture(size, channels=3):
    h, w = size if isinstance(size, (tuple, list)) else (size, size)
    return np.random.default_rng(0).standard_normal((2, channels, h, w)).astype(np.float32)


def of_timm(name, must, **options):
    with scratch() as folder:
        model = shake(timm.create_model(name, num_classes=5, **options), 1).eval()
        save_for_hf(model, folder, model_args=dict(options, num_classes=5), safe_serialization=True)
        x = picture(options.get("img_size", 64), options.get("in_chans", 3))
        compare(f"{name} {options}", Path(folder), model, x, lambda y: y, "logits", must)


def of_torchvision(window, size):
    with scratch() as folder:
        model = shake(SwinTransformer([4, 4], 16, [2, 2], [2, 4], window, num_classes=5), 1).eval()
        save_file(model.state_dict(), f"{folder}/model.safetensors")
        compare(f"torchvision's Swin {window} {size}", Path(folder), model, picture(size), lambda y: y, "logits", True)


def of_hf(cls, config, must, size=64, read=lambda y: y.logits, what="logits", **options):
    with scratch() as folder:
        model = shake(getattr(hf, cls)(getattr(hf, config)(**options)), 2).eval()
        model.save_pretrained(folder)
        shown = {k: v for k, v in options.items() if k not in TINY and k not in WINDOWS}
        compare(f"{cls} {shown}", Path(folder), model, picture(size), read, what, must)


TINY = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=64, patch_size=16, num_labels=7)
WINDOWS = dict(image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=7)
hf.logging.set_verbosity_error()

vit = dict(depth=2, img_size=64)
for must, more in ((True, {}), (True, dict(act_layer="relu")), (True, dict(num_heads=2)), (True, dict(global_pool="avg")),
                   (True, dict(qk_norm=True)), (True, dict(reg_tokens=2, no_embed_class=True)), (True, dict(pre_norm=True)),
                   (True, dict(fc_norm=False, global_pool="avg")),
                   (False, dict(fc_norm=True)), (True, dict(global_pool="map")), (True, dict(global_pool="map", reg_tokens=2)),
                   (False, dict(global_pool="max")),
                   (False, dict(global_pool="avgmax")), (False, dict(act_layer="mish")), (False, dict(norm_layer="rmsnorm")),
                   (False, dict(final_norm=False)), (False, dict(pos_embed="none")), (False, dict(img_size=(64, 32))),
                   (False, dict(img_size=(32, 128)))):
    of_timm("vit_tiny_patch16_224", must, **{**vit, **more})
of_timm("vit_so150m_patch16_reg4_map_256", True, **vit)
for must, more in ((True, {}), (True, dict(global_pool="token")), (False, dict(rope_temperature=50.)), (False, dict(use_rot_pos_emb=False)),
                   (False, dict(ref_feat_shape=(8, 8))), (False, dict(use_post_norm=True))):
    of_timm("vit_small_patch16_dinov3", must, **{**vit, **more})
for must, more in ((True, {}), (True, dict(num_heads=2)), (False, dict(global_pool="avg"))):
    of_timm("cait_xxs24_224", must, **{**vit, **more})
for must, more in ((True, {}), (True, dict(window_size=4)), (True, dict(depths=(1, 1), num_heads=(2, 4), embed_dim=32)),
                   (True, dict(window_size=(4, 2))), (True, dict(window_size=((4, 2), (2, 4), 4, 2))), (True, dict(img_size=(64, 96))),
                   (True, dict(img_size=(32, 64), window_size=(4, 5))), (False, dict(global_pool="max")),
                   (False, dict(always_partition=True))):
    of_timm("swin_tiny_patch4_window7_224", must, **{**dict(img_size=64), **more})
for window, size in (([4, 4], 32), ([4, 2], 32), ([5, 3], (40, 28)), ([7, 7], 32)):
    of_torchvision(window, size)
for must, more in ((True, {}), (True, dict(act_layer="relu")), (True, dict(key_dim=8)), (False, dict(img_size=(64, 256))),
                   (False, dict(down_op="subsample")), (False, dict(stem_type="s8"))):
    of_timm("levit_128s", must, **{**dict(img_size=64), **more})

for must, more in ((True, {}), (True, dict(hidden_act="relu")), (True, dict(layer_norm_eps=1e-2)), (False, dict(hidden_act="mish"))):
    of_hf("ViTForImageClassification", "ViTConfig", must, **TINY, **more)
of_hf("ViTForImageClassification", "ViTConfig", False, (64, 96), **{**TINY, "image_size": [64, 96]})
of_hf("ViTModel", "ViTConfig", False, read=lambda y: y.pooler_output, what="pooled", **TINY, pooler_act="relu")
for head in (False, True):
    of_hf("SiglipForImageClassification", "SiglipConfig", True, num_labels=7, vision_config=dict(TINY, vision_use_head=head))
of_hf("CLIPForImageClassification", "CLIPConfig", False, num_labels=7, vision_config=TINY)
of_hf("BeitForImageClassification", "BeitConfig", True, **TINY)
of_hf("DINOv3ViTModel", "DINOv3ViTConfig", False, read=lambda y: y.pooler_output, what="pooled", **TINY, use_gated_mlp=True)
for must, size, more in ((True, 64, {}), (True, 64, dict(hidden_act="gelu_new")), (True, 64, dict(layer_norm_eps=1e-2)),
                         (True, (64, 96), {}),
                         (True, (40, 28), {}), (False, 64, dict(use_absolute_embeddings=True)), (False, 64, dict(hidden_act="mish"))):
    of_hf("SwinForImageClassification", "SwinConfig", must, size, **WINDOWS, **more)
of_hf("DonutSwinModel", "DonutSwinConfig", False, read=lambda y: y.pooler_output, what="pooled", **WINDOWS)

print(f"{ran} settings, {failed} failed")
sys.exit(failed != 0)
