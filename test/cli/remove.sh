#!/bin/bash
# remove: norms of a trained model go one by one, each step is a run in the folder, and what is left is folded.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc

made_up_mnist 40 10
run 0 train --data mnist --model vit_nano:dim=8,depth=1,heads=1,patch=14 --batch 20 --steps 10 --lr 0.01 --out "$tmp/run"
whole=$tmp/run/model.safetensors
short=(--data mnist --steps 2 --batch 20 --samples 32)

run 0 remove "$whole" "${short[@]}" --out "$tmp/all" --tolerance 100
says "as it is"; says "blocks.0.attn.in"; says "final"; says "3 of 3 norms removed"; says "written  $tmp/all/model.safetensors"; silent
for f in first.json 01-blocks.0.attn.in.safetensors 01-blocks.0.attn.in/model.safetensors 03-final.json fold.json; do
	[ -s "$tmp/all/$f" ] || fail "no '$f' in the folder"
done
run 0 inspect "$tmp/all/model.safetensors" --json; ! grep -q '"blocks.0.attn.in.weight"' <<<"$out" || fail "the norm is still there"
run 0 eval "$tmp/all/model.safetensors" --data mnist --json; says top1

# one site alone, as JSON
run 0 remove "$whole" "${short[@]}" --out "$tmp/one" --sites mlp.in --tolerance 100 --json
json out removed sites loss_before top1_before loss_after top1_after; says '"removed":1,'
# a loss that may not rise at all lets every norm stay, and then there is nothing to fold
run 0 remove "$whole" "${short[@]}" --out "$tmp/none" --sites final --lr 0 --tolerance 0 --steps 1
says "0 of 1 norms removed"; says stays; [ ! -e "$tmp/none/model.safetensors" ] || fail "a model was written"

run 1 remove "$whole" "${short[@]}" --out "$tmp/x" --sites atn; complains "no norm to remove"; complains "matches atn"; one_line
[ ! -e "$tmp/x" ] || fail "a folder was made for nothing"
run 1 remove "$whole" "${short[@]}" --out "$tmp/one"; complains "cannot make the folder"; one_line
run 2 remove; complains "missing option '--data'"; one_line
run 2 remove "${short[@]}" --out "$tmp/x"; complains "one checkpoint"; one_line
exit "$failed"
