#!/bin/bash
# Training on several ranks of MPI: equal bits at 1, 2 and 4 ranks and any number of threads, also with statistics over all ranks
# (sync=1) and where a run goes on with another number of ranks; clear errors for what ranks must agree on (failures: mpi-faults.sh).
# RANKS: how many at most (2); with 4 or more every norm is tried on pictures, texts and molecules (scripts/test-all).
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc
# shellcheck source=test/cli/ranks.inc
. test/cli/ranks.inc
most=${RANKS:-2}
# same NAME ARG...: equal hashes on all numbers of ranks and threads; one line of a table
same() {
	local name=$1 k threads want='' have
	shift
	for k in 0 1 2 4; do
		[ "$k" -le "$most" ] || break
		for threads in 1 2; do
			[ "$most" -ge 4 ] || [ $((k + threads)) = 1 ] || [ $((k * threads)) = 4 ] || continue
			rm -rf "$tmp/run"
			on 0 "$k" "$threads" "$@" --shards 4 --out "$tmp/run"
			have=$(hash "$tmp/run")
			: "${want:=$have}"
			[ "$have" = "$want" ] || fail "$name: $k ranks with $threads threads give $have, not $want"
		done
	done
	echo "$name: $want"
}

made_up_mnist 80 20
sentences 1 60 >"$tmp/lines.txt"
made_up_values >"$tmp/values.csv"
# shellcheck disable=SC2054 # commas of options
pictures=(train --data mnist --model vit_nano:dim=16,depth=2,heads=2,patch=7,dropout=0.1,drop_path=0.1 --batch 16 --steps 6 --crop pad --pad 2
	--mixup 0.3 --ema 0.9 --log-every 1)
# shellcheck disable=SC2054
texts=(mlm --data "text:path=$tmp/lines.txt,val=0.2" --model bert:dim=16,depth=2,heads=2,hidden=24,positions=24 --tokenizer "$vocab"
	--max-length 16 --batch 8 --steps 6 --log-every 1)
# shellcheck disable=SC2054
molecules=(graph --data "molecules:path=$tmp/values.csv,features=zinc" --model graphormer-nano:dim=16,depth=2,heads=2 --batch 8 --steps 6 --log-every 1)
if [ "$most" -ge 4 ]; then
	for norm in layer dtn 'sep(bn,ln)' batch:sync=1 repbn:sync=1 prepbn:sync=1 switch:sync=1 power:sync=1 'sep(batch:sync=1,ln)'; do
		same "pictures, $norm" "${pictures[@]}" --norm "$norm"
		same "texts, $norm" "${texts[@]}" --norm "$norm"
		[ "$norm" = dtn ] || same "molecules, $norm" "${molecules[@]}" --norm "$norm"   # nodes have no order
	done
	picture=vit_nano:dim=24,depth=2,heads=3,patch=7,drop_path=0.1
	same "pretrain, sep(batch:sync=1,ln)" pretrain --data mnist --model $picture --norm "sep(batch:sync=1,ln) decoder.*=ln" --batch 16 --epochs 2 \
		--decoder-depth 1 --uniform both --log-every 1
	same "dino, sep(bn,ln)" dino --data mnist --model $picture --norm "sep(bn,ln)" --batch 16 --accumulate 2 --epochs 2 --local-crops 2 --local-size 14 \
		--prototypes 48 --head-hidden 24 --head-bottleneck 12 --head-bn --linear 60 --linear-blocks 2 --log-every 1
	{ echo "sent0,sent1,hard_neg"; paste -d, <(sentences 2 40) <(sentences 3 40) <(sentences 4 40); } >"$tmp/triplets.csv"
	mkdir -p "$tmp/data/sts/tokenized/STSB"
	for ((i = 0; i < 12; i++)); do echo $((i % 6)); done >"$tmp/scores"
	paste "$tmp/scores" <(sentences 5 12) <(sentences 6 12) >"$tmp/data/sts/tokenized/STSB/dev.tsv"
	same "simcse, sep(batch:sync=1,ln)" simcse --data "text:path=$tmp/triplets.csv" "${texts[@]:3}" --hard-weight 0.5 --norm "sep(batch:sync=1,ln)"
	same "graph --flag 2, batch:sync=1" "${molecules[@]}" --flag 2 --norm batch:sync=1
	for overlap in after between thread; do same "pictures, overlap $overlap" "${pictures[@]}" --overlap $overlap; done
