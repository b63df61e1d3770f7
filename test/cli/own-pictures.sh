#!/bin/bash
# Pictures of one's own: from a folder to a trained model and what is measured of it, with no more than --data.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
export NORMA_DATA=$tmp/data
pictures "$tmp/pics" 12
pics=folder:path=$tmp/pics
small=(--model "vit_nano:image=24,patch=6,dim=16,depth=1,heads=2" --epochs 6 --lr 5e-3)

# nothing but the folder: a split of its own, mean and std measured, mixed sizes resized and cropped
run 0 train --data "$pics" "${small[@]}" --out "$tmp/run"
says "val is 5 of 36 pictures, chosen by their names (10 % on average)"; says "pixels            mean"; says "3 classes"; complains "it is 4 here (--batch)"
grep -q 'chosen by their names' "$tmp/run/env.json" || fail "the record does not say how it was divided"
run 0 train --data "$pics" "${small[@]}" --batch 8 --crop center --crop-share 0.9 --out "$tmp/center" --json; silent
run 0 train --data "$pics" "${small[@]}" --batch 8 --crop random_resized --steps 2 --out "$tmp/random"

# pictures of the wrong size are refused before there is a run
run 1 train --data "$pics" "${small[@]}" --batch 8 --crop none --out "$tmp/none"; complains "differ in size"; complains "--crop auto"; one_line
[ ! -e "$tmp/none" ] || fail "a folder of a run that never began"

# what is no picture is counted, what is broken is named: all of it, before training
echo x >"$tmp/pics/class-0/notes.txt"; echo x >"$tmp/pics/class-1/a.GIF"; echo x >"$tmp/pics/class-1/b.gif"
run 0 data info "$pics"; complains "3 files of '$tmp/pics' left out: .txt, .gif"; one_line
rm "$tmp/pics/class-0/notes.txt" "$tmp/pics/class-1"/[ab].*
: >"$tmp/pics/class-2/empty.png"; head -c 300 "$tmp/pics/class-0/0.tif" >"$tmp/pics/class-0/cut.tif"
run 1 train --data "$pics" "${small[@]}" --out "$tmp/none"; complains "class-2/empty.png': it is empty"; complains "class-0/cut.tif"; complains "2 of 38 pictures"
complains "--data '$tmp/pics:bad=skip'"; [ ! -e "$tmp/none" ] || fail "a folder of a run that never began"
run 0 train --data "$pics,bad=skip" "${small[@]}" --steps 2 --out "$tmp/skipped"; complains "2 pictures of"; says "2 pictures that cannot be read are left out"
rm "$tmp/pics/class-2/empty.png" "$tmp/pics/class-0/cut.tif"

# all that is measured of it takes mean, std, size and classes from the checkpoint
ckpt=$tmp/run/best.safetensors
run 0 eval "$ckpt" --json; json top1 nll; silent
run 0 knn "$ckpt" --k 3; run 0 fewshot "$ckpt" --shots 3; run 0 analyze "$ckpt" --only cost,layers,map --out "$tmp/told"
for k in 0 1 2; do grep -q ">class-$k<" "$tmp/told/map_cls.svg" || fail "the legend of the map lacks class-$k"; done
run 0 probe "$ckpt" --epochs 1 --batch 8; run 0 predict "$ckpt" "$tmp/pics/class-1/0.tif"; says "class-1"
# a folder with some of the classes has the numbers of the model; one that it does not know is named
mkdir -p "$tmp/part/val"; cp -r "$tmp/pics/class-2" "$tmp/part/val/"; mkdir "$tmp/part/train"; cp -r "$tmp/pics/class-2" "$tmp/part/train/"
run 0 eval "$ckpt" --data "folder:path=$tmp/part" --json; some=$out
run 0 predict "$ckpt" "$tmp"/part/val/class-2/*.tif --json
[ "$(grep -c '"top":\[{"class":2' "$tmp/out")" = "$(sed -n 's/.*"top1":\([0-9.]*\).*"samples":\([0-9]*\).*/\1 \2/p' <<<"$some" | awk '{ printf "%.0f", $1 * $2 }')" ] || fail "classes by other numbers: $some"
mv "$tmp/part/train/class-2" "$tmp/part/train/other"; mv "$tmp/part/val/class-2" "$tmp/part/val/other"
run 1 eval "$ckpt" --data "folder:path=$tmp/part"; complains "does not know the class 'other'"; one_line
# classes that do not fit are refused where data meet the model
run 1 train --data "$pics" --model vit_nano:image=24,patch=6,dim=16,depth=1,heads=2,classes=5 --batch 8 --mixup 0.2 --out "$tmp/none"
complains "the model has 5 classes, the data 3"; one_line; [ ! -e "$tmp/none" ] || fail "a folder of a run that never began"

