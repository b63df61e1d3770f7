"""Weights between Hugging Face's ViT and norma, in the names of the hub and in those of version 5's modules. Errors are
shares of the largest logit; torch runs in float64."""
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import ViTConfig, ViTForImageClassification

from common import close, finish, infer, norma, pictures, scratch, shake

TEXT = "vit:image=64,patch=16,dim=96,depth=3,heads=3,classes=10"


def build(**more):
    return ViTForImageClassification(ViTConfig(image_size=64, patch_size=16, hidden_size=96, num_hidden_layers=3,
                                               num_attention_heads=3, intermediate_size=384, num_labels=10, **more)).eval()


def reference(model, x):
    with torch.no_grad():
        return model.double()(torch.from_numpy(x).double()).logits.numpy()


def names(path):
    return sorted(load_file(path))


with scratch() as folder:
    at = Path(folder)
    x = pictures(5, 3, 64)
    model = shake(build(), 3)
    model.save_pretrained(at / "hub")
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, at / "memory.safetensors")
    want = reference(model, x)
    print("save_pretrained writes", next(n for n in names(at / "hub/model.safetensors") if ".0." in n))
    print("state_dict holds", next(n for n in names(at / "memory.safetensors") if ".0." in n))
    for title, path in (("save_pretrained", at / "hub/model.safetensors"), ("state_dict", at / "memory.safetensors")):
        close(f"Hugging Face's {title} in norma", infer(folder, path, x, "--model", TEXT), want)

    # hub names out: from timm's, ours and version 5's names, with the config that from_pretrained reads
    norma("convert", at / "memory.safetensors", at / "timm.safetensors", "--to", "timm", "--model", TEXT)
    for source in ("memory.safetensors", "timm.safetensors"):
        norma("convert", at / source, f"{folder}/out/", "--to", "huggingface", "--force", "--model", TEXT,
              *(("--norm", "ln:eps=1e-12") if source == "timm.safetensors" else ()))
        again = ViTForImageClassification.from_pretrained(at / "out").eval()
        close(f"{source} to hub names, from_pretrained", reference(again, x), want)
    if names(at / "out/model.safetensors") != names(at / "hub/model.safetensors"):
        if not any("encoder.layer" in n for n in names(at / "out/model.safetensors")):
            raise SystemExit("hub names were not written")
    norma("convert", at / "timm.safetensors", at / "five.safetensors", "--to", "huggingface5")
    again = build()
    again.load_state_dict(load_file(at / "five.safetensors"), strict=True)
    close("version 5's names, load_state_dict", reference(again, x), want)

    # a fresh model of norma's: its eps is 1e-6, and config.json says so
    norma("models", TEXT, "--write", at / "fresh.safetensors", "--seed", 4)
    norma("convert", at / "fresh.safetensors", f"{folder}/fresh/", "--to", "huggingface")
    again = ViTForImageClassification.from_pretrained(at / "fresh").eval()
    close("a model of norma's, from_pretrained", infer(folder, at / "fresh.safetensors", x), reference(again, x))
finish()
