#!/bin/bash
# A study: checked before anything runs, killed at any time and gone on with, nothing run twice, tables with intervals and tests.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 50
export NORMA_DATA=$tmp/data OMP_NUM_THREADS=1
model=vit_nano:dim=16,depth=1,heads=2,patch=7

# study NAME [LINE...]: a study of two arms and two seeds with further lines
study() {
	local name=$1
	shift
	{
		printf '%s\n' "title: a norm of its own" "base: {data: mnist}" "stages:"
		printf '%s\n' "  - train: {model: \"$model\", batch: 16, epochs: 2, lr: 3e-3}" "  - knn: {k: 5}"
		printf '%s\n' "grid: {norm: [ln, \"sep(bn,ln)\"]}" "seeds: 2" "metric: knn.top1" "also: [train.eval_top1]" "out: $tmp/$name" "$@"
	} >"$tmp/$name.yaml"
}
flat() { out=$(tr -s ' \n' ' ' <<<"$out"); }     # sentences without their line ends
# The wall time of the marks changes if and only if something ran.
marks() { (cd "$1" && find . -name '*.mark' -exec sha256sum {} + | sort -k2); }

# ---- two arms x two seeds
study two
run 0 study "$tmp/two.yaml" --dry-run; says "2 arms x 2 seeds = 4 runs"; [ ! -e "$tmp/two" ] || fail "a dry run left something"
run 0 study "$tmp/two.yaml"
flat; says "a norm of its own"; says "knn.top1 %"; says "baseline"; says "sep(bn,ln)"; says "Holm's correction over 1 comparison"; says "train.eval_top1 %"
says "differ in what their batch statistics saw"; says "each sees one batch of 16 samples"
complains "[4/4]"
for f in study.yaml results.csv table.md table.tex table.csv table.json runs.db sep_bn_ln/seed-1/train/model.safetensors ln/seed-0/knn.json ln/seed-0/train.log; do
	[ -s "$tmp/two/$f" ] || fail "no $f"
done
[ "$(grep -c ',knn.top1,' "$tmp/two/results.csv")" = 4 ] || fail "not one row for each run: $(cat "$tmp/two/results.csv")"
grep -q 'toprule' "$tmp/two/table.tex" || fail "no LaTeX"
run 2 study "$tmp/two.yaml" --columns "n pvalue"; complains "unknown column 'pvalue'"
if command -v pdflatex >/dev/null && command -v kpsewhich >/dev/null && kpsewhich booktabs.sty >/dev/null; then
	printf '%s\n' '\documentclass{article}\usepackage{booktabs}\begin{document}' "\\input{$tmp/two/table.tex}" '\end{document}' >"$tmp/paper.tex"
	(cd "$tmp" && pdflatex -halt-on-error -interaction=batchmode paper.tex >/dev/null) || fail "LaTeX refuses the table"
fi
grep -q '^| sep(bn,ln) | 2 |' "$tmp/two/table.md" || fail "no Markdown: $(cat "$tmp/two/table.md")"
grep -q '"p_wilcoxon_holm"' "$tmp/two/table.json" || fail "no p-value in the JSON"
run 0 runs --store "$tmp/two/runs.db"; [ "$(grep -c "done" <<<"$out")" = 4 ] || fail "the run database lacks runs: $out"
says "ln/seed-0/train"; says "sep_bn_ln/seed-1/train"
before=$(marks "$tmp/two")
run 0 study "$tmp/two.yaml"; complains "4 of 4 runs were done already"
[ "$(marks "$tmp/two")" = "$before" ] || fail "something ran again"
run 0 study "$tmp/two/study.yaml" --json; json arms notes; [ "$(marks "$tmp/two")" = "$before" ] || fail "its own record is another study"
# what is done needs no data any more: only stages that have yet to run are looked at
NORMA_DATA=$tmp/nowhere run 0 study "$tmp/two.yaml"; says "knn.top1 %"
NORMA_DATA=$tmp/nowhere run 0 study "$tmp/two.yaml" --dry-run; says "2 arms x 2 seeds"
NORMA_DATA=$tmp/nowhere run 1 study "$tmp/two.yaml" --seeds 3; complains "the study would fail in stage 'train'"
# more seeds: only these run
run 0 study "$tmp/two.yaml" --seeds 3 --parallel 2; complains "4 of 6 runs were done already"
[ "$(marks "$tmp/two" | grep -v seed-2)" = "$before" ] || fail "old runs ran again"

