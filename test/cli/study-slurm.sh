#!/bin/bash
# Studies on Slurm, with a made-up one: what is submitted, watched, submitted again and said. A real one: test/slurm/study.sh.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
NORMA=$(realpath "$NORMA")
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 50
export NORMA_DATA=$tmp/data OMP_NUM_THREADS=1 SLURM_CPUS_PER_TASK=1
unset NORMA_PEERS
flat() { out=$(tr -s ' \n' ' ' <<<"$out"); }

# study NAME [LINE...]: two arms and two seeds, with further lines
study() {
	local name=$1
	shift
	{
		printf '%s\n' "base: {data: mnist}" "stages:"
		printf '%s\n' "  - train: {model: \"vit_nano:dim=16,depth=1,heads=2,patch=7\", batch: 16, epochs: 2, lr: 3e-3}" "  - knn: {k: 5}"
		printf '%s\n' "grid: {norm: [ln, \"sep(bn,ln)\"]}" "seeds: 2" "metric: train.eval_loss" "also: [knn.top1]" "out: $tmp/$name" "$@"
	} >"$tmp/$name.yaml"
}
marks() { (cd "$1" && find . -name '*.mark' -exec sha256sum {} + | sort -k2); }

# ---- a Slurm that starts the tasks of an array at once. $fake/lost: tasks of that name never do anything; $fake/refuse: why sbatch refuses
fake=$tmp/slurm mkdir=$tmp/fakebin
mkdir -p "$fake" "$mkdir"
cat >"$mkdir/sbatch" <<END
#!/bin/bash
[ "\$1" = --parsable ] || exit 9
if [ -e "$fake/refuse" ]; then echo "sbatch: error: \$(cat "$fake/refuse")" >&2; echo "sbatch: error: Batch job submission failed" >&2; exit 1; fi
job=\$((\$(cat "$fake/job" 2>/dev/null || echo 40) + 1))
echo \$job >"$fake/job"
last=\$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "\$2")
for ((i = 0; i <= last; i++)); do
	if grep -qx "\${job}_\$i" "$fake/lost" 2>/dev/null; then continue; fi
	touch "$fake/queue-\${job}_\$i"
	(SLURM_ARRAY_TASK_ID=\$i sh "\$2" >>"$fake/log" 2>&1; rm -f "$fake/queue-\${job}_\$i") >/dev/null 2>&1 &