else
	same "pictures" "${pictures[@]}" --accumulate 2 --norm "sep(batch:sync=1,ln) blocks[1].attn.in=switch:sync=1 blocks[1].mlp.in=power:sync=1"
	same "texts" "${texts[@]}" --norm "sep(bn,ln)"
	same "molecules" "${molecules[@]}" --norm batch:sync=1 --flag 2
fi

# ---- statistics of all shards are those of the whole batch: the same run but for rounding, which those of one shard are not
# shellcheck disable=SC2054
plain=(train --data mnist --model vit_nano:dim=16,depth=1,heads=2,patch=7 --batch 16 --steps 3 --warmup 0 --crop none --log-every 1 --eval-every 0)
loss() { awk -F, 'NR == 4 { print $4 }' "$tmp/run/metrics.csv"; }
for shards in 1 2; do
	for sync in 1 0; do
		rm -rf "$tmp/run"
		on 0 "$shards" 1 "${plain[@]}" --norm "batch:sync=$sync" --shards "$shards" --out "$tmp/run"
		loss
	done
done >"$tmp/losses"
ran="sync=1"
awk '{ v[NR] = $1 } END { a = v[1] - v[3]; b = v[1] - v[4]; exit !(a * a < 1e-8 && b * b > 1e-6 && v[1] == v[2]) }' "$tmp/losses" ||
	fail "losses of whole batches and of shards: $(tr '\n' ' ' <"$tmp/losses")"

# ---- a run goes on with another number of ranks
# goes_on NAME ARG...: 4 steps on some ranks and 2 more on others end with the same bits, whichever come first
goes_on() {
	local name=$1 first have want=''
	shift
	for first in 0 "$most"; do
		mkdir -p "$tmp/on$first"
		rm -rf "$tmp/on$first/run"
		cd "$tmp/on$first"
		on 0 "$first" 1 "$@" --shards 4 --checkpoint-steps 2 --out run --steps 4
		on 0 "$((most - first))" 1 "$1" --resume --out run --steps 6
		cd - >/dev/null
		have=$(hash "$tmp/on$first/run")
		: "${want:=$have}"
		[ "$have" = "$want" ] || fail "$name: $most ranks after 1 and 1 after $most end with other bits"
	done
	echo "$name, resumed: $want"
}
goes_on pictures "${pictures[@]}" --norm "sep(batch:sync=1,ln)"
if [ "$most" -ge 4 ]; then
	goes_on texts "${texts[@]}" --norm "sep(batch:sync=1,ln)"
	goes_on molecules "${molecules[@]}" --norm batch:sync=1
fi

# ---- gradients as bf16: the same bits on any number of threads, other ones than whole gradients, near them
for threads in 1 2; do
	rm -rf "$tmp/half$threads"
	on 0 2 "$threads" "${pictures[@]}" --compress --out "$tmp/half$threads"
	says "gradients travel as bf16"
done
on 0 2 1 "${pictures[@]}" --out "$tmp/whole"
ran="--compress"
[ "$(hash "$tmp/half1")" = "$(hash "$tmp/half2")" ] || fail "other bits on two threads"
[ "$(hash "$tmp/half1")" != "$(hash "$tmp/whole")" ] || fail "nothing was rounded"
awk -v a="$(sed -n 8p "$tmp/half1/metrics.csv" | cut -d, -f4)" -v b="$(sed -n 8p "$tmp/whole/metrics.csv" | cut -d, -f4)" \
	'BEGIN { d = a - b; exit !(a > 0 && d * d < 1e-4 * b * b) }' || fail "far from whole gradients"

