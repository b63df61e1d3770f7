#!/bin/bash
# DINO: trains on crops of two sizes, tells a collapse, draws what [CLS] looks at, resumes with the same bits on any number of threads;
# the teacher is what its models are, and it goes to the names of the released code and back; wrong settings say what is wrong.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 160 40
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$1 is not below $2"; }

small=(--local-crops 2 --local-size 14 --prototypes 64 --head-hidden 32 --head-bottleneck 16 --batch 16)
settings=(--data mnist --model "vit_nano:dim=24,depth=2,heads=3,patch=7" "${small[@]}")
run 0 dino "${settings[@]}" --epochs 4 --eval-every 2 --lr 2e-3 --linear 100 --linear-blocks 2 --linear-mean --out "$tmp/run"
says "2 of 28 pixels, 2 of 14"; says "64 prototypes (log is 4.16)"; says "k-NN"; says "linear"
for f in config.yaml metrics.csv last.safetensors best.safetensors model.safetensors attention.png pictures/dino-0000020.png \
	pictures/dino-0000040.png; do
	[ -s "$tmp/run/$f" ] || fail "no $f"
done
cmp -s "$tmp/run/attention.png" "$tmp/run/pictures/dino-0000040.png" || fail "the last picture is not attention.png"
for column in train_spread train_entropy train_kl eval_knn eval_rank eval_uniformity eval_linear; do
	grep -q "$column" <<<"$(head -1 "$tmp/run/metrics.csv")" || fail "no column $column"
done
[ "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_linear") c = i } NR > 1 && $c != ""' "$tmp/run/metrics.csv" | wc -l)" = 1 ] ||
	fail "not one linear head, at the end"
run 0 runs --store "$tmp/runs.db"; says "dino"

# any encoder, any norm; without local crops too
for norm in bn "sep(bn,ln)" dtn; do run 0 dino "${settings[@]}" --norm "$norm" --steps 2 --out "$tmp/$norm" --json; json train_kl eval_knn; done
run 0 dino "${settings[@]}" --head-bn --no-norm-last-layer --steps 2 --out "$tmp/head" --json
run 0 dino --data mnist --model swin:image=28,patch=2,dim=8,depths=1-1,heads=2-2,windows=7,channels=1 "${small[@]}" --steps 2 --out "$tmp/swin" --json
[ ! -e "$tmp/swin/attention.png" ] || fail "a map of a class token that is not there"
run 0 dino "${settings[@]}" --local-crops 0 --steps 2 --out "$tmp/whole-crops"; says "2 of 28 pixels"

# a teacher that is not sharpened becomes uniform, and that is told
run 0 dino "${settings[@]}" --steps 4 --teacher-temp 50 --warmup-teacher-temp 50 --out "$tmp/flat"
complains "collapse: the teacher's outputs are uniform"
grep -q '"event":"warning".*collapse' "$tmp/flat/events.jsonl" || fail "the record does not tell the collapse"

# the same bits when stopped and resumed, on any number of threads, also across the end of the last layer's rest
part=("${settings[@]}" --norm "sep(bn,ln)" --model "vit_nano:dim=24,depth=2,heads=3,patch=7,drop_path=0.2" --steps 24 --checkpoint-steps 5
	--freeze-last-layer 1.2 --out run --json)
resumes dino "${part[@]}"

# the teacher is of use: neighbours as the evaluation saw them; weights to go on with
run 0 knn "$tmp/run/model.safetensors" --k 5 --json; below 0.3 "$(number top1)"
run 0 probe "$tmp/run/best.safetensors" --json
run 0 finetune "$tmp/run/model.safetensors" --data mnist --batch 16 --steps 2 --out "$tmp/fine" --json
run 0 dino "${settings[@]}" --init "$tmp/run/model.safetensors" --steps 2 --out "$tmp/on" --json

# names of the released code, with the head, and back with the same bits
run 0 convert "$tmp/run/model.safetensors" "$tmp/same.safetensors" --to norma
for names in dino dino_teacher dino_student; do
	run 0 convert "$tmp/run/model.safetensors" "$tmp/$names.safetensors" --to $names
	run 0 convert "$tmp/$names.safetensors" "$tmp/$names-back.safetensors" --to norma
	cmp -s "$tmp/same.safetensors" "$tmp/$names-back.safetensors" || fail "other bits through the names of $names"
done
grep -qa teacher.head.last_layer.weight_v "$tmp/dino_teacher.safetensors" || fail "DINO's file has no head"
run 0 convert "$tmp/run/model.safetensors" "$tmp/encoder.safetensors" --to timm --no-decoder
! grep -qa last_layer.weight "$tmp/encoder.safetensors" || fail "the head was not left out"
run 0 knn "$tmp/dino_teacher.safetensors" --k 5 --json

run 1 dino "${settings[@]}" --local-size 6; complains "6 pixels are less than a patch of 7"; complains "--local-size 7"
run 1 dino "${settings[@]}" --local-size 16; complains "not whole patches"
run 1 dino "${settings[@]}" --head-bn --batch 1; complains "one picture"
run 2 dino "${settings[@]}" --ema 0.9; complains "moving average already"
run 2 dino --data mnist --model levit:image=28,channels=1,dims=8-16,depths=1-1,heads=2-2,key=4,stride=2 "${small[@]}"
complains "--local-crops 0"
run 1 dino "${settings[@]}" --local-scale-min 0.5; complains "lower end must come first"
exit $failed