done
echo "\$job;cluster"
END
cat >"$mkdir/squeue" <<END
#!/bin/bash
echo "\$*" >>"$fake/asked"
[ ! -e "$fake/down" ] || { echo "squeue: error: Unable to contact slurm controller" >&2; exit 1; }
shopt -s nullglob
for f in "$fake"/queue-*; do echo "\${f#$fake/queue-} RUNNING"; done
[ ! -e "$fake/foreign" ] || cat "$fake/foreign"
END
cat >"$mkdir/scontrol" <<END
#!/bin/bash
[ ! -e "$fake/state" ] || echo "JobId=1 JobState=\$(cat "$fake/state") Reason=None"
END
cat >"$mkdir/scancel" <<END
#!/bin/bash
echo "\$1" >>"$fake/cancelled"
END
chmod +x "$mkdir"/*
export PATH=$mkdir:$PATH

# ---- the script, without starting anything
study two
run 0 study "$tmp/two.yaml" --slurm --dry-run --partition short,long --time 1:00:00 --cpus-per-task 2 --mem 4G --account "a b" --parallel 3 \
	--sbatch="--exclusive --mail-type=FAIL"
{ [ ! -e "$tmp/two" ] && [ ! -e "$fake/job" ]; } || fail "a dry run left something"
for line in '#!/bin/sh' '#SBATCH --array=0-3%3' '#SBATCH --partition=short,long' '#SBATCH --time=1:00:00' '#SBATCH --cpus-per-task=2' \
	'#SBATCH --mem=4G' "#SBATCH --account='a b'" '#SBATCH --exclusive --mail-type=FAIL' '#SBATCH --requeue' "export NORMA_DATA=$tmp/data"; do
	grep -qxF -- "$line" "$tmp/out" || fail "the script lacks '$line': $out"
done
sh -n "$tmp/out" || fail "no script"
run 0 study "$tmp/two.yaml" --slurm --dry-run --nodes 2; says "--launch 'srun --mpi=pmix'"; says "#SBATCH --nodes=2"
run 0 study "$tmp/two.yaml" --slurm --dry-run --ntasks 2 --launch "mpirun -n 2"; says "--launch 'mpirun -n 2'"

# ---- what is wrong is said before anything is submitted
run 2 study "$tmp/two.yaml" --mem 4G; complains "--mem is for --slurm"; one_line
run 2 study "$tmp/two.yaml" --slurm --jobs-from x; complains "exclude each other"; one_line
run 2 study "$tmp/two.yaml" --slurm --run ln/seed-0; one_line
run 2 study "$tmp/two.yaml" --slurm --sbatch exclusive; complains "does not begin with '-'"
run 1 study "$tmp/two.yaml" --slurm --time "$(printf '1\n#SBATCH --x')"; complains "several lines"
ran="without sbatch" err=$(PATH=$tmp/nowhere "$NORMA" study "$tmp/two.yaml" --slurm 2>&1 >/dev/null) && fail "no error"
complains "cannot find the command 'sbatch'"; complains "--jobs-from"
echo "invalid partition specified: shrt" >"$fake/refuse"
run 1 study "$tmp/two.yaml" --slurm --partition shrt; complains "sbatch refused"; complains "invalid partition specified: shrt"; complains "--partition"
rm "$fake/refuse"

# ---- one task is lost in the middle: it is submitted again; the tables are those of a local study
study local
run 0 study "$tmp/local.yaml"
printf '41_2\n' >"$fake/lost"
echo NODE_FAIL >"$fake/state"
echo "7_0 RUNNING" >"$fake/foreign"
run 0 study "$tmp/two.yaml" --slurm
complains "submitted 4 runs as job 41"; complains "ln, seed 1: task 41_2 ended (NODE_FAIL); submitted again"; complains "submitted 1 run as job 42"
[ "$(cat "$fake/job")" = 42 ] || fail "submitted too often"
diff <(grep -vE 'second|time' "$tmp/local/results.csv") <(grep -vE 'second|time' "$tmp/two/results.csv") || fail "the results differ"
grep -q -- '-u [0-9]* -o %F_%K %T' "$fake/asked" || fail "squeue was asked: $(cat "$fake/asked")"
before=$(marks "$tmp/two")
run 0 study "$tmp/two.yaml" --slurm; complains "4 of 4 runs were done already"
{ [ "$(marks "$tmp/two")" = "$before" ] && [ "$(cat "$fake/job")" = 42 ]; } || fail "something ran again"
run 0 study "$tmp/two.yaml" --slurm --dry-run; complains "nothing to submit"; [ -z "$out" ] || fail "a script: $out"

# ---- a second command watches what the first one submitted; Slurm may be silent meanwhile
study watched
sed -i 's/epochs: 2/epochs: 40/' "$tmp/watched.yaml"
"$NORMA" study "$tmp/watched.yaml" --slurm --seeds 1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await grep -q submitted "$tmp/err"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
ran="study --slurm, interrupted" err=$(cat "$tmp/err")
[ "$code" = 130 ] || fail "exit code $code, not 130: $err"
complains "the jobs in Slurm go on; to cancel them: scancel 43"; complains "watch the others with: $NORMA study"
touch "$fake/down"
run 0 study "$tmp/watched.yaml" --slurm --seeds 1; complains "Unable to contact slurm controller; watching the run folders only"
[ "$(cat "$fake/job")" = 43 ] || fail "submitted again"
rm "$fake/down"

# ---- tasks that never get anywhere are given up; what the user cancelled is not submitted behind his back
study stuck
printf '%s\n' 44_0 45_0 46_0 47_0 48_0 >"$fake/lost"
run 1 study "$tmp/stuck.yaml" --slurm --seeds 1
flat; says "3 tasks in a row ended (NODE_FAIL) and brought it no step further; see $tmp/stuck/slurm/3-0.log"
grep -q '^| sep(bn,ln) | 1 |' "$tmp/stuck/table.md" || fail "the other arm: $(cat "$tmp/stuck/table.md")"
study gone
printf '%s\n' 47_0 >"$fake/lost"
echo CANCELLED >"$fake/state"
run 1 study "$tmp/gone.yaml" --slurm --seeds 1; flat; says "its task 47_0 was cancelled"
run 0 study "$tmp/gone.yaml" --slurm --seeds 1; complains "submitted 1 run as job 48"
# a slip in the metric: said after the first result, the rest is cancelled
study slip
sed -i 's/eval_loss/eval_los/' "$tmp/slip.yaml"
run 2 study "$tmp/slip.yaml" --slurm; complains "did you mean 'train.eval_loss'?"

# ---- a failure of the run itself is no reason to submit it again
study broken
sed -i 's/^grid.*/arms: [{name: good, norm: ln}, {name: bad, norm: none, optimizer: sgd, lr: 1e6, warmup: 0}]/' "$tmp/broken.yaml"
run 1 study "$tmp/broken.yaml" --slurm --seeds 1; flat; says "bad, seed 0 failed in train"; says "not finite"
job=$(cat "$fake/job")
run 1 study "$tmp/broken.yaml" --slurm --seeds 1; [ "$(cat "$fake/job")" = "$job" ] || fail "what diverges would diverge again, but was submitted"

# ---- tuning runs are jobs, too
study tuned "tune: {lr: [1e-5, 3e-3], train.epochs: 1, metric: train.eval_loss}"
run 0 study "$tmp/tuned.yaml" --slurm --seeds 1
says "taken: lr 3e-3"; grep -q 'lr=3e-3' "$tmp/tuned/ln/seed-0/train.mark" || fail "the best value was not taken"
run 1 study "$tmp/tuned.yaml" --run ln/seed-0; complains "tuned.yaml"
exit "$failed"
