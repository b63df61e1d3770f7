#!/bin/bash
# lit: a text tower for a trained image tower, with captions from class names and from files; zeroshot: pictures classified by texts.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
export NORMA_DATA=$tmp/data
pictures "$tmp/pics" 12
store=(--store "$tmp/runs.db")
run 0 train --data "$tmp/pics" --model vit_nano:dim=24,depth=2,heads=3,patch=7 --batch 9 --epochs 12 --lr 3e-3 --warmup 1 "${store[@]}" --out "$tmp/tower"
tower=$tmp/tower/best.safetensors
printf 'a photo of a {}.\n\nthe {} thing\n' >"$tmp/templates.txt"
printf 'high bar\nmiddle bar\nlow bar\n' >"$tmp/names.txt"
made="captions:of=$tmp/pics,names=$tmp/names.txt,templates=$tmp/templates.txt"
small=(--model clip_text_nano:dim=16,depth=1,heads=2,hidden=32 --batch 11)

# captions of class names: the run finds its classes, and zeroshot finds them again, whatever the templates
run 0 lit --data "$made" --tower "$tower" "${small[@]}" --epochs 20 --lr 5e-3 "${store[@]}" --out "$tmp/lit"
says "zero-shot"; says "3 classes of 2 texts each"; says "24 features"
run 0 zeroshot "$tmp/lit" --data "$tmp/pics" --names "$tmp/names.txt" --templates "$tmp/templates.txt" --json; json top1 top5 classes templates samples
awk -v a="$(grep -o '"top1":[0-9.]*' <<<"$out" | cut -d: -f2)" 'BEGIN { exit !(a > 0.6) }' || fail "not above chance: $out"
run 0 zeroshot "$tmp/lit" --data "$tmp/pics" --names "$tmp/names.txt"; says "3 classes of 1 text each"; says "chance 33.33 %"
# the features are kept for the next run, which they do not change; a third of the steps, stopped and resumed, gives the same bits
run 0 lit --data "$made" --tower "$tower" "${small[@]}" --steps 6 "${store[@]}" --out "$tmp/again"; says "kept from an earlier run"
run 0 lit --data "$made" --tower "$tower" "${small[@]}" --steps 6 --no-keep-features "${store[@]}" --out "$tmp/fresh"
[ "$(bits "$tmp/again/last.safetensors")" = "$(bits "$tmp/fresh/last.safetensors")" ] || fail "kept features give other bits"
run 0 lit --data "$made" --tower "$tower" "${small[@]}" --steps 3 "${store[@]}" --out "$tmp/half"
run 0 lit --resume --out "$tmp/half" --steps 6
run 0 lit --data "$made" --tower "$tower" "${small[@]}" --loss sigmoid --steps 6 "${store[@]}" --out "$tmp/sigmoid"; says "sigmoid"

# captions from a file: CSV with other columns, TSV, JSON lines
{ echo "id,file_name,caption"; for ((i = 0; i < 12; i++)); do for k in 0 1 2; do echo "$i,class-$k/$i.tif,\"number $i, bar $k\""; done; done; } >"$tmp/pics/captions.csv"
run 0 lit --data "captions:path=$tmp/pics" --tower "$tower" "${small[@]}" --steps 4 "${store[@]}" --out "$tmp/given"; says "captions of val"; says "recall"
{ printf 'picture\ttext\n'; for k in 0 1 2; do printf 'class-%d/1.tif\tbar %d\n' $k $k; done; } >"$tmp/pics/three.tsv"
run 0 lit --data "captions:path=$tmp/pics/three.tsv,val=0" --tower "$tower" --model clip_text_nano:dim=16,depth=1,heads=2 --batch 3 --steps 1 "${store[@]}" --out "$tmp/tsv"
says "none: no pictures are set apart"
for k in 0 1 2; do printf '{"image": "class-%d/2.tif", "caption": "bar %d"}\n' $k $k; done >"$tmp/pics/three.jsonl"
run 0 lit --data "captions:path=$tmp/pics/three.jsonl,val=0" --tower "$tower" --model clip_text_nano:dim=16,depth=1,heads=2 --batch 3 --steps 1 "${store[@]}" --out "$tmp/json"
# BERT reads its first token
run 0 lit --data "$made" --tower "$tower" --model "bert:dim=16,depth=1,heads=2,hidden=24,positions=32" --batch 11 --steps 2 "${store[@]}" --out "$tmp/bert"
run 0 zeroshot "$tmp/bert" --data "$tmp/pics" --names "$tmp/names.txt"

# what is wrong is named
refuses() { local words=$1; shift; run_fails "$@" --out "$tmp/none"; complains "$words"; one_line; }
run_fails() { local code=0; "$NORMA" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?; out=$(cat "$tmp/out") err=$(cat "$tmp/err") ran="norma $*"; [ $code = 1 ] || [ $code = 2 ] || fail "exit code $code"; }
refuses "no image tower was given" lit --data "$made" "${small[@]}"
refuses "its texts have no pictures" lit --data "text:path=$tmp/names.txt" --tower "$tower" "${small[@]}"
refuses "nothing to contrast with" lit --data "$made" --tower "$tower" --batch 1
refuses "neither path nor of is given" lit --data captions: --tower "$tower"
printf 'no place\n' >"$tmp/bad.txt"
refuses "line 1 has no {} in the place of the name" lit --data "captions:of=$tmp/pics,templates=$tmp/bad.txt" --tower "$tower"
refuses "it has 1 lines, but" lit --data "captions:of=$tmp/pics,names=$tmp/bad.txt" --tower "$tower"
printf 'file_name,caption\nclass-0/99.tif,x\n' >"$tmp/pics/bad.csv"
refuses "line 2 of" lit --data "captions:path=$tmp/pics/bad.csv" --tower "$tower"; complains "1 of 1 pictures are not there"
printf 'a,b\n1,2\n' >"$tmp/pics/bad.csv"
refuses "it has no column of pictures" lit --data "captions:path=$tmp/pics/bad.csv" --tower "$tower"
printf '{"image": "class-0/1.tif"}\n' >"$tmp/pics/bad.jsonl"
refuses "line 1 has no caption" lit --data "captions:path=$tmp/pics/bad.jsonl" --tower "$tower"
run_fails zeroshot "$tower" --data "$tmp/pics"; complains "it has no text tower"; one_line
run_fails zeroshot "$tmp/lit"; complains "zeroshot needs pictures"
run_fails zeroshot "$tmp/lit" --data "$tmp/pics" --names "$tmp/none.txt"; complains "none.txt"; one_line
mv "$tmp/tower" "$tmp/moved"
run_fails zeroshot "$tmp/lit" --data "$tmp/pics"; complains "--tower says where it is"; one_line
run 0 zeroshot "$tmp/lit" --data "$tmp/pics" --names "$tmp/names.txt" --tower "$tmp/moved/best.safetensors"
exit "$failed"
