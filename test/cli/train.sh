#!/bin/bash
# A training learns, and what it leaves behind can be evaluated, fine-tuned and compared; wrong settings say what is wrong.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 320 100
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }' || fail "$1 is not above $2"; }

model=vit_nano:dim=32,depth=2,heads=2,patch=7
run 0 train --data mnist --model "$model" --norm "sep(bn,ln)" --batch 32 --epochs 8 --lr 3e-3 --out "$tmp/run" --json
json out status step steps train_loss eval_top1 best_top1; above "$(number eval_top1)" 0.95
for f in config.yaml env.json metrics.csv events.jsonl last.safetensors best.safetensors model.safetensors; do
	[ -s "$tmp/run/$f" ] || fail "no $f"
done
[ -s "$tmp/runs.db" ] || fail "no run database"
run 1 train --data mnist --model "$model" --out "$tmp/run"; complains "--resume"
# its own record is a recipe, and flags count more
run 0 train "$tmp/run/config.yaml" --out "$tmp/again" --steps 3 --json; [ "$(number steps)" = 3 ] || fail "the flag did not count"
# a record of an earlier version keeps its columns, and its speed is still read
sed -i '1s/samples_per_s/images_per_s/' "$tmp/again/metrics.csv"
run 0 train --resume "$tmp/again"; grep -q images_per_s <<<"$(head -1 "$tmp/again/metrics.csv")" || fail "another name for the rate"
run 0 report "$tmp/again" -o "$tmp/again.html"; grep -q 'Speed' "$tmp/again.html" || fail "the report has no speed"
# blocks in their order, though the file has them by name
run 0 train --data mnist --model "vit_nano:dim=8,depth=11,heads=1,patch=14" --batch 32 --steps 1 --out "$tmp/deep"
run 0 inspect "$tmp/deep/model.safetensors" --filter attn.in.weight; order=$(grep -o 'blocks\.[0-9]*' <<<"$out" | cut -d. -f2 | uniq | tr '\n' ' ')
case "$order" in *"2 3 4 5 6 7 8 9 10 "*) ;; *) fail "not in their order: $order" ;; esac
# off a terminal a line for each evaluation; a short name of its own, and another when that is taken
mkdir "$tmp/here"; home=$PWD
case $NORMA in /*) ;; *) NORMA=$home/$NORMA ;; esac
cd "$tmp/here"
run 0 train --data mnist --model "$model" --norm "sep(bn,ln)" --batch 32 --epochs 2; says "step 10 of 20  loss "; says "step 20 of 20  loss "
[ "$(grep -c '^step .* eval ' <<<"$out")" = 2 ] || fail "not a line for each evaluation: $out"
[ -s runs/mnist-vit_nano-sep_bn,ln-0/model.safetensors ] || fail "another name: $(ls runs)"
run 0 train --data mnist --model "$model" --norm "sep(bn,ln)" --batch 32 --steps 1; [ -d runs/mnist-vit_nano-sep_bn,ln-0-2 ] || fail "another name: $(ls runs)"
cd "$home"
# the header says what batch statistics see
run 0 train --data mnist --model "$model" --norm bn --batch 32 --steps 1 --out "$tmp/bn"; says "5 norms; each sees one batch of 32 samples"

ckpt=$tmp/run/model.safetensors
run 0 eval "$ckpt" --json; json top1 top5 nll ece samples; above "$(number top1)" 0.95; says '"samples":100'
run 0 eval "$ckpt" --stats batch --batch 50 --json; above "$(number top1)" 0.9
run 0 eval "$ckpt" --stats recompute --batch 32 --json; above "$(number top1)" 0.9
run 0 eval "$ckpt" --confusion; says "truth"
run 0 knn "$ckpt" --k 5 --json; above "$(number top1)" 0.95
run 0 fewshot "$ckpt" --shots 5 --json; above "$(number top1)" 0.95
# one shot and two channels are not enough for all of them: three draws differ, and the interval is Student's for two degrees of freedom
run 0 train --data mnist --model vit_nano:dim=5,depth=1,heads=1,patch=14 --batch 32 --steps 1 --out "$tmp/crude"
run 0 fewshot "$tmp/crude/model.safetensors" --shots 1 --seeds 3 --json; json top1_half_width_95
awk -v h="$(number top1_half_width_95)" -v s="$(number std)" 'BEGIN { e = h - 4.30265 * s / sqrt(3); exit !(s > 0 && e < 1e-5 && e > -1e-5) }' ||
	fail "the interval is not 4.30265 s / sqrt 3: $out"
run 0 fewshot "$ckpt" --shots 1; says "95 % interval over 3 draws"
run 0 train --data mnist --model "$model" --batch 32 --epochs 8 --lr 3e-3 --out "$tmp/ln" --json; above "$(number eval_top1)" 0.95
run 0 finetune "$tmp/ln/best.safetensors" --data mnist --image 42 --crop resize --batch 32 --epochs 3 --lr 1e-3 --out "$tmp/fine" --json; above "$(number eval_top1)" 0.95
run 0 train --data mnist --model "$model" --batch 32 --epochs 40 --lr 3e-3 --patience 2 --hold-out 0.2 --out "$tmp/early" --json; says "stopped early"
# what is held out chooses, the official split reports: both are in the record, and best_top1 is the official one at the step chosen
json eval_top1 held_top1 best_top1; [ "$(number eval_samples)" = 100 ] || fail "evaluated on $(number eval_samples) samples, not on the test split"
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 && $c != "" { print $1, $c }' "$tmp/early/metrics.csv"; }
chosen=$(column held_top1 | sort -k2,2gr -k1,1g | awk 'NR == 1 { print $1 }')
[ "$(number best_step)" = "$chosen" ] || fail "step $(number best_step) was chosen, not $chosen"
awk -v a="$(number best_top1)" -v b="$(column eval_top1 | awk -v s="$chosen" '$1 == s { print $2 }')" 'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }' ||
	fail "best_top1 is not the evaluation of step $chosen"
run 0 train --data mnist --model "$model" --batch 32 --steps 10 --hold-out 0.2 --out "$tmp/held"
says "100 for evaluation (test)"; says "64 held out to choose"; says "on held-out samples"
# cut off and resumed, it chooses alike
run 0 train --data mnist --model "$model" --batch 32 --steps 24 --hold-out 0.2 --seed 3 --out "$tmp/whole" --json
whole=$(sed 's/"seconds":[^,]*,//; s/"out":[^,]*,//' <<<"$out")
run 0 train --data mnist --model "$model" --batch 32 --steps 24 --hold-out 0.2 --seed 3 --checkpoint-steps 8 --out "$tmp/part" --json
run 0 train --resume "$tmp/part" --json
[ "$(sed 's/"seconds":[^,]*,//; s/"out":[^,]*,//' <<<"$out")" = "$whole" ] || fail "$out is not $whole"
# without an official split it does both
run 0 train --data mnist --split train --eval-split train --model "$model" --batch 32 --steps 10 --hold-out 0.2 --out "$tmp/alone"; says "64 for evaluation (held out)"

# every recipe is read and its model recorded: without its data it gets as far as looking for them
while read -r recipe; do
	if grep -q '^stages:' "$recipe"; then plans "$recipe" --out "$tmp/none/study"
	else run 1 train "$recipe" --data mnist --data-root "$tmp/none" --out "$tmp/none/run"; complains "mnist"
	fi
done < <(find recipes -name '*.yaml' ! -name published.yaml)

run 2 train; complains "no data set was given"; one_line
run 2 train --data mnits; complains "did you mean 'mnist'?"; one_line
run 2 train --data mnist --model vit_nao; complains "did you mean 'vit_nano'?"
run 2 train --data mnist --model vit_nano:dmi=3; complains "did you mean 'dim'?"
run 2 train --data mnist --norm lm; complains "did you mean"
run 2 train --data mnist --norm "atn.in=ln"; complains "did you mean 'attn.in'?"
run 2 train --data mnist --bacth 3; complains "did you mean '--batch'?"; one_line
run 1 train --data mnist --batch 1000 --out "$tmp/x"; complains "do not fill a step"
run 1 train --data mnist --data-root "$tmp/none"; complains "norma data get mnist"; one_line
printf 'data: mnist\nepoch: 3\n' >"$tmp/wrong.yaml"
run 1 train "$tmp/wrong.yaml"; complains "wrong.yaml:2"; complains "did you mean 'epochs'?"
run 1 train --resume --out "$tmp/none"; complains "config.yaml"
run 1 eval "$tmp/none.safetensors"; complains "none.safetensors"; one_line
head -c 2000 "$ckpt" >"$tmp/cut.safetensors"
run 1 eval "$tmp/cut.safetensors"; complains "cut.safetensors"; one_line
exit "$failed"
