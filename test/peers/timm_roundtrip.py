"""Weights between timm and norma: what timm writes loads here and gives its logits; what `norma convert --to timm` writes
loads there, strictly, and gives ours. Errors are shares of the largest value; torch runs in float64."""
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file, save_file

from common import close, finish, infer, norma, pictures, scratch, shake


def reference(model, x):
    with torch.no_grad():
        return model.double()(torch.from_numpy(x).double()).numpy()


def from_timm(folder, name, ours, options, n=3):
    model = shake(timm.create_model(name, **options), 1)
    path = Path(folder) / "timm.safetensors"
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, path)
    size, channels = model.patch_embed.img_size[0], options.get("in_chans", 3)
    x = pictures(n, channels, size)
    want = reference(model, x)
    close(f"timm {name} {options or ''} in norma", infer(folder, path, x, "--model", ours), want)
    # and back: our names, then timm's again
    norma("convert", path, Path(folder) / "ours.safetensors", "--to", "norma", "--model", ours, "--force")
    close("  through norma's names", infer(folder, Path(folder) / "ours.safetensors", x), want)
    norma("convert", Path(folder) / "ours.safetensors", Path(folder) / "back.safetensors", "--to", "timm", "--force")
    again = timm.create_model(name, **options).eval()
    again.load_state_dict(load_file(Path(folder) / "back.safetensors"), strict=True)
    close("  and back in timm", reference(again, x), want, 0)
    return model


def resized(folder):
    """--image: the same positions as timm's own resampling."""
    model = shake(timm.create_model("vit_tiny_patch16_224", num_classes=7), 2)
    path = Path(folder) / "small.safetensors"
    save_file(model.state_dict(), path)
    norma("convert", path, Path(folder) / "large.safetensors", "--to", "timm", "--model", "vit_tiny_patch16_224:classes=7",
          "--image", 288, "--force")
    large = timm.create_model("vit_tiny_patch16_224", num_classes=7, img_size=288).eval()
    large.load_state_dict(load_file(Path(folder) / "large.safetensors"), strict=True)
    theirs = timm.create_model("vit_tiny_patch16_224", num_classes=7).eval()
    theirs.load_state_dict(model.state_dict())
    theirs.set_input_size(img_size=288)
    x = pictures(2, 3, 288)
    want = reference(theirs, x)
    close("224 to 288 px, weights resized by norma, run by timm", reference(large, x), want)
    close("224 to 288 px, run by norma", infer(folder, Path(folder) / "large.safetensors", x), want)


def ours_in_timm(folder):
    """An untrained model of ours, also through the folder that timm reads as local-dir."""
    text = "vit:image=32,channels=1,patch=4,dim=96,depth=3,heads=3,classes=10"
    norma("models", text, "--write", Path(folder) / "fresh.safetensors", "--seed", 5)
    norma("convert", Path(folder) / "fresh.safetensors", f"{folder}/dir/", "--to", "timm")
    model = timm.create_model(f"local-dir:{folder}/dir", pretrained=True).eval()
    x = pictures(4, 1, 32)
    close("a model of norma's in timm (local-dir)", infer(folder, Path(folder) / "fresh.safetensors", x), reference(model, x))


def dual_patch_norm(folder):
    """Dual PatchNorm: timm has a norm behind the embedding; the one before it is added here, over (row, column, channel)."""
    text = "vit:image=32,patch=8,dim=64,depth=2,heads=2,classes=10"
    norma("models", text, "--patch-norm", "dual", "--write", Path(folder) / "dpn.safetensors", "--seed", 6)
    weights = load_file(Path(folder) / "dpn.safetensors")
    g = torch.Generator().manual_seed(7)
    for name in ("patch.in", "patch.out"):  # fresh norms are ones and zeros: an order of pixels would not show
        for part in ("weight", "bias"):
            t = weights[f"{name}.{part}"]
            weights[f"{name}.{part}"] = t + 0.3 * torch.randn(t.shape, generator=g)
    save_file(weights, Path(folder) / "shaken.safetensors")
    norma("convert", Path(folder) / "shaken.safetensors", Path(folder) / "dpn-timm.safetensors", "--to", "timm", "--model", text,
          "--file-norm", "patch=dual")
    state = load_file(Path(folder) / "dpn-timm.safetensors")
    pre = {k: state.pop(f"patch_embed.norm_pre.{k}").double() for k in ("weight", "bias")}
    model = timm.models.VisionTransformer(img_size=32, patch_size=8, embed_dim=64, depth=2, num_heads=2, num_classes=10).eval()
    model.patch_embed.norm = torch.nn.LayerNorm(64, eps=1e-6)
    model.load_state_dict(state, strict=True)
    model.double()
    x = pictures(4, 3, 32)
    b, c, p, s = 4, 3, 8, 4
    patches = torch.from_numpy(x).double().reshape(b, c, s, p, s, p).permute(0, 2, 4, 3, 5, 1).reshape(b, s, s, p * p * c)
    patches = torch.nn.functional.layer_norm(patches, (p * p * c,), pre["weight"], pre["bias"], 1e-6)
    image = patches.reshape(b, s, s, p, p, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, 32, 32)
    with torch.no_grad():
        want = model(image).numpy()
    close("Dual PatchNorm, our names", infer(folder, Path(folder) / "shaken.safetensors", x, "--model", text, "--norm", "patch=dual"), want)
    close("Dual PatchNorm, timm's names", infer(folder, Path(folder) / "dpn-timm.safetensors", x), want)


with scratch() as folder:
    from_timm(folder, "vit_tiny_patch16_224", "vit_tiny_patch16_224", {})
    from_timm(folder, "vit_tiny_patch16_224", "vit_tiny_patch16_224:classes=5,channels=1,image=64",
              dict(num_classes=5, in_chans=1, img_size=64))
    from_timm(folder, "vit_small_patch32_224", "vit_small_patch32_224:pool=avg", dict(global_pool="avg"))
    from_timm(folder, "deit_tiny_patch16_224", "deit_tiny_patch16_224:qkv_bias=0", dict(qkv_bias=False))
    resized(folder)
    ours_in_timm(folder)
    dual_patch_norm(folder)
finish()