# ---- the header says what is exact, and what statistics see; the first rank alone speaks
rm -rf "$tmp/run"
on 0 2 1 "${pictures[@]}" --norm "batch:sync=1 blocks[1].mlp.in=batch" --out "$tmp/run"
says "ranks             2 on $(hostname)"
says "shards            2 of 8 samples, summed by a fixed tree; exact for this number of ranks"
says "each sees the batch of all ranks, of 16 samples"
says "1 norms; each sees one shard of 8 samples"
[ "$(grep -c '^task ' <<<"$out")" = 1 ] || fail "more than one header: $out"

# ---- what ranks must agree on
on 1 2 1 "${pictures[@]}" --batch 17 --out "$tmp/no"
complains "--batch 17 is no multiple of 2 ranks (use --batch 18)"
on 1 2 1 "${pictures[@]}" --shards 1 --out "$tmp/no"
complains "2 ranks, but a batch has 1 shards"
on 1 0 1 "${pictures[@]}" --shards 3 --out "$tmp/no"
complains "3 is no power of two"
# shellcheck disable=SC2054
on 2 0 1 dino --data mnist --model vit_nano:dim=24,depth=1,heads=3,patch=7 --norm batch:sync=1 --batch 16 --shards 2 --local-crops 0 --out "$tmp/no"
complains "cannot share statistics (sync=1)"
# differ MESSAGE COMMAND...: the second rank is this one
differ() {
	local code=0
	ran="ranks that differ: ${*:2}"
	"$MPIRUN" -n 1 "$NORMA" "${pictures[@]}" --out "$tmp/no" : -n 1 "${@:2}" --out "$tmp/no" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
	out=$(cat "$tmp/out") err=$(cat "$tmp/err")
	[ "$code" = 1 ] || fail "exit code $code, not 1: $err"
	complains "rank 1 on $(hostname) $1 than rank 0 on $(hostname)"
	[ ! -e "$tmp/no" ] || fail "it made a run folder"
}
differ "has other settings" "$NORMA" "${pictures[@]}" --lr 0.1
if grep -q "^kernels  *plain" <<<"$("$NORMA" doctor 2>/dev/null)"; then echo "this CPU, or NORMA_ISA, has one instruction set"
else differ "has another instruction set" env NORMA_ISA=plain "$NORMA" "${pictures[@]}"; fi
cp -r "$tmp/data" "$tmp/data2"
printf '\7' | dd of="$tmp/data2/mnist/train-labels-idx1-ubyte" bs=1 seek=20 conv=notrunc status=none
differ "has other training data" "$NORMA" "${pictures[@]}" --data-root "$tmp/data2"
{ cat "$NORMA"; echo; } >"$tmp/norma"
chmod +x "$tmp/norma"
differ "runs another program" "$tmp/norma" "${pictures[@]}"

# ---- srun without MPI starts copies; a launcher without a library
code=0 ran="srun without --mpi"
SLURM_NTASKS=2 SLURM_PROCID=0 "$NORMA" "${pictures[@]}" --out "$tmp/no" >"$tmp/out" 2>"$tmp/err" || code=$?
err=$(cat "$tmp/err")
[ "$code" = 2 ] || fail "exit code $code, not 2"
complains "srun --mpi=pmix"
code=0 ran="no library"
OMPI_COMM_WORLD_SIZE=2 NORMA_MPI=/nowhere/libmpi.so "$NORMA" "${pictures[@]}" --out "$tmp/no" >"$tmp/out" 2>"$tmp/err" || code=$?
err=$(cat "$tmp/err")
[ "$code" = 1 ] || fail "exit code $code, not 1"
complains "no MPI library was found"

exit "$failed"
