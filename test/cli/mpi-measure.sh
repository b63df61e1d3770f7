#!/bin/bash
# Ranks share what is measured: eval, knn, probe, fewshot and t-SNE print the same on one process and on two ranks, and so do the evaluations
# in the middle of trainings of every kind; the first rank alone writes and speaks.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
# shellcheck source=test/cli/label_maps.inc
. test/cli/label_maps.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
# shellcheck source=test/cli/ranks.inc
. test/cli/ranks.inc
made_up_mnist 200 70
label_maps "$tmp/own" 10
run 0 data make shapes -o "$tmp/shapes" --size 32 --samples 12:7 --shapes 1:3

# ---- evaluations of trainings
# same NAME FILE ARG...: equal weights, records and files that the evaluation leaves
same() {
	local name=$1 file=$2 k want='' have
	shift 2
	for k in 0 2; do
		rm -rf "$tmp/run"
		on 0 "$k" 1 "$@" --shards 2 --out "$tmp/run"
		have=$(hash "$tmp/run")$(sha256sum <"$tmp/run/$file")
		: "${want:=$have}"
		[ "$have" = "$want" ] || fail "$name: $k ranks give $have, not $want"
	done
}
# shellcheck disable=SC2054 # commas of options
{
	same masks reconstruction.png pretrain --data mnist --model vit_nano:dim=24,depth=2,heads=3,patch=7 --batch 16 --steps 3 --decoder-depth 1 --probe 90 --eval-batch 8
	same maps segmentation.png segment --data "$tmp/own" --model vit:image=16,patch=4,dim=16,depth=1,heads=2 --batch 4 --steps 3
	same objects detections_segm.json detect --data "coco:path=$tmp/shapes" --detector mask_rcnn --anchor 3 --fc 16 --mask-pool 3 --rpn-rows 32 \
		--roi-rows 12 --before 40 --proposals 16 --neck-dim 8 --head-convs 1 --batch 4 --steps 3 --eval-batch 2 \
		--model pvt:image=32,patch=4,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2-2-2-2,sr=2-1-1-1
	sentences 1 60 | awk '{ print (NR % 2 ? "odd" : "even") "\t" $0 }' | { printf 'label\ttext\n'; cat; } >"$tmp/odd.tsv"
	same classes classes.json text --data "labelled:path=$tmp/odd.tsv,val=0.2,test=0.2" --tokenizer "$vocab" --batch 8 --steps 3 --max-length 16 \
		--model bert:dim=16,depth=1,heads=2,hidden=24,positions=24
}

# ---- a text tower: two ranks compute the features of the pictures, which one process then finds
run 0 train --data mnist --model vit_nano:dim=24,depth=2,heads=3,patch=7 --norm "sep(bn,ln)" --batch 16 --steps 12 --lr 3e-3 --out "$tmp/tower"
printf '%s\n' zero one two three four five six seven eight nine >"$tmp/names.txt"
# shellcheck disable=SC2054
lit=(lit --data "captions:of=mnist,names=$tmp/names.txt" --tower "$tmp/tower" --model clip_text_nano:dim=16,depth=1,heads=2,hidden=32 --batch 16 --steps 3)
on 0 2 1 "${lit[@]}" --shards 2 --out "$tmp/lit2"; ! grep -q "kept from" <<<"$out" || fail "features are there before they are made"
on 0 0 1 "${lit[@]}" --shards 2 --out "$tmp/lit1"; says "kept from an earlier run"
on 0 0 1 "${lit[@]}" --shards 2 --no-keep-features --out "$tmp/lit0"
for k in 1 2; do [ "$(hash "$tmp/lit0")" = "$(hash "$tmp/lit$k")" ] || fail "other features on two ranks, or of an earlier run: $k"; done

