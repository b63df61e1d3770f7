#!/bin/bash
# What goes wrong on one of two ranks: it is killed, hangs, diverges, has a full disk; the launcher is signalled. The run ends with a message
# that names it, no process stays, the checkpoint is whole, and another number of ranks finishes to the bits of an undisturbed run.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/ranks.inc
. test/cli/ranks.inc
made_up_mnist 80 20
# shellcheck disable=SC2054 # commas of options
pictures=(train --data mnist --model vit_nano:dim=16,depth=2,heads=2,patch=7,dropout=0.1 --norm "sep(batch:sync=1,ln)" --batch 16 --shards 2
	--threads 1 --log-every 1)
begin() { # FOLDER STEPS ARG...: in the background, its launcher in $launcher, until some steps are done
	ran="2 ranks, $1"
	"$MPIRUN" -n 2 "$NORMA" "${pictures[@]}" --steps "$2" --eval-every 0 --checkpoint-steps 1 --out "$tmp/$1" "${@:3}" \
		>"$tmp/out" 2>"$tmp/err" </dev/null &
	launcher=$!
	await grep -q '^1[0-9],' "$tmp/$1/metrics.csv" 2>/dev/null
}
# shellcheck disable=SC2317 # await calls it
gone() { ! pgrep -f -- "--out $tmp/$1( |\$)" >/dev/null; }
ended() { # FOLDER: waits for it
	local code=0
	wait "$launcher" || code=$?
	err=$(cat "$tmp/out" "$tmp/err")
	[ "$code" != 0 ] || fail "it ended with success"
	await gone "$1"
	"$NORMA" inspect "$tmp/$1/last.safetensors" >/dev/null || fail "the checkpoint is damaged"
}

# ---- killed at some moment, also in the middle of a checkpoint; one process goes on, or two again
on 0 0 1 "${pictures[@]}" --steps 80 --eval-every 0 --checkpoint-steps 1 --out "$tmp/whole"
for victim in 0 1; do
	for ((;;)); do                          # on a busy machine it may be done before it is killed
		begin "killed$victim" 80
		kill -9 "$(rank_of "$launcher" "$victim")" 2>/dev/null && break
		wait "$launcher"
		rm -r "$tmp/killed$victim"
	done
	ended "killed$victim"
	grep -qE "rank $victim|BAD TERMINATION" <<<"$err" || fail "nobody names the rank: $err"      # MPICH's launcher names process and host
	complains "$(hostname)"
	on 0 "$((2 * victim))" 1 train --resume --out "$tmp/killed$victim"
	[ "$(hash "$tmp/killed$victim")" = "$(hash "$tmp/whole")" ] || fail "other bits after rank $victim was killed"
done

# ---- one that hangs: the other one says so and ends
begin hangs 1000000 --rank-timeout 2
pid=$(rank_of "$launcher" 1)
kill -STOP "$pid"
await grep -q "rank 0 on $(hostname) has waited 2 s for rank 1" "$tmp/err"
kill -9 "$pid" 2>/dev/null || true
ended hangs

# ---- the launcher is told to end: the step is finished, a checkpoint written
export OMPI_MCA_odls_base_sigkill_timeout=30            # one second is little on a busy machine
begin ends 1000000
kill -TERM "$launcher"
ended ends
complains "interrupted"
unset OMPI_MCA_odls_base_sigkill_timeout

# ---- a loss that is not finite is told by the first rank alone, with the exit code for it
for norm in none "none blocks[1].mlp.in=batch:sync=1"; do
	on 3 2 1 train --data mnist --model vit_nano:dim=16,depth=2,heads=2,patch=7 --norm "$norm" --batch 16 --shards 2 --steps 400 --optimizer sgd --lr 1e6 \
		--warmup 0 --eval-every 0 --out "$tmp/diverges${#norm}"
	complains "is not finite"; complains "(rank "
	[ "$(grep -c 'training diverged' "$tmp/err")" = 1 ] || fail "more than one tells it: $err"
done

# ---- the first rank's disk is full. MPICH keeps files of its own, which such a limit would cut off, too
if [ -z "${NORMA_MPI:-}" ]; then
	code=0 ran="full disk on rank 0"
	# shellcheck disable=SC2016 # for that shell
	"$MPIRUN" -n 1 bash -c 'ulimit -f 60; exec "$0" "$@"' "$NORMA" "${pictures[@]}" --steps 9 --out "$tmp/full" : \
		-n 1 "$NORMA" "${pictures[@]}" --steps 9 --out "$tmp/full" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
	err=$(cat "$tmp/out" "$tmp/err")
	[ "$code" != 0 ] || fail "it ended with success"
	complains "rank 0 on $(hostname)"; complains "cannot write"; complains ".safetensors"
	await gone full
fi

# ---- pictures that one rank cannot read
cp -r "$tmp/data" "$tmp/data2"
truncate -s 30000 "$tmp/data2/mnist/train-images-idx3-ubyte"
code=0 ran="a file that is cut off on rank 1"
"$MPIRUN" -n 1 "$NORMA" "${pictures[@]}" --out "$tmp/cut" : -n 1 "$NORMA" "${pictures[@]}" --data-root "$tmp/data2" --out "$tmp/cut" \
	>"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
err=$(cat "$tmp/out" "$tmp/err")
[ "$code" != 0 ] || fail "it ended with success"
complains "rank 1 on $(hostname)"; complains "train-images-idx3-ubyte"
await gone cut
exit "$failed"
