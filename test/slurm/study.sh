#!/bin/bash
# A study of six runs through a real Slurm (Debian's, one node, started here): one run is killed in the middle, the watching command is left
# with Ctrl-C and repeated, a task is cancelled and submitted again, and the results are those of the same study on this machine alone.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/slurm/cluster.inc
. test/slurm/cluster.inc
for program in sbatch slurmctld slurmd munged; do
	PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || { echo "skipped: no '$program'; scripts/setup --dev installs it" >&2; exit 77; }
done
NORMA=$(realpath "$NORMA")
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 50
export NORMA_DATA=$tmp/data OMP_NUM_THREADS=1
trap 'code=$?; cluster_stop; [ $code = 0 ] || tail -n 20 "$tmp"/cluster/*.log >&2; rm -rf "$tmp"' EXIT

for name in local slurm; do
	cat >"$tmp/$name.yaml" <<-END
		base: {data: mnist}
		stages:
		  - train: {model: "vit_nano:dim=16,depth=1,heads=2,patch=7", batch: 16, epochs: 60, lr: 3e-3, checkpoint_steps: 20}
		  - knn: {k: 5}
		grid: {norm: [ln, "sep(bn,ln)"]}
		seeds: 3
		metric: train.eval_loss
		also: [knn.top1]
		out: $tmp/$name
	END
done
run 0 study "$tmp/local.yaml"
cluster_start "$tmp/cluster"

worker() { pgrep -f -- "$tmp/slurm/study.yaml.* --run $1( |\$)"; }
"$NORMA" study "$tmp/slurm.yaml" --slurm --partition all --time 10 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 30 "$tmp/slurm/ln/seed-0/train/metrics.csv"
victim=$(worker ln/seed-0)
child=$(pgrep -P "$victim")
kill -9 "$victim" "$child"
await grep -qF 'ln, seed 0: task 1_0 ended' "$tmp/err"
# Ctrl-C in the terminal: the jobs go on
await lines 2 "$tmp/slurm/sep_bn_ln/seed-1/train/metrics.csv"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
ran="study --slurm, interrupted" err=$(cat "$tmp/err")
[ "$code" = 130 ] || fail "exit code $code, not 130: $err"
complains "submitted 6 runs as job 1"; complains "submitted 1 run as job"; complains "the jobs in Slurm go on"; complains "watch the others with:"
[ -n "$(squeue -h)" ] || fail "nothing is left in the queue"

run 0 study "$tmp/slurm.yaml" --slurm --partition all --time 10
[ -z "$(squeue -h)" ] || fail "something is left in the queue: $(squeue)"
! grep -q submitted <<<"$err" || fail "something was submitted again: $err"
for f in ln sep_bn_ln; do
	for seed in 0 1 2; do
		cmp <(tail -c 2000 "$tmp/local/$f/seed-$seed/train/model.safetensors") <(tail -c 2000 "$tmp/slurm/$f/seed-$seed/train/model.safetensors") ||
			fail "the weights of $f, seed $seed, differ from those of the local study"
	done
done
results() { grep -vE 'seconds|per_second|time|memory|bytes|host' "$1/results.csv"; }
diff <(results "$tmp/local") <(results "$tmp/slurm") || fail "the results differ"
table() { sed -E 's/ \| [^|]+ \| [^|]+ \|$//' "$1/table.md"; }       # without time and FLOPs, its last columns
diff <(table "$tmp/local") <(table "$tmp/slurm") || fail "the tables differ"
grep -q 'resume' "$tmp/slurm/ln/seed-0/train.log" || fail "the killed run did not resume"

# ---- a task that the user cancels is not submitted behind his back
sed "s/epochs: 60/epochs: 3000/; s|/slurm\$|/cancelled|" "$tmp/slurm.yaml" >"$tmp/cancelled.yaml"
"$NORMA" study "$tmp/cancelled.yaml" --slurm --seeds 1 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 5 "$tmp/cancelled/ln/seed-0/train/metrics.csv"
scancel -u "$(id -u)"
code=0
wait "$pid" || code=$?
ran="study --slurm, cancelled" err=$(cat "$tmp/err")
[ "$code" = 1 ] || fail "exit code $code, not 1: $err"
complains "was cancelled; the same command submits it again"

# ---- a refusal
run 1 study "$tmp/cancelled.yaml" --slurm --partition nowhere; complains "sbatch refused"; complains "invalid partition specified: nowhere"
exit "$failed"