# ---- other settings: refused, or made again with the old ones kept
sed -i 's/epochs: 2/epochs: 3/' "$tmp/two.yaml"
run 1 study "$tmp/two.yaml"; complains "epochs=2 became epochs=3"; complains "--rerun"
[ "$(marks "$tmp/two" | grep -v seed-2)" = "$before" ] || fail "a refused study changed something"
run 0 study "$tmp/two.yaml" --rerun
[ -d "$tmp/two/ln/seed-0/train.old1" ] || fail "the old run is gone"
grep -q 'epochs=3' "$tmp/two/ln/seed-0/train.mark" || fail "not made again"
# only the probe changed: the training stays
before=$(marks "$tmp/two" | grep 'train.mark$')
sed -i 's/k: 5/k: 7/' "$tmp/two.yaml"
run 0 study "$tmp/two.yaml" --rerun; [ "$(marks "$tmp/two" | grep 'train.mark$')" = "$before" ] || fail "the training ran again"
# another metric is only another table
sed -i 's/^metric: .*/metric: train.eval_loss/' "$tmp/two.yaml"
before=$(marks "$tmp/two")
run 0 study "$tmp/two.yaml"; says "train.eval_loss"; [ "$(marks "$tmp/two")" = "$before" ] || fail "something ran again"
sed -i 's/^also: .*/also: [train.evl_top1]/' "$tmp/two.yaml"
run 0 study "$tmp/two.yaml"; says "no such metric 'train.evl_top1'"; says "did you mean 'train.eval_top1'?"
sed -i 's/^metric: .*/metric: train.evl_loss/' "$tmp/two.yaml"
run 2 study "$tmp/two.yaml"; complains "did you mean 'train.eval_loss'?"; [ "$(marks "$tmp/two")" = "$before" ] || fail "something ran again"

# ---- kill -9 at several moments: what is done stays, the weights are those of an undisturbed study
study whole "parallel: 2"
sed -i 's/epochs: 2/epochs: 12, checkpoint_steps: 5/' "$tmp/whole.yaml"
sed 's/whole/killed/' "$tmp/whole.yaml" >"$tmp/killed.yaml"
run 0 study "$tmp/whole.yaml"
steps=$(cat "$tmp"/whole/*/*/train/metrics.csv | wc -l)
kills=0
# shellcheck disable=SC2317 # `await` calls it
reached() { lines "$1" "$tmp"/killed/*/*/train/metrics.csv || ! kill -0 "$pid" 2>/dev/null; }
for ((i = 1; i <= 4; i++)); do
	"$NORMA" study "$tmp/killed.yaml" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await reached $((steps * i / 6))
	! kill -9 "$pid" 2>/dev/null || kills=$((kills + 1))
	wait "$pid" 2>/dev/null || true
	{ find "$tmp/killed" -name '*.mark' -exec grep -l '"done"' {} + || true; } | xargs -r sha256sum >>"$tmp/done"
done
ran="kills"; [ "$kills" -gt 0 ] || fail "every study was over before its kill"
run 0 study "$tmp/killed.yaml"
[ ! -s "$tmp/done" ] || sha256sum --quiet -c "$tmp/done" >/dev/null || fail "what was done ran again"
for f in ln/seed-0 ln/seed-1 sep_bn_ln/seed-0 sep_bn_ln/seed-1; do
	cmp -s <(tail -c 2000 "$tmp/whole/$f/train/model.safetensors") <(tail -c 2000 "$tmp/killed/$f/train/model.safetensors") ||
		fail "the weights of $f differ from those of the undisturbed study"