# a study says before it starts what a later stage would stumble over
study() { printf '%s\n' "base: {data: \"$pics\"}" "stages:" "  - train: {model: \"vit_nano:image=24,patch=6,dim=16,depth=1,heads=2\", batch: 8, epochs: 1}" "$@" "grid: {norm: [ln, rms]}" "seeds: 1" "out: $tmp/${into:-study}" >"$tmp/study.yaml"; }
study "  - analyze: {only: \"cost,layers\"}" "  - eval: {}"
run 0 study "$tmp/study.yaml" --dry-run; says "2 arms x 1 seeds = 2 runs"
run 0 study "$tmp/study.yaml"; [ -s "$tmp/study/ln/seed-0/analyze.json" ] || fail "no analysis"
into=planned
study "  - analyze: {only: cost}" "  - eval: {data: \"folder:path=$tmp/nosuch\"}"
run 1 study "$tmp/study.yaml" --dry-run; complains "stage 'eval'"; complains "nosuch"; one_line
study "  - analyze: {only: coast}"; run 2 study "$tmp/study.yaml" --dry-run; complains "stage 'analyze'"; complains "coast"; one_line
study "  - eval: {data: \"folder:path=$tmp/part\"}"; run 1 study "$tmp/study.yaml" --dry-run; complains "the model has 3 classes, the data 1"; one_line
study "  - eval: {split: test}"; run 1 study "$tmp/study.yaml" --dry-run; complains "there is no split test"; one_line

# classes: each by itself, their mean, and weights for those that are rare
run 0 eval "$ckpt"; says "macro-F1"; says "precision"; says "class-2"
run 0 eval "$ckpt" --json; json macro_f1 classes; says '"name":"class-0","samples":'
# the best weights' scores are recorded with the run, the same as those of eval, and shown in its report
recorded=$(sed 's/.*"classes":\(.*\),"confusion.*/\1/' "$tmp/run/classes.json")
run 0 eval "$ckpt" --json --confusion; says "${recorded:0:30}"; says "$(sed 's/.*"confusion":\([^}]*\)}/\1/' "$tmp/run/classes.json")"
run 0 report "$tmp/run" -o "$tmp/run.html"; grep -q "Confusion: " "$tmp/run.html" || fail "no confusion matrix in the report"
grep -q "macro-F1" "$tmp/run.html" || fail "no macro-F1 in the report"
mkdir "$tmp/rare"; cp -r "$tmp/pics/class-0" "$tmp/pics/class-1" "$tmp/rare/"; rm "$tmp"/rare/class-1/[4-9].tif
for weights in none balanced; do
	run 0 train --data "$tmp/rare/" "${small[@]}" --batch 8 --steps 2 --class-weights $weights --out "$tmp/$weights" --json; losses="${losses:-} $(grep -o '"train_loss":[0-9.]*' "$tmp/out")"
done
[ "$(tr ' ' '\n' <<<"$losses" | sort -u | grep -c .)" = 2 ] || fail "weights change nothing: $losses"
run 1 train --data "$tmp/rare/" "${small[@]}" --batch 8 --loss sigmoid --class-weights balanced --out "$tmp/none2"; complains "sigmoid loss"; one_line

# a run that goes on keeps its settings: others are refused, but it may become longer
run 2 train --resume "$tmp/random" --lr 1; complains "its lr is '0.005', not '1'"; complains "--init $tmp/random/last.safetensors"; one_line
run 0 train --resume "$tmp/random" --steps 4; says "extended          at step 2 of 2"

# weights of others: what they look like, at another size; what is no safetensors file at all
run 0 finetune "$ckpt" --data "$pics" --image 36 --batch 8 --steps 1 --out "$tmp/larger"; says "image=36"
printf 'PK\3\4 and so on' >"$tmp/pytorch_model.bin"; run 1 eval "$tmp/pytorch_model.bin"; complains "PyTorch pickle"; complains "save_file"; one_line
run 0 convert "$ckpt" "$tmp/bn.safetensors" --norm bn; run 0 eval "$tmp/bn.safetensors" --data "$pics"; complains "--stats recompute"
run 0 eval "$tmp/bn.safetensors" --data "$pics" --stats recompute --batch 8; silent

# values that are not finite never look like a result: the tensor is named
start=$((9 + $(od -An -t u8 -N8 "$ckpt")))
{ head -c $((start - 1)) "$ckpt"; head -c $(($(stat -c %s "$ckpt") - start + 1)) /dev/zero | tr '\0' '\377'; } >"$tmp/nan.safetensors"
for command in "eval --json" "knn" "probe --epochs 1 --batch 8" "fewshot --shots 2" "analyze --only layers"; do
	# shellcheck disable=SC2086 # words on purpose
	run 3 $command "$tmp/nan.safetensors"; complains "not finite"; complains "tensor '"; one_line
done
exit "$failed"
