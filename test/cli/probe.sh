#!/bin/bash
# A linear probe reads the classes from a trained and from a pre-trained encoder, keeps its features, and says what it cannot do.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 320 100
# the first of its kind: that of the chosen setting of the class token
number() { grep -o "\"$1\":[-0-9.e]*" <<<"$out" | sed -n 1p | sed 's/.*://'; }
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }' || fail "$1 is not above $2"; }
# without the time and the command, which differ between equal results
results() { sed 's/"command":"[^"]*",//; s/"seconds":[-0-9.e]*,//; s/"cached":[a-z]*,//; s/"settings":.*//' <<<"$out"; }

model=vit_nano:dim=16,depth=2,heads=2,patch=7
run 0 train --data mnist --model "$model" --norm "sep(bn,ln)" --batch 32 --epochs 4 --lr 3e-3 --out "$tmp/run" --json
ckpt=$tmp/run/model.safetensors

# features are made once; both kinds; the run's folder gets the record
run 0 probe "$ckpt" --threads 1 --json
json command sha256 model norms data solver train held_out samples cls mean top1 top1_interval top5 uniformity effective_rank tried converged
says '"cached":false'; above "$(number top1)" 0.95; first=$(results)
[ -s "$tmp/run/probe.json" ] || fail "no probe.json"
[ "$(head -n 1 "$tmp/run/spectrum.csv")" = "index,cls,mean" ] || fail "spectrum.csv begins with $(head -n 1 "$tmp/run/spectrum.csv")"
[ "$(wc -l <"$tmp/run/spectrum.csv")" = 17 ] || fail "not one line for each of 16 singular values"
run 0 probe "$ckpt" --threads 2 --json; says '"cached":true'; complains "features of train taken from"
[ "$(results)" = "$first" ] || fail "two threads and kept features give another result"
run 0 probe "$ckpt" --threads 2 --no-keep --json; says '"cached":false'
[ "$(results)" = "$first" ] || fail "two threads give another result"
run 0 probe "$ckpt"; says "top-1"; says "held-out"; says "effective rank"; says "converged after"
run 0 probe "$ckpt" --features mean --weight-decay 1e-3 --cache "$tmp/cache" --out "$tmp/told" --json
says '"held_out":0'; says '"mean"'; ls "$tmp"/cache/features-train-*.safetensors >/dev/null || fail "nothing kept"
[ "$(head -n 1 "$tmp/told/spectrum.csv")" = "index,mean" ] || fail "spectrum.csv has more than was asked for"

# the run's folder stands for its weights
run 0 probe "$tmp/run" --json; says "\"file\":\"$tmp/run/model.safetensors\""; says '"cached":true'

# MAE's protocol, four heads in one pass
lars=(--solver lars --epochs 40 --warmup 2 --head-batch 32 --base-lr "30,100" --weight-decay "0,1e-3")
run 0 probe "$ckpt" "${lars[@]}" --threads 1 --json; above "$(number top1)" 0.95; first=$(results)
[ "$(grep -o '"base_lr":[0-9]' <<<"$out" | wc -l)" = 10 ] || fail "not four heads for each kind"
run 0 probe "$ckpt" "${lars[@]}" --threads 2 --json; [ "$(results)" = "$first" ] || fail "two threads give another result"

# augmented pictures: other results than kept features, the same ones on any number of threads
lars=(--solver lars --augment --epochs 3 --warmup 1 --head-batch 32 --base-lr 30 --features mean)
run 0 probe "$ckpt" "${lars[@]}" --threads 1 --json; first=$(results)
run 0 probe "$ckpt" "${lars[@]}" --threads 2 --json; [ "$(results)" = "$first" ] || fail "two threads give another result"
run 0 probe "$ckpt" "${lars[@]}" --no-augment --json; [ "$(results)" != "$first" ] || fail "augmentation changes nothing"
run 2 probe "$ckpt" --augment; complains "--augment is for --solver lars"

# a head that attends to all tokens
run 0 probe "$ckpt" --weight-decay 1e-3 --attentive --batch 32 --attentive-epochs 15 --attentive-lr 1e-2,1e-3 --threads 1 --json
attentive() { grep -o '"attentive":{.*' <<<"$out" | sed 's/,"settings.*//'; }
above "$(attentive | grep -o '"top1":[0-9.]*' | sed -n '1s/.*://p')" 0.9; first=$(attentive)
run 0 probe "$ckpt" --weight-decay 1e-3 --attentive --batch 32 --attentive-epochs 15 --attentive-lr 1e-2,1e-3 --threads 2 --json
[ "$(attentive)" = "$first" ] || fail "two threads give another result"
run 2 probe "$ckpt" --attentive --attentive-lr x; complains "'x' is not a number"

# every block; the report draws it
run 0 probe "$ckpt" --layers --weight-decay 1e-3 --json; says '"layers":[{"block":0,"cls":{"top1":'; says '"block":1'
run 0 probe "$ckpt" --layers --weight-decay 1e-3; says "after block"
run 0 report "$tmp/run" -o "$tmp/run.html"; grep -q "Probe of \[CLS\] by depth" "$tmp/run.html" || fail "the report does not draw probes by depth"
run 0 knn "$ckpt" --k 1,5 --temperature 0.07,1 --json; says '"each":[{"k":1'
[ "$(grep -o '"temperature"' <<<"$out" | wc -l)" = 5 ] || fail "not every k with every temperature"
run 0 knn "$ckpt" --k 1,5; says "temperature"
run 2 knn "$ckpt" --k 1.5; complains "not a whole number"

# a pre-trained encoder has no head, and its decoder is ignored
run 0 pretrain --data mnist --model "$model" --decoder-dim 8 --decoder-depth 1 --decoder-heads 2 --batch 32 --epochs 2 --out "$tmp/mae" --json
for f in last model; do
	run 0 probe "$tmp/mae/$f.safetensors" --json; above "$(number top1)" 0.9
done
run 0 knn "$tmp/mae/model.safetensors" --k 5 --json
run 1 eval "$tmp/mae/model.safetensors"; complains "has no head"; complains "norma probe"

run 2 probe; complains "one checkpoint"; one_line
run 1 probe "$tmp/none.safetensors"; complains "none.safetensors"; one_line
run 2 probe "$ckpt" --weight-decay 1e-3,x; complains "'x' is not a number"
run 2 probe "$ckpt" --split train; complains "fitted to"
run 1 probe "$ckpt" --train-limit 1 --no-keep; complains "too few samples"
run 0 train --data mnist --model "$model,class_token=0,pool=avg" --batch 32 --steps 2 --out "$tmp/avg" --json
run 2 probe "$tmp/avg/model.safetensors" --features cls; complains "no class token"; complains "--features mean"
run 0 probe "$tmp/avg/model.safetensors" --json; says '"mean"'; grep -q '"cls":' <<<"$out" && fail "a class token out of nothing"
exit "$failed"