done
[ "$(cut -d, -f1-4 "$tmp/whole/results.csv" | grep knn.top1)" = "$(cut -d, -f1-4 "$tmp/killed/results.csv" | grep knn.top1)" ] || fail "other results"
! pgrep -f "$tmp/killed" >/dev/null || fail "a process was left behind"

# ---- Ctrl-C: the children save, the command says how to go on
study interrupted
sed -i 's/epochs: 2/epochs: 2000/' "$tmp/interrupted.yaml"
"$NORMA" study "$tmp/interrupted.yaml" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 3 "$tmp/interrupted/ln/seed-0/train/metrics.csv"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
ran="interrupt" err=$(cat "$tmp/err")
[ "$code" = 130 ] || fail "exit code $code, not 130: $err"
complains "resume with: norma study $tmp/interrupted/study.yaml"
grep -q '"status":"interrupted"' "$tmp/interrupted/ln/seed-0/train/events.jsonl" || fail "the training did not save"
grep -q '"status":"begun"' "$tmp/interrupted/ln/seed-0/train.mark" || fail "not marked as begun"
# other data since: the study refuses, --force is passed on to its trainings, and their records say so
made_up "$tmp/data/mnist" t10k 60
run 1 study "$tmp/interrupted/study.yaml"; complains "--force"
"$NORMA" study "$tmp/interrupted/study.yaml" --force >"$tmp/out" 2>"$tmp/err" &
pid=$!
await grep -q '"forced":"the evaluation data are not what they were"' "$tmp/interrupted/ln/seed-0/train/events.jsonl"
kill -TERM "$pid"
wait "$pid" || true
grep -q '^\$ norma train --resume --force ' "$tmp/interrupted/ln/seed-0/train.log" || fail "the log does not say that it was forced"
made_up "$tmp/data/mnist" t10k 50

# ---- a run that fails: the others go on
study broken
sed -i 's/^grid.*/arms: [{name: good, norm: ln}, {name: bad, norm: none, optimizer: sgd, lr: 1e6, warmup: 0}]/' "$tmp/broken.yaml"
run 1 study "$tmp/broken.yaml"
flat; says "bad, seed 0 failed in train"; says "not finite"; complains "2 of 4"
grep -q '^| good | 2 |' "$tmp/broken/table.md" || fail "the other arm did not go on: $(cat "$tmp/broken/table.md")"
before=$(marks "$tmp/broken")
run 1 study "$tmp/broken.yaml"; [ "$(marks "$tmp/broken")" = "$before" ] || fail "what diverges would diverge again, but ran"
run 1 study "$tmp/broken.yaml" --retry; [ "$(marks "$tmp/broken")" != "$before" ] || fail "--retry did not"
# a metric that no result has: said after the first run, which is kept
study slip
sed -i 's/knn.top1/knn.topp1/' "$tmp/slip.yaml"
run 2 study "$tmp/slip.yaml"; complains "did you mean 'knn.top1'?"; results=$(find "$tmp/slip" -name knn.json | wc -l)
[ "$results" = 1 ] || fail "it went on: $results results"

# ---- early stop: an arm that differs for sure is not run further, nor is its baseline
study early "stop: {when: decided, looks: [6]}"
sed -i 's/^grid.*/arms: [{name: good, norm: ln}, {name: idle, norm: ln, lr: 0}]/; s/^seeds.*/seeds: 9/; s/^metric.*/metric: train.eval_loss/' "$tmp/early.yaml"
run 0 study "$tmp/early.yaml"; complains "idle is decided: no further runs"; says "differs (6 seeds)"; says "after 6,"
[ "$(find "$tmp/early" -name knn.json | wc -l)" = 12 ] || fail "not stopped at the first look: $(find "$tmp/early" -name knn.json)"
before=$(marks "$tmp/early")
NORMA_DATA=$tmp/nowhere run 0 study "$tmp/early/study.yaml" --json; json looks; [ "$(marks "$tmp/early")" = "$before" ] || fail "it went on after the decision"

