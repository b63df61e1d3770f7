"""Weights between Hugging Face's BigBird and Reformer and norma, both ways; logits on padded batches. Reformer's hashing draws numbers of
its own, so that its lsh layers are compared where a chunk holds the whole text; the references in test/golden/longseq have the rest."""
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import (BigBirdConfig, BigBirdForSequenceClassification, ReformerConfig, ReformerForSequenceClassification)

from common import close, finish, infer, norma, scratch, shake

T, LENGTHS = 120, (120, 97, 40, 1)
BIGBIRD = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3,
               max_position_embeddings=160, bos_token_id=1, eos_token_id=2, sep_token_id=3)
REFORMER = dict(vocab_size=97, hidden_size=32, num_attention_heads=4, feed_forward_size=48, num_labels=3, max_position_embeddings=160,
                num_hashes=2, num_buckets=8, is_decoder=False, local_attn_chunk_length=8, lsh_attn_chunk_length=128)


def texts():
    ids = np.random.default_rng(1).integers(4, 97, (len(LENGTHS), T))
    for row, n in zip(ids, LENGTHS):
        row[n:] = 0
    return ids.astype(np.int32)


def logits(model, ids):
    mask = (ids != 0).astype(np.int64)
    with torch.no_grad():
        return model.double()(input_ids=torch.from_numpy(ids).long(), attention_mask=torch.from_numpy(mask)).logits.numpy()


def strict(kind, folder):
    model, said = kind.from_pretrained(folder, output_loading_info=True)
    bad = [k for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if said.get(k)]
    close(f"{folder.name}: from_pretrained misses nothing ({', '.join(bad) or 'nothing'})", np.array([float(not bad)]), [1.0])
    return model.eval()


CASES = [
    ("bigbird", BigBirdForSequenceClassification, BigBirdConfig(block_size=8, num_random_blocks=2, **BIGBIRD)),
    ("bigbird-plain", BigBirdForSequenceClassification, BigBirdConfig(block_size=16, use_bias=False, rescale_embeddings=True,
                                                                      hidden_act="gelu", **BIGBIRD)),
    ("reformer-local", ReformerForSequenceClassification, ReformerConfig(attn_layers=["local"] * 3, attention_head_size=8,
                                                                         axial_pos_embds=False, local_num_chunks_after=1, **REFORMER)),
    ("reformer-lsh", ReformerForSequenceClassification, ReformerConfig(attn_layers=["lsh", "local"], attention_head_size=12,
                                                                       axial_pos_embds=False, hidden_act="gelu", **REFORMER)),
    ("reformer-axial", ReformerForSequenceClassification, ReformerConfig(attn_layers=["local", "lsh"], attention_head_size=8,
                                                                         axial_pos_shape=(8, 20), axial_pos_embds_dim=(8, 24),
                                                                         chunk_size_feed_forward=16, **REFORMER)),
]

with scratch() as folder:
    at, ids = Path(folder), texts()
    for title, kind, config in CASES:
        torch.manual_seed(len(title))
        model = shake(kind(config), 5)
        hub, ours, back = at / title / "hub", at / title / "ours.safetensors", at / title / title
        model.save_pretrained(hub)
        want = logits(model, ids)
        close(f"{title} in norma", infer(folder, hub, ids), want)
        norma("convert", hub, ours, "--to", "norma")
        close(f"{title} under our names", infer(folder, ours, ids), want)
        norma("convert", ours, f"{back}/", "--to", "huggingface")
        a, b = load_file(hub / "model.safetensors"), load_file(back / "model.safetensors")
        lost = [k for k in a if k not in b or not torch.equal(a[k], b[k]) and "bert.pooler" not in k]   # which the classifier does not read
        close(f"{title} there and back, the same tensors ({', '.join(lost) or 'all'})", np.array([float(not lost)]), [1.0])
        close(f"{title}, from_pretrained", logits(strict(kind, back), ids), want)

    for text, kind in (("bigbird:block=8,random=1,hf_eval=1", BigBirdForSequenceClassification),
                       ("reformer:layers=local,axial=8x20,axial_dims=8x24", ReformerForSequenceClassification)):
        name = text.split(":")[0]
        norma("models", f"{text},vocab=97,dim=32,depth=2,heads=4,hidden=48,positions=160,length=120,classes=3", "--write",
              at / f"{name}.safetensors", "--seed", 4)
        norma("convert", at / f"{name}.safetensors", f"{folder}/{name}/", "--to", "huggingface")
        close(f"a {name} of norma's, from_pretrained", infer(folder, at / f"{name}.safetensors", ids), logits(strict(kind, at / name), ids))
finish()
