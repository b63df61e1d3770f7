#!/bin/bash
# Ranks in a real Slurm (Debian's, one node, started here): srun without --mpi=pmix is refused and says what to add; with it, and with mpirun
# in a script, the bits are those of one process; a study whose trainings have two ranks each; a job that is cancelled saves.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/ranks.inc
. test/cli/ranks.inc
# shellcheck source=test/slurm/cluster.inc
. test/slurm/cluster.inc
for program in sbatch srun slurmctld slurmd munged; do
	PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || { echo "skipped: no '$program'; scripts/setup --dev installs it" >&2; exit 77; }
done
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 50
export NORMA_DATA=$tmp/data OMP_NUM_THREADS=1
trap 'code=$?; cluster_stop; [ $code = 0 ] || tail -n 20 "$tmp"/cluster/*.log >&2; rm -rf "$tmp"' EXIT
cluster_start "$tmp/cluster"
# shellcheck disable=SC2054 # commas of options
training=("$NORMA" train --data mnist --model vit_nano:dim=16,depth=1,heads=2,patch=7 --norm "sep(batch:sync=1,ln)" --batch 16 --epochs 2 --threads 1)

"${training[@]}" --shards 2 --out "$tmp/alone" >/dev/null
# slurm CODE COMMAND...: as `run`
slurm() {
	local want=$1 code=0
	shift
	ran="$*"
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
	out=$(cat "$tmp/out") err=$(cat "$tmp/err")
	[ "$code" = "$want" ] || fail "exit code $code, not $want: $err"
}
slurm 2 srun -n 2 "${training[@]}" --shards 2 --out "$tmp/copies"
complains "cannot train as one of several copies"; complains "srun --mpi=pmix"
[ ! -e "$tmp/copies" ] || fail "copies made a run folder"
slurm 0 srun -n 1 "${training[@]}" --shards 2 --out "$tmp/one"
[ "$(hash "$tmp/one")" = "$(hash "$tmp/alone")" ] || fail "other bits"
if srun --mpi=pmix -n 1 true 2>"$tmp/pmix"; then
	slurm 0 srun --mpi=pmix -n 2 "${training[@]}" --shards 2 --out "$tmp/two"
	says "ranks             2 on"
	[ "$(hash "$tmp/two")" = "$(hash "$tmp/alone")" ] || fail "two ranks have other bits"
	launch=()
else
	echo "srun --mpi=pmix: not tried, it does not work here (libpmix-dev may be missing): $(sed -n 1p "$tmp/pmix")"
	launch=(--launch "mpirun -n 2")
fi
# mpirun in a script
printf '#!/bin/sh\n#SBATCH --ntasks=2 --output=%s/job.log\nmpirun -n 2 %s --shards 2 --out %s\n' "$tmp" "$(printf "'%s' " "${training[@]}")" "$tmp/script" >"$tmp/job.sh"
slurm 0 sbatch --wait "$tmp/job.sh"
[ "$(hash "$tmp/script")" = "$(hash "$tmp/alone")" ] || fail "mpirun in a script: $(cat "$tmp/job.log")"

# a study whose trainings have two ranks each; what follows a training runs beside them
cat >"$tmp/two.yaml" <<-END
	base: {data: mnist}
	stages:
	  - train: {model: "vit_nano:dim=16,depth=1,heads=2,patch=7", batch: 16, epochs: 2, lr: 3e-3, shards: 2}
	  - knn: {k: 5}
	grid: {norm: [ln, "sep(batch:sync=1,ln)"]}
	seeds: 1
	metric: train.eval_loss
	also: [knn.top1]
	out: $tmp/study
END
slurm 0 "$NORMA" study "$tmp/two.yaml" --slurm --ntasks 2 --time 10 ${launch[@]+"${launch[@]}"}
sed "s|/study\$|/local|" "$tmp/two.yaml" >"$tmp/local.yaml"
slurm 0 "$NORMA" study "$tmp/local.yaml"
for f in "$tmp/study/"*/seed-0/train; do
	[ "$(hash "$f")" = "$(hash "${f/study/local}")" ] || fail "$f differs from the local study"
	grep -rqE "ranks +2 on" "$f" || fail "not two ranks: $(cat "$(dirname "$f")/train.log")"
done
exit "$failed"