# ---- tuning: every arm's best value first, on seeds of its own
study tuned "tune: {lr: [1e-5, 3e-3, 1e6], train.epochs: 1, metric: train.eval_loss}"
run 0 study "$tmp/tuned.yaml" --dry-run; says "tuning first: 3 settings x 1 seeds for each arm"
run 0 study "$tmp/tuned.yaml"; complains "tuning: 3 runs for each of 2 arms"; says "ln: train.eval_loss against lr = 1e-5 3e-3 1e6"
says "tuned by train.eval_loss, ln: lr 1e-5"; says "taken: lr 3e-3"
[ "$(wc -l <"$tmp/tuned/tune/sensitivity.csv")" = 7 ] || fail "sensitivity: $(cat "$tmp/tuned/tune/sensitivity.csv")"
[ ! -e "$tmp/tuned/tune/ln_lr=3e-3/seed-1000000/knn.json" ] || fail "a stage after the metric's ran"
grep -q 'lr=3e-3' "$tmp/tuned/ln/seed-0/train.mark" || fail "the best value was not taken"
grep -q 'epochs=2' "$tmp/tuned/ln/seed-0/train.mark" || fail "the real runs were short too"
before=$(marks "$tmp/tuned")
NORMA_DATA=$tmp/nowhere run 0 study "$tmp/tuned/study.yaml"; says "taken: lr 3e-3"; [ "$(marks "$tmp/tuned")" = "$before" ] || fail "something ran again"
run 0 study "$tmp/two.yaml" --tune lr=1e-3,2e-3 --tune batch=8,16 --tune budget=3 --tune epochs=1 --dry-run; says "tuning first: 3 settings"
run 2 study "$tmp/two.yaml" --tune lr; complains "e.g. --tune lr=1e-3,2e-3"

# ---- numbers of a paper beside the measured ones
study paper "published: {label: Table 1, theirs: ViT-B on ImageNet, cells: [{arm: ln, value: \"79.90\", unsure: point}]}"
run 0 study "$tmp/paper.yaml" --dry-run; says "79.90 ?"
run 0 study "$tmp/paper.yaml" --seeds 1; flat; says "79.90 ?"; says "Theirs: ViT-B on ImageNet. Ours: train: data mnist model $model epochs 2 batch 16"
for f in md tex csv json; do grep -q '79\.90' "$tmp/paper/table.$f" || fail "nothing published in table.$f"; done

