#!/bin/bash
# --resume with more epochs: a run becomes longer. The schedule is that of the longer run from there on, the settings say since when,
# and repeat it bit for bit; where the schedule does not depend on the length, it is the run that was longer from the start.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up "$tmp/data/mnist" train 100
made_up "$tmp/data/mnist" t10k 30
settings=(--data mnist --data-root "$tmp/data" --model "vit_nano:dim=24,depth=1,heads=3,patch=7,dropout=0.1" --norm "sep(bn,ln)" --batch 16 --ema 0.9)
same() { [ "$(bits "$tmp/$1/model.safetensors")" = "$(bits "$tmp/$2/model.safetensors")" ] || fail "other weights in $1 than in $2"; }

# cosine: 2 epochs, then 4, then 5
run 0 train "${settings[@]}" --epochs 2 --out "$tmp/long"
run 0 train --resume "$tmp/long" --epochs 4
says "extended          at step 12 of 12: learning rate 0.00075, by the schedule of 24 steps"; says "step 24 of 24"
grep -q '^extended: "\?12:12"\?$' "$tmp/long/config.yaml" || fail "the settings do not say since when: $(grep extended "$tmp/long/config.yaml")"
grep -q '"settings": *"changed"' "$tmp/long/events.jsonl" || fail "the record does not say it"
[ "$(cut -d, -f1 "$tmp/long/metrics.csv" | sort -n | tail -1)" = 24 ] || fail "the metrics end elsewhere"
run 0 train --resume "$tmp/long" --steps 30; says "at step 24 of 24"; grep -q '12:12,24:24' "$tmp/long/config.yaml" || fail "it forgot the first time"
run 0 train --resume "$tmp/long" --steps 30; says "done after 30 of 30"          # nothing is left to do
run 0 train "$tmp/long/config.yaml" --out "$tmp/repeated"; same long repeated

# a schedule that does not depend on the length: as if it had been longer from the start
run 0 train "${settings[@]}" --schedule constant --warmup 0 --epochs 2 --out "$tmp/grown"; run 0 train --resume "$tmp/grown" --epochs 4
run 0 train "${settings[@]}" --schedule constant --warmup 0 --epochs 4 --out "$tmp/whole"; same grown whole

# shorter is refused, and so is every other change; a list that makes no sense too
run 2 train --resume "$tmp/long" --epochs 3; complains "cannot resume with fewer steps"; complains "it has 30, not 18"
run 2 train --resume "$tmp/long" --epochs 8 --lr 1; complains "its lr is"
for list in x 12 12: 0:12 13:12 12:12,12:24 12:12x; do
	run 1 train "${settings[@]}" --extended "$list" --out "$tmp/none"; complains "cannot follow '$list'"
done
[ ! -e "$tmp/none" ] || fail "a folder of a run that never began"
exit "$failed"