# ---- commands: the same line, told once
# tells ARG...: on one process and on two ranks, but for times and what was kept on disk
tells() {
	local k want=''
	for k in 0 2; do
		on 0 "$k" 1 "$@"
		[ "$(wc -l <"$tmp/out")" = 1 ] || fail "not one line: $out"
		out=$(sed -E 's/"(seconds|cached|settings|command)": ?[^,]*,?//g' <<<"$out")
		: "${want:=$out}"
		[ "$out" = "$want" ] || fail "not what one process says:
$want
$out"
		! grep -q "norma:.*norma:" <<<"$err" || fail "two speak: $err"
	done
}
tells eval "$tmp/tower" --batch 16 --json
tells eval "$tmp/tower" --batch 16 --stats recompute --stats-batches 3 --json
tells knn "$tmp/tower" --batch 16 --k 5,20 --json
tells fewshot "$tmp/tower" --batch 16 --shots 3 --seeds 2 --json
tells probe "$tmp/tower/model.safetensors" --batch 16 --weight-decay 1e-2,1e-3 --no-keep --layers --json
rm "$tmp/tower/probe.json"
tells probe "$tmp/tower/model.safetensors" --batch 16 --solver lars --epochs 2 --warmup 1 --json        # two ranks take the features that one process kept
[ -s "$tmp/tower/probe.json" ] || fail "nobody wrote probe.json"
mkdir "$tmp/has" "$tmp/lacks"                                           # features that one rank alone finds are computed by both
probe=("$NORMA" --threads 1 probe "$tmp/tower/model.safetensors" --batch 16 --weight-decay 1e-2 --cache kept --json)
(cd "$tmp/has" && "${probe[@]}" >"$tmp/alone" 2>"$tmp/err") || fail "$(cat "$tmp/err")"
ran="probe on two ranks, one of which has the features" code=0
"$MPIRUN" -n 1 -wdir "$tmp/has" "${probe[@]}" : -n 1 -wdir "$tmp/lacks" "${probe[@]}" >"$tmp/both" 2>"$tmp/err" </dev/null || code=$?
[ "$code" = 0 ] || fail "exit code $code: $(cat "$tmp/err")"
! grep -q '"cached": *true' "$tmp/both" || fail "one rank alone takes what it has: $(cat "$tmp/both")"
for k in alone both; do sed -E 's/"(seconds|cached|settings|command)": ?[^,]*,?//g' "$tmp/$k" >"$tmp/$k.same"; done
cmp "$tmp/alone.same" "$tmp/both.same" || fail "other numbers"
tells eval "$tmp/run" --json                # texts
for k in 0 2; do on 0 "$k" 1 analyze "$tmp/tower" --only map --samples 60 --batch 16 --out "$tmp/map$k"; done
cmp "$tmp/map0/map.csv" "$tmp/map2/map.csv" || fail "another map on two ranks"
for k in 0 2; do on 0 "$k" 1 analyze "$tmp/tower" --only map,layers --samples 60 --batch 16 --json; grep -o '"layers.*' <<<"$out" >"$tmp/layers$k"; done
cmp "$tmp/layers0" "$tmp/layers2" || fail "other layers on two ranks"

# ---- rows that several ranks share in a probe: more than one block of 4096
made_up "$tmp/many/mnist" t10k 20
mnist=$tmp/data/mnist/train many=$tmp/many/mnist/train                 # the 200 pictures 45 times
{ printf '\0\0\10\3'; be32 9000; be32 28; be32 28; for ((i = 0; i < 45; i++)); do tail -c +17 "$mnist-images-idx3-ubyte"; done; } >"$many-images-idx3-ubyte"
{ printf '\0\0\10\1'; be32 9000; for ((i = 0; i < 45; i++)); do tail -c +9 "$mnist-labels-idx1-ubyte"; done; } >"$many-labels-idx1-ubyte"
tells probe "$tmp/tower/model.safetensors" --data-root "$tmp/many" --data mnist --batch 500 --weight-decay 1e-2 --features cls --no-keep --json

# ---- what one rank alone meets, what differs
ran="ranks with two commands" code=0
"$MPIRUN" -n 1 "$NORMA" knn "$tmp/tower" --k 5 : -n 1 "$NORMA" knn "$tmp/tower" --k 6 >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
err=$(cat "$tmp/err")
[ "$code" != 0 ] || fail "no error"
complains "another command"
on 1 2 1 knn "$tmp/tower" --data-root "$tmp/nowhere"; complains "nowhere"
# one process in the script of a job with several tasks
SLURM_NTASKS=2 run 0 knn "$tmp/tower" --k 5
exit "$failed"
