"""Masked autoencoders between norma and Hugging Face, decoder and all: what norma writes loads there without a missing or
unexpected tensor and comes back with the same bits; theirs goes through norma and reconstructs the same. (That the same weights give
the same reconstruction in norma is what test/golden/vision/mae_hf.safetensors checks.)"""
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import ViTMAEConfig, ViTMAEForPreTraining

from common import close, finish, norma, pictures, scratch, shake

TEXT = "vit:image=32,patch=8,dim=64,depth=2,heads=4,classes=10"


def build():
    return ViTMAEForPreTraining(ViTMAEConfig(image_size=32, patch_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                             intermediate_size=256, decoder_hidden_size=32, decoder_num_hidden_layers=1,
                                             decoder_num_attention_heads=1, decoder_intermediate_size=128)).eval()


def load(folder):
    model, report = ViTMAEForPreTraining.from_pretrained(folder, output_loading_info=True)
    wrong = [k for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for k in report.get(key, ())]
    if wrong:
        raise SystemExit(f"{folder}: tensors that do not fit: {wrong[:5]}")
    return model.eval()


def reconstruction(model, x):
    noise = torch.rand(len(x), 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model.double()(torch.from_numpy(x).double(), noise=noise).logits.numpy()


def same(title, a, b):
    a, b = load_file(a), load_file(b)
    if sorted(a) != sorted(b) or any(not torch.equal(a[k], b[k]) for k in a):
        raise SystemExit(f"{title}: the tensors differ")
    print(f"{title}: {len(a)} tensors, equal bits")


with scratch() as folder:
    at = Path(folder)
    x = pictures(3, 3, 32)
    model = shake(build(), 3)
    model.save_pretrained(at / "theirs")
    want = reconstruction(model, x)
    norma("convert", at / "theirs/model.safetensors", at / "ours.safetensors", "--to", "norma", "--model", TEXT)
    for names in ("mae", "huggingface"):
        norma("convert", at / "ours.safetensors", at / f"{names}.safetensors", "--to", names)
        norma("convert", at / f"{names}.safetensors", at / f"{names}-back.safetensors", "--to", "norma")
        same(f"through {names} names", at / "ours.safetensors", at / f"{names}-back.safetensors")
    norma("convert", at / "ours.safetensors", f"{folder}/again/", "--to", "huggingface")
    close("Hugging Face's model through norma", reconstruction(load(at / "again"), x), want)
finish()
