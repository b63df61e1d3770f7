#!/bin/bash
# A pre-training learns to reconstruct, draws pictures, measures collapse, resumes with the same bits, and its encoder can be
# probed and fine-tuned; wrong settings say what is wrong.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 320 100
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$1 is not below $2"; }

settings=(--data mnist --model "vit_nano:dim=32,depth=2,heads=2" --batch 32 --lr 3e-3 --decoder-dim 32 --decoder-depth 1 --decoder-heads 2)
sep="sep(bn,ln) decoder.*=ln"
run 0 pretrain "${settings[@]}" --norm "$sep" --epochs 12 --eval-every 6 --out "$tmp/run"
says "12 of 49 patches are seen"; says "each sees one batch of 32 samples (32 tokens)"; says "uniformity_cls"
for f in config.yaml metrics.csv last.safetensors model.safetensors reconstruction.png pictures/mae-0000060.png pictures/mae-0000120.png; do
	[ -s "$tmp/run/$f" ] || fail "no $f"
done
cmp -s "$tmp/run/reconstruction.png" "$tmp/run/pictures/mae-0000120.png" || fail "the last picture is not reconstruction.png"
for column in train_mae eval_loss eval_uniformity_cls eval_uniformity_tokens eval_rank_cls eval_rank_tokens; do
	grep -q "$column" <<<"$(head -1 "$tmp/run/metrics.csv")" || fail "no column $column"
done
grep -q '"picture"' "$tmp/run/events.jsonl" || fail "the pictures are not in the record"
run 0 runs --store "$tmp/runs.db"; says "pretrain"

# bands are easy: what is masked can be told from the rest
run 0 pretrain "${settings[@]}" --norm "$sep" --no-norm-pix --epochs 30 --out "$tmp/pix" --json
json eval_loss eval_uniformity_cls eval_rank_cls best_loss; below "$(number eval_loss)" 0.75

# a linear probe along the way tells the classes better than chance, and its record names what it read
run 0 pretrain "${settings[@]}" --norm "$sep" --epochs 12 --eval-every 6 --probe 200 --out "$tmp/probed" --json
json eval_probe_cls eval_probe_mean; below 0.5 "$(number eval_probe_mean)"
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_probe_cls") c = i } NR > 1 && $c != ""' "$tmp/probed/metrics.csv" | wc -l)" = 2 ] || fail "not two probes"

# U-MAE, every target and norm; the part of the loss is recorded
for norm in ln bn "$sep" "sep(bn,bn)" "sep(ln,bn)" "sep(ln,ln)" dtn; do
	run 0 pretrain "${settings[@]}" --norm "$norm" --steps 2 --uniform both --lambda 0.1 --out "$tmp/$norm" --json; json train_mae train_unif
done
run 0 pretrain "${settings[@]}" --uniform tokens --in-image --power linear --no-self --steps 2 --out "$tmp/tokens"; says "tokens within their picture"
run 0 pretrain "${settings[@]}" --model vit_nano:dim=32,depth=2,heads=2,class_token=0,pool=avg --steps 2 --out "$tmp/none" --json
! grep -q uniformity_cls <<<"$out" || fail "uniformity of a [CLS] that is not there"

# the same bits when stopped and resumed, on any number of threads
part=("${settings[@]}" --norm "$sep" --uniform cls --steps 24 --ema 0.9 --checkpoint-steps 5 --out run --json)
resumes pretrain "${part[@]}"

# what was learned is of use
run 0 knn "$tmp/run/model.safetensors" --k 5 --json; below 0.5 "$(number top1)"
run 0 finetune "$tmp/run/model.safetensors" --data mnist --batch 32 --epochs 12 --lr 3e-3 --out "$tmp/fine" --json; below 0.9 "$(number eval_top1)"
run 0 train --resume "$tmp/whole/run" --json
run 0 pretrain "$tmp/run/config.yaml" --out "$tmp/again" --steps 2 --json

# the decoder goes along under other names, and comes back with the same bits
run 0 convert "$tmp/run/model.safetensors" "$tmp/same.safetensors" --to norma
for names in mae huggingface; do
	run 0 convert "$tmp/run/model.safetensors" "$tmp/$names.safetensors" --to "$names"
	run 0 convert "$tmp/$names.safetensors" "$tmp/$names-back.safetensors" --to norma
	cmp -s "$tmp/same.safetensors" "$tmp/$names-back.safetensors" || fail "other bits through the names of $names"
done
grep -qa decoder_blocks.0.attn.qkv.weight "$tmp/mae.safetensors" || fail "MAE's file has no decoder"
run 0 convert "$tmp/run/model.safetensors" "$tmp/encoder.safetensors" --to timm --no-decoder
! grep -qa decoder_blocks "$tmp/encoder.safetensors" || fail "the decoder was not left out"

run 2 train "$tmp/run/config.yaml"; complains "norma pretrain"
run 2 pretrain --data mnist --task mea; complains "did you mean 'mae'?"; one_line
run 2 pretrain --data mnist --task classify; complains "norma train"
run 1 pretrain "${settings[@]}" --mask-ratio 0.999 --out "$tmp/x"; complains "leaves none of the 49 patches"
run 2 pretrain "${settings[@]}" --model vit_nano:class_token=0,pool=avg --uniform cls --out "$tmp/x"; complains "class token"
run 2 pretrain "${settings[@]}" --norm "decodr.*=bn" --out "$tmp/x"; complains "no site matches"
run 1 pretrain "${settings[@]}" --split extra --out "$tmp/x"; complains "no split extra"
exit "$failed"
