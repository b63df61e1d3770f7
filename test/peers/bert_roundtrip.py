"""Weights between Hugging Face's BERT and RoBERTa and norma, with and without heads; outputs on padded batches. Errors are
shares of the largest value; torch runs in float64."""
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel, RobertaConfig,
                          RobertaForMaskedLM, RobertaModel)

from common import close, finish, infer, norma, scratch, shake

SIZES = dict(vocab_size=97, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=80)
BERT = BertConfig(max_position_embeddings=24, **SIZES)
ROBERTA = RobertaConfig(max_position_embeddings=24, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5, **SIZES)
NEW = BertConfig(max_position_embeddings=24, hidden_act="gelu_new", layer_norm_eps=1e-6, **SIZES)
LENGTHS = (11, 4, 7, 1, 11)


def sentences(pad):
    ids = np.random.default_rng(1).integers(3, 97, (len(LENGTHS), max(LENGTHS)))
    for row, n in zip(ids, LENGTHS):
        row[n:] = pad
    return ids.astype(np.int32)


def reference(model, ids, what):
    mask = np.zeros(ids.shape, dtype=np.int64)
    for row, n in zip(mask, LENGTHS):
        row[:n] = 1
    with torch.no_grad():
        y = model.double()(input_ids=torch.from_numpy(ids).long(), attention_mask=torch.from_numpy(mask))
    return getattr(y, what).numpy()


def encoder(model):
    return getattr(model, model.base_model_prefix, model)


def same_files(title, one, two):
    a, b = load_file(one), load_file(two)
    equal = sorted(a) == sorted(b) and all(torch.equal(a[k], b[k]) for k in a)
    close(f"{title} there and back, the same tensors", np.array([float(equal)]), [1.0])


with scratch() as folder:
    at = Path(folder)
    cases = [("BertModel", BertModel, BERT, "huggingface_base"), ("RobertaModel", RobertaModel, ROBERTA, "huggingface_base"),
             ("BertForMaskedLM", BertForMaskedLM, BERT, "huggingface"), ("BertForPreTraining", BertForPreTraining, NEW, "huggingface"),
             ("RobertaForMaskedLM", RobertaForMaskedLM, ROBERTA, "huggingface"),
             ("BertForSequenceClassification", BertForSequenceClassification, BERT, "huggingface")]
    for title, kind, config, names in cases:
        torch.manual_seed(len(title))
        model = shake(kind(config), 5)
        hub, ours, back = at / title / "hub", at / title / "ours.safetensors", at / title / "back"
        model.save_pretrained(hub)
        ids = sentences(config.pad_token_id)
        want = reference(encoder(model), ids, "last_hidden_state")
        close(f"{title} in norma, tokens", infer(folder, hub / "model.safetensors", ids, what="tokens"), want)
        if title.endswith("Classification"):
            close(f"{title} in norma, logits", infer(folder, hub / "model.safetensors", ids), reference(model, ids, "logits"))
        norma("convert", hub / "model.safetensors", ours, "--to", "norma")
        close(f"{title} under our names", infer(folder, ours, ids, what="tokens"), want)
        norma("convert", ours, f"{back}/", "--to", names)
        same_files(title, hub / "model.safetensors", back / "model.safetensors")
        again = kind.from_pretrained(back).eval()
        close(f"{title}, from_pretrained", reference(encoder(again), ids, "last_hidden_state"), want)
        if "LM" in title:
            close(f"{title}, head", reference(again, ids, "logits"), reference(model, ids, "logits"))

    # a fresh model of norma's, in both families
    for family, kind, pad in (("bert", BertModel, 0), ("roberta", RobertaModel, 1)):
        text = f"{family}:vocab=97,dim=48,depth=2,heads=3,hidden=96,positions=24,length=11"
        norma("models", text, "--write", at / f"{family}.safetensors", "--seed", 4)
        norma("convert", at / f"{family}.safetensors", f"{folder}/{family}/", "--to", "huggingface")
        again = kind.from_pretrained(at / family).eval()
        ids = sentences(pad)
        close(f"a {family} of norma's, from_pretrained", infer(folder, at / f"{family}.safetensors", ids, what="tokens"),
              reference(again, ids, "last_hidden_state"))
finish()
