"""Every architecture of timm that `norma models --names` lists has as many parameters as timm's own (on the meta device)."""
import json
import sys

import timm
import torch

from common import norma

failed = count = 0
for line in norma("models", "--names", "--json").splitlines():
    row = json.loads(line)
    if row["of"] != "timm":
        continue
    with torch.device("meta"):
        model = timm.create_model(row["name"])
    card = json.loads(norma("models", row["name"], "--json"))
    want = sum(t.numel() for t in model.state_dict().values())
    head = (int(card["settings"]["dim"]) + 1) * int(card["settings"]["classes"]) if model.num_classes == 0 else 0
    count += 1
    if card["params"] - head != want:
        failed += 1
        print(f"FAILED  {row['name']}: {card['params'] - head} parameters, {want} in timm")
print(f"{count} architectures, {failed} differ")
sys.exit(failed != 0)
