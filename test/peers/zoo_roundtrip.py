"""The public ViT zoo and the hierarchical models, as timm (save_for_hf) and transformers (save_pretrained) write them: norma opens each file
without --model and gives their logits; what `norma convert` writes back in the origin's names loads there with strict=True.
Arguments: names to try instead of all. Weights are random, so that every norm and bias counts; errors are shares of the largest value."""
import shutil
import sys
from pathlib import Path

import numpy as np
import timm
import torch
import transformers as hf
from safetensors.torch import load_file
from timm.models import save_for_hf

from common import close, finish, infer, norma, pictures, scratch, shake

BOUND = 1e-4


def settle(model):
    """Running statistics that are not the first ones."""
    g = torch.Generator().manual_seed(3)
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.copy_(0.1 * torch.randn(b.shape, generator=g))
        if name.endswith("running_var"):
            b.copy_(1 + 0.3 * torch.rand(b.shape, generator=g))
    return model.eval()


def reference(model, x, read):
    with torch.no_grad():
        return read(model(torch.from_numpy(x))).double().numpy()


def check(title, model, folder, naming, image, read=lambda y: y, channels=3, what="logits"):
    x = pictures(2, channels, image)
    want = reference(model, x, read)
    close(f"{title} in norma", infer(folder, folder / "model.safetensors", x, what=what), want, BOUND)
    norma("convert", folder / "model.safetensors", folder / "ours.safetensors", "--to", "norma", "--force")
    close("  through norma's names", infer(folder, folder / "ours.safetensors", x, what=what), want, BOUND)
    norma("convert", folder / "ours.safetensors", folder / "back.safetensors", "--to", naming, "--force")
    origin, back = load_file(folder / "model.safetensors"), load_file(folder / "back.safetensors")
    kept = {k: v for k, v in origin.items() if k not in back}            # tables of indices and the like, which are no weights
    lost = [k for k, v in kept.items() if v.is_floating_point() and not k.endswith(("attn_mask", "mask_token"))]
    if lost:
        print(f"FAILED  {title}: not written back: {lost[:4]}")
    model.load_state_dict({**kept, **back}, strict=True) if naming == "timm" else reload(model, {**kept, **back}, folder)
    close("  and back there", reference(model, x, read) if not lost else want + 1, want, 1e-6)


