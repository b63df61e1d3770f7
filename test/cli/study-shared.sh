#!/bin/bash
# Several processes on one study: they share its runs, a dead one's are taken over, and commands for other schedulers may run twice.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
NORMA=$(realpath "$NORMA")
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 50
export NORMA_DATA=$tmp/data OMP_NUM_THREADS=1

# study NAME EPOCHS [LINE...]: two arms and two seeds, with further lines
study() {
	local name=$1 epochs=$2
	shift 2
	{
		printf '%s\n' "base: {data: mnist}" "stages:"
		printf '%s\n' "  - train: {model: \"vit_nano:dim=16,depth=1,heads=2,patch=7\", batch: 16, epochs: $epochs, lr: 3e-3, checkpoint_steps: 5}"
		printf '%s\n' "  - knn: {k: 5}" "grid: {norm: [ln, \"sep(bn,ln)\"]}" "seeds: 2" "metric: train.eval_loss" "out: $tmp/$name" "$@"
	} >"$tmp/$name.yaml"
}
numbers() { grep -vE 'second|time' "$1/results.csv"; }
starts() { cat "$tmp/$1"/*/*/train.log | grep -c '^\$ norma train --[^r]' || true; }

study alone 24
run 0 study "$tmp/alone.yaml"

# ---- two at once: each run is started once, and both have the whole table
study both 24
"$NORMA" study "$tmp/both.yaml" >"$tmp/other.out" 2>"$tmp/other.err" &
pid=$!
run 0 study "$tmp/both.yaml"
wait "$pid" || fail "the other one failed: $(cat "$tmp/other.err")"
[ "$(starts both)" = 4 ] || fail "$(starts both) trainings instead of 4"
cmp "$tmp/out" "$tmp/other.out" || fail "two tables"
diff <(numbers "$tmp/alone") <(numbers "$tmp/both") || fail "other results than alone"
[ ! -e "$tmp/both/.claims" ] || fail "left: $(ls -A "$tmp/both/.claims")"

# ---- one of them is killed: the other one goes on with its run from the last checkpoint
study killed 24
"$NORMA" study "$tmp/killed.yaml" >"$tmp/other.out" 2>"$tmp/other.err" &
pid=$!
await lines 3 "$tmp/killed/ln/seed-0/train/metrics.csv"
"$NORMA" study "$tmp/killed.yaml" >"$tmp/out" 2>"$tmp/err" &
second=$!
await test -s "$tmp/killed/sep_bn_ln/seed-0/train/metrics.csv"
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
ran="study, the second of two" code=0
wait "$second" || code=$?
[ "$code" = 0 ] || fail "exit code $code: $(cat "$tmp/err")"
[ "$(starts killed)" = 4 ] || fail "$(starts killed) fresh starts instead of 4"
diff <(numbers "$tmp/alone") <(numbers "$tmp/killed") || fail "other results than undisturbed"
[ ! -e "$tmp/killed/.claims" ] || fail "left: $(ls -A "$tmp/killed/.claims")"

# ---- commands for other schedulers: a line each, safe to run twice and at once
study jobs 2
run 0 study "$tmp/jobs.yaml" --jobs-from "$tmp/jobs.txt"; complains "4 of 4 runs are left, in $tmp/jobs.txt"
[ "$(wc -l <"$tmp/jobs.txt")" = 4 ] || fail "not four lines: $(cat "$tmp/jobs.txt")"
[ ! -e "$tmp/jobs/ln" ] || fail "something ran"
line=$(sed -n 1p "$tmp/jobs.txt")
(cd / && sh -c "$line") 2>"$tmp/err" || fail "'$line' failed: $(cat "$tmp/err")"
(cd / && sh -c "$line") 2>"$tmp/err" || fail "it cannot be repeated: $(cat "$tmp/err")"
grep -q "were done already" "$tmp/err" || fail "it ran twice"
run 0 study "$tmp/jobs.yaml" --jobs-from "$tmp/jobs.txt"; complains "3 of 4 runs are left"; says "train.eval_loss"
cat "$tmp/jobs.txt" "$tmp/jobs.txt" | sort | env -i PATH="$PATH" xargs -d '\n' -P 4 -n 1 sh -c 2>"$tmp/err" || fail "a command failed: $(cat "$tmp/err")"
[ "$(starts jobs)" = 4 ] || fail "$(starts jobs) trainings instead of 4"
run 0 study "$tmp/jobs.yaml" --jobs-from "$tmp/jobs.txt"; [ ! -s "$tmp/jobs.txt" ] || fail "lines are left: $(cat "$tmp/jobs.txt")"
run 0 study "$tmp/jobs.yaml" --jobs-from -; complains "4 of 4 runs were done already"; says "train.eval_loss"
sed 's|out: .*|out: "'"$tmp/it's odd"'"|' "$tmp/jobs.yaml" >"$tmp/odd.yaml"
run 0 study "$tmp/odd.yaml" --jobs-from - --threads 1; says "--threads 1"
sh -c "$(sed -n 1p "$tmp/out")" 2>"$tmp/err" || fail "odd names: $(cat "$tmp/err")"
[ -s "$tmp/it's odd/ln/seed-0/knn.json" ] || fail "no result"
run 1 study "$tmp/jobs.yaml" --seeds 9 --jobs-from "$tmp/nowhere/jobs.txt"; complains "cannot write"

# ---- single runs; words before a training
run 2 study "$tmp/jobs.yaml" --run ln/seed-9; complains "has the arm, but not the seed"; one_line
run 2 study "$tmp/jobs.yaml" --run lm/seed-0; complains "did you mean 'ln/seed-0'?"; one_line
study launched 2
printf '#!/bin/sh\necho "$*" >>"%s"\nshift\nexec "$@"\n' "$tmp/words" >"$tmp/launcher"
chmod +x "$tmp/launcher"
run 0 study "$tmp/launched.yaml" --run "sep(bn,ln)/seed-1" --launch "$tmp/launcher -x"
[ ! -e "$tmp/launched/ln" ] || fail "another run ran"
grep -q "^-x $NORMA train " "$tmp/words" || fail "launched: $(cat "$tmp/words")"
[ "$(wc -l <"$tmp/words")" = 1 ] || fail "not the training alone: $(cat "$tmp/words")"
# nothing that counts as a stage's fault: a killed run may go on elsewhere
study shot 2000
"$NORMA" study "$tmp/shot.yaml" --run ln/seed-0 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 2 "$tmp/shot/ln/seed-0/train/metrics.csv"
# while it lives, another command leaves the run to it
run 0 study "$tmp/shot.yaml" --run ln/seed-0; complains "is done by process $pid"
pkill -9 -P "$pid"
! wait "$pid" || fail "a killed training is no success"
grep -q '"status":"begun"' "$tmp/shot/ln/seed-0/train.mark" || fail "its mark: $(cat "$tmp/shot/ln/seed-0/train.mark")"
exit "$failed"