# ---- what is wrong with a file is said before anything runs, with its line
wrong() { # LINE-PATTERN REPLACEMENT MESSAGE...
	local from=$1 to=$2 message
	shift 2
	study wrong
	sed -i "s|$from|$to|" "$tmp/wrong.yaml"
	run 1 study "$tmp/wrong.yaml"
	for message in "$@"; do complains "$message"; done
	[ ! -e "$tmp/wrong" ] || fail "something ran"
}
wrong "^seeds" "seds" "wrong.yaml:7:1: unknown key 'seds'" "did you mean 'seeds'?"
wrong "- knn" "- knm" "wrong.yaml:5:5" "did you mean 'knn'?"
wrong "epochs: 2" "epoch: 2" "train has no option 'epoch'" "did you mean 'epochs'?" "wrong.yaml:4"
wrong "epochs: 2" "epochs: two" "'epochs' of train" "wrong.yaml:4"
wrong "grid: {norm" "grid: {nrom" "no stage has an option 'nrom'" "did you mean 'norm'?" "wrong.yaml:6"
wrong "\\[ln," "[lm," "did you mean 'ln'?" "wrong.yaml:6:15"
wrong "data: mnist" "data: mnits" "did you mean 'mnist'?" "wrong.yaml:2"
wrong "data: mnist" "seed: 3, data: mnist" "'seed' is set by the study itself"
wrong "{data: mnist}" "{}" "'train' has no data set"
wrong "seeds: 2" "seeds: none" "'seeds' should be a number"
wrong "seeds: 2" "seeds: [1, 1]" "seed 1 is given twice"
wrong "metric: knn" "metric: knnn" "did you mean 'knn.top1'?" "wrong.yaml:8"
wrong "norm: .ln, " "norm: [ln, ln, " "arms 'ln' and 'ln' are the same"
wrong "^seeds.*" "baseline: lb" "there is no arm 'lb'"
wrong "^seeds.*" "stop: {when: decidedd}" "the only time to stop is 'decided'" "wrong.yaml:7"
wrong "^seeds.*" "stop: {when: decided, looks: [5, 3]}" "rising numbers of seeds"
wrong "^seeds.*" "tune: {lrr: [1, 2]}" "did you mean 'lr'?"
wrong "^seeds.*" "tune: {epochs: 2}" "no option with several values"
wrong "^seeds.*" "published: {tabel: x}" "did you mean 'table'?"
wrong "k: 5" "from: probe" "no stage 'probe' to take a checkpoint from"
run 1 study "$tmp/none.yaml"; complains "none.yaml"; one_line
run 2 study; one_line

# ---- the same from flags
run 0 compare --norm ln --norm bn --data mnist --model "$model" --batch 16 --epochs 1 --seeds 2 --out "$tmp/flags"
says "train.eval_top1 %"; says "baseline"
before=$(marks "$tmp/flags")
run 0 study "$tmp/flags/study.yaml"; complains "4 of 4 runs were done already"; [ "$(marks "$tmp/flags")" = "$before" ] || fail "another study"
run 0 compare --task pretrain --norm ln --norm bn --data mnist --model "$model" --batch 16 --epochs 1 --seeds 1 --out "$tmp/probed" \
	--also probe.mean.top1 --also pretrain.eval_uniformity_cls
says "probe.cls.top1 %"; says "pretrain.eval_uniformity_cls"; [ -s "$tmp/probed/bn/seed-0/pretrain/model.safetensors" ] || fail "no pre-training"
run 0 compare --norm ln --norm bn --lr 1e-3 --lr 2e-3 --data mnist --dry-run; says "bn, lr=2e-3"; says "4 arms x 3 seeds"
# a recipe below the flags; every task; a study is none
printf 'data: mnist\nbatch: 16\nnorm: rms\nepochs: 7\n' >"$tmp/recipe.yaml"
run 0 compare "$tmp/recipe.yaml" --norm ln --norm bn --epochs 1 --dry-run; says "batch=16"; says "epochs=1 "; says "norm=bn"
printf 'task: graph\ndata: zinc12k\n' >"$tmp/graph.yaml"
run 1 compare "$tmp/graph.yaml" --norm ln --norm bn --dry-run; complains "in stage 'graph'"; complains "zinc12k"
run 1 compare --task simcse --data "text:path=$tmp/none.txt" --norm ln --norm rms --dry-run; complains "in stage 'simcse'"
run 2 compare "$tmp/graph.yaml" --task mlm --norm ln --norm bn --dry-run; complains "which is for --task graph"
run 2 compare "$tmp/two.yaml" --norm ln --norm bn; complains "is a study, not a recipe"
run 2 compare --norm ln --data mnist; complains "nothing to compare"
run 2 compare --norm ln --norm lm --data mnist; complains "did you mean 'ln'?"; one_line
run 2 compare --norm ln --norm bn; complains "no data set"
run 2 compare --nrom ln; complains "did you mean '--norm'?"
exit "$failed"