def reload(model, state, folder):
    """Hugging Face renames on the way in and out: the file is read as a checkpoint."""
    from safetensors.torch import save_file
    again = folder / "again"
    shutil.rmtree(again, ignore_errors=True)
    again.mkdir()
    shutil.copy(folder / "config.json", again)
    save_file(state, again / "model.safetensors", metadata={"format": "pt"})
    loaded, info = type(model).from_pretrained(again, output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"]:
        print(f"FAILED  not loaded strictly: {info}")
        raise SystemExit(1)
    model.load_state_dict(loaded.state_dict(), strict=True)


def from_timm(folder, name, image=None, **options):
    if image:
        options["img_size"] = image
    model = settle(shake(timm.create_model(name, **options), 1))
    save_for_hf(model, folder, model_args=options or None, safe_serialization=True)
    check(name, model, folder, "timm", image or model.pretrained_cfg["input_size"][-1])


def from_hf(folder, title, cls, config, naming, read=lambda y: y.logits, what="logits", **options):
    model = settle(shake(getattr(hf, cls)(getattr(hf, config)(**options)), 2))
    model.save_pretrained(folder)
    check(f"transformers {title}", model, folder, naming, 64, read, what=what)


def tokens(count, length, vocab, end, seed=5):
    """Texts of several lengths that a token ends, as CLIP's tokenizer pads them."""
    ids = np.random.default_rng(seed).integers(3, end, (count, length))
    for i, row in enumerate(ids):
        row[length - 1 - i % (length // 2):] = end
    return ids.astype(np.int32)


def from_both(folder, title, cls, config, naming, **options):
    """Two towers in one file: each gives its outputs, and both are written back."""
    text = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=99, max_position_embeddings=12,
                pad_token_id=1, bos_token_id=2, eos_token_id=98, projection_size=48)
    model = shake(getattr(hf, cls)(getattr(hf, config)(text_config=text, vision_config=SMALL, **options)), 2)
    model.save_pretrained(folder)
    x, ids = pictures(2, 3, 64), tokens(4, 12, 99, 98)
    with torch.no_grad():
        out = model(input_ids=torch.from_numpy(ids).long(), pixel_values=torch.from_numpy(x))
    both, file, images = {}, folder / "model.safetensors", "pooled" if naming.endswith("siglip") else "logits"
    for what, tower, given, want in (("images", images, x, out.image_embeds), ("texts", "logits", ids, out.text_embeds)):
        unit = lambda z: z / np.linalg.norm(z, axis=1, keepdims=True)
        close(f"transformers {title}, {what}", unit(infer(folder, file, given, what=tower)), want, BOUND)
        norma("convert", file, folder / f"{what}.safetensors", "--to", naming, "--force", *(["--texts"] if what == "texts" else []))
        close("  written", unit(infer(folder, folder / f"{what}.safetensors", given, what=tower)), want, BOUND)
        both |= load_file(folder / f"{what}.safetensors")
    kept = {k: v for k, v in load_file(file).items() if k.startswith("logit_")}
    reload(model, {**kept, **both}, folder)


SMALL = dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, image_size=64, patch_size=16)
LABELS = dict(num_labels=7)
STAGES = dict(image_size=64, patch_size=4, depths=[2, 1, 2])
FOUR = dict(image_size=64, depths=[1, 2, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4], mlp_ratios=[2, 2, 2, 2])
CASES = {
    "swin_tiny_patch4_window7_224": lambda f: from_timm(f, "swin_tiny_patch4_window7_224"),
    "swin_s3_tiny_224": lambda f: from_timm(f, "swin_s3_tiny_224"),
    "pvt_v2_b0": lambda f: from_timm(f, "pvt_v2_b0"),
    "pvt_v2_b3": lambda f: from_timm(f, "pvt_v2_b3"),
    "levit_128s": lambda f: from_timm(f, "levit_128s"),
    "levit_384": lambda f: from_timm(f, "levit_384"),
    "deit3_small_patch16_224": lambda f: from_timm(f, "deit3_small_patch16_224"),
    "deit_tiny_distilled_patch16_224": lambda f: from_timm(f, "deit_tiny_distilled_patch16_224"),
    "vit_small_patch14_reg4_dinov2": lambda f: from_timm(f, "vit_small_patch14_reg4_dinov2", 98, num_classes=5),
    "vit_small_patch16_dinov3": lambda f: from_timm(f, "vit_small_patch16_dinov3", num_classes=5),
    "vit_base_patch32_clip_quickgelu_224": lambda f: from_timm(f, "vit_base_patch32_clip_quickgelu_224"),
    "vit_base_patch32_siglip_256": lambda f: from_timm(f, "vit_base_patch32_siglip_256", num_classes=5),
    "vit_base_patch16_siglip_gap_224": lambda f: from_timm(f, "vit_base_patch16_siglip_gap_224", num_classes=5),
    "beit_base_patch16_224": lambda f: from_timm(f, "beit_base_patch16_224"),
    "eva02_tiny_patch14_224": lambda f: from_timm(f, "eva02_tiny_patch14_224", num_classes=5),
    "eva02_tiny_patch14_336": lambda f: from_timm(f, "eva02_tiny_patch14_336"),
    "cait_xxs24_224": lambda f: from_timm(f, "cait_xxs24_224"),
    "vit_medium_patch16_gap_240": lambda f: from_timm(f, "vit_medium_patch16_gap_240"),
    "vit_relpos_small_patch16_224": lambda f: from_timm(f, "vit_relpos_small_patch16_224"),
    "vit_relpos_medium_patch16_rpn_224": lambda f: from_timm(f, "vit_relpos_medium_patch16_rpn_224"),
    "vit_base_patch16_xp_224": lambda f: from_timm(f, "vit_base_patch16_xp_224"),
    "hf ViT": lambda f: from_hf(f, "ViT", "ViTForImageClassification", "ViTConfig", "huggingface", **SMALL, **LABELS),
    "hf DeiT": lambda f: from_hf(f, "DeiT", "DeiTForImageClassificationWithTeacher", "DeiTConfig", "huggingface_deit", **SMALL, **LABELS),
    "hf BEiT": lambda f: from_hf(f, "BEiT", "BeitForImageClassification", "BeitConfig", "huggingface", **SMALL, **LABELS,
                                 use_relative_position_bias=True),
    "hf DINOv2": lambda f: from_hf(f, "DINOv2", "Dinov2ForImageClassification", "Dinov2Config", "huggingface_dinov2", **{
        k: v for k, v in SMALL.items() if k != "intermediate_size"}, **LABELS, mlp_ratio=2),
    "hf DINOv2 SwiGLU": lambda f: from_hf(f, "DINOv2 SwiGLU", "Dinov2ForImageClassification", "Dinov2Config", "huggingface_dinov2_swiglu", **{
        k: v for k, v in SMALL.items() if k != "intermediate_size"}, **LABELS, mlp_ratio=4, use_swiglu_ffn=True),
    "hf DINOv2 registers": lambda f: from_hf(f, "DINOv2 with registers", "Dinov2WithRegistersForImageClassification",
                                             "Dinov2WithRegistersConfig", "huggingface_dinov2_registers", **{
        k: v for k, v in SMALL.items() if k != "intermediate_size"}, **LABELS, mlp_ratio=2, num_register_tokens=4),
    "hf DINOv3": lambda f: from_hf(f, "DINOv3", "DINOv3ViTModel", "DINOv3ViTConfig", "huggingface_dinov3", lambda y: y.pooler_output,
                                   "pooled", **SMALL, num_register_tokens=4),
    "hf DINOv3 gated": lambda f: from_hf(f, "DINOv3 gated", "DINOv3ViTModel", "DINOv3ViTConfig", "huggingface_dinov3",
                                         lambda y: y.pooler_output, "pooled", **SMALL, num_register_tokens=4, use_gated_mlp=True,
                                         hidden_act="silu"),
    "hf LeViT": lambda f: from_hf(f, "LeViT", "LevitForImageClassification", "LevitConfig", "huggingface", image_size=64, **LABELS,
                                  hidden_sizes=[64, 96, 128], num_attention_heads=[2, 3, 4], depths=[2, 2, 2], key_dim=[16, 16, 16]),
    "hf CLIP both": lambda f: from_both(f, "CLIP", "CLIPModel", "CLIPConfig", "huggingface_clip", projection_dim=10),
    "hf SigLIP both": lambda f: from_both(f, "SigLIP", "SiglipModel", "SiglipConfig", "huggingface_siglip"),
    "hf Swin": lambda f: from_hf(f, "Swin", "SwinForImageClassification", "SwinConfig", "huggingface", **STAGES, **LABELS, embed_dim=16,
                                 num_heads=[2, 4, 4], window_size=4, layer_norm_eps=1e-2, hidden_act="relu"),
    "hf Swin model": lambda f: from_hf(f, "Swin alone", "SwinModel", "SwinConfig", "huggingface_base", lambda y: y.pooler_output, "pooled",
                                       **STAGES, embed_dim=16, num_heads=[2, 4, 4], window_size=4),
    "hf PVT": lambda f: from_hf(f, "PVT", "PvtForImageClassification", "PvtConfig", "huggingface", **FOUR, **LABELS, layer_norm_eps=1e-2,
                                hidden_act="quick_gelu"),
    "hf PVT v2": lambda f: from_hf(f, "PVT v2", "PvtV2ForImageClassification", "PvtV2Config", "huggingface", **FOUR, **LABELS,
                                   layer_norm_eps=1e-2, hidden_act="relu"),
    "hf PVT v2 linear": lambda f: from_hf(f, "PVT v2 linear", "PvtV2ForImageClassification", "PvtV2Config", "huggingface", **FOUR, **LABELS,
                                          linear_attention=True),
    "hf ViT model": lambda f: from_hf(f, "ViT alone", "ViTModel", "ViTConfig", "huggingface_base", lambda y: y.pooler_output, "pooled",
                                      **SMALL),
    "hf DeiT one head": lambda f: from_hf(f, "DeiT with one head", "DeiTForImageClassification", "DeiTConfig", "huggingface_deit_plain",
                                          **SMALL, **LABELS),
    "hf BEiT model": lambda f: from_hf(f, "BEiT alone", "BeitModel", "BeitConfig", "huggingface_base", lambda y: y.pooler_output, "pooled",
                                       **SMALL, use_relative_position_bias=True),
    "hf CLIP model": lambda f: from_hf(f, "CLIP's image tower", "CLIPVisionModel", "CLIPVisionConfig", "huggingface_clip_base",
                                       lambda y: y.pooler_output, "pooled", **SMALL),
    "hf SigLIP model": lambda f: from_hf(f, "SigLIP's image tower", "SiglipVisionModel", "SiglipVisionConfig", "huggingface_siglip_base",
                                         lambda y: y.pooler_output, "pooled", **SMALL),
    "hf CLIP": lambda f: from_hf(f, "CLIP", "CLIPVisionModelWithProjection", "CLIPVisionConfig", "huggingface_clip",
                                 lambda y: y.image_embeds, **SMALL, projection_dim=10),
    "hf SigLIP": lambda f: from_hf(f, "SigLIP", "SiglipForImageClassification", "SiglipConfig", "huggingface_siglip",
                                   vision_config={**SMALL, "vision_use_head": False}, **LABELS),
}

chosen = sys.argv[1:] or CASES
for name in chosen:
    with scratch() as folder:
        try:
            CASES[name](Path(folder))
        except (SystemExit, Exception) as e:
            print(f"FAILED  {name}: {str(e)[:500]}")
            import common
            common.failed += 1
finish()
