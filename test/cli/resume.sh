#!/bin/bash
# kill -9 at random moments and --resume: the final model has the bits of a run that nobody disturbed, with batchwise norms,
# dropout, mixing, accumulation and averaged weights, on 1 and on 2 threads. NORMA_KILLS: how often (6).
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
kills=${NORMA_KILLS:-6}
NORMA=$(realpath "$NORMA")

made_up "$tmp/data/mnist" train 260
made_up "$tmp/data/mnist" t10k 50

# the same name for all runs, in folders of their own: the settings in the files are then the same
settings=(--data mnist --data-root "$tmp/data" --model "vit_nano:dim=24,depth=2,heads=3,patch=7,dropout=0.1,drop_path=0.1,attention_dropout=0.1"
	--norm "sep(bn,ln) blocks[1].attn.in=switch blocks[1].mlp.in=power" --batch 16 --accumulate 2 --epochs 8 --mixup 0.3
	--crop pad --pad 2 --flip 0.5 --ema 0.9 --checkpoint-steps 3 --eval-every 2 --out run --json)
train() { # FOLDER THREADS ARG...; in the background it is norma itself, so that `wait` waits for its very end
	mkdir -p "$tmp/$1"
	cd "$tmp/$1"
	exec "$NORMA" --threads "$2" train "${@:3}"
}

ran="norma train, undisturbed"
began=$(date +%s%N)
(train whole 2 "${settings[@]}") >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
grep -q '"status":"done"' "$tmp/out" || fail "not done: $(cat "$tmp/out")"
took=$((($(date +%s%N) - began) / 1000000))            # ms: kills fall anywhere in this time
cp "$tmp/whole/run/model.safetensors" "$tmp/want"
caught=0

# a run that was over before its kill does not count, and the next kill comes sooner
for ((k = 0; caught < kills && k < 10 * kills; k++)); do
	ran="kill $k" threads=$((k % 2 + 1)) folder=kill$k
	train "$folder" "$threads" "${settings[@]}" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep "$(printf '%d.%03d' $((at = RANDOM * took / 32768, at / 1000)) $((at % 1000)))"
	kill -9 "$pid" 2>/dev/null || true
	code=0
	wait "$pid" 2>/dev/null || code=$?
	if [ "$code" = 137 ]; then caught=$((caught + 1)); else took=$((took * 3 / 4)); fi
	if [ -f "$tmp/$folder/run/last.safetensors" ]; then again=(--resume --out run --json)
	else
		rm -rf "${tmp:?}/$folder/run"
		again=("${settings[@]}")
	fi
	(train "$folder" "$((3 - threads))" "${again[@]}") >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
	cmp -s "$tmp/want" "$tmp/$folder/run/model.safetensors" || fail "the weights differ from those of the undisturbed run"
	lines=$(cut -d, -f1 "$tmp/$folder/run/metrics.csv" | sort | uniq -c | awk '$1 > 2' | wc -l)
	[ "$lines" = 0 ] || fail "a step is recorded more than twice (step and evaluation)"
	rm -rf "${tmp:?}/$folder"
done

ran="kills"
[ "$caught" = "$kills" ] || fail "only $caught of $kills runs were still alive when they were to be killed"

# Ctrl-C saves and says how to go on
ran="interrupt" code=0
train int 1 "${settings[@]:0:${#settings[@]}-1}" --epochs 400 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await [ -f "$tmp/int/run/last.safetensors" ]
kill -INT "$pid"
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit code $code, not 130: $(cat "$tmp/err")"
grep -q "norma train --resume --out run" "$tmp/out" || fail "it does not say how to go on: $(cat "$tmp/out")"

# what equal bits depend on: other data or another instruction set are refused; --force goes on and the record says so
again() { # CODE ARG...: --resume of that run
	local want=$1 code=0
	ran="resume ${*:2}"
	(train int 1 --resume --out run --json "${@:2}") >"$tmp/out" 2>"$tmp/err" || code=$?
	out=$(cat "$tmp/out") err=$(cat "$tmp/err")
	[ "$code" = "$want" ] || fail "exit code $code, not $want: $err"
}
labels=$tmp/data/mnist/train-labels-idx1-ubyte
cp "$labels" "$tmp/labels"
printf '\7' | dd of="$labels" bs=1 seek=20 conv=notrunc status=none
again 1
complains "the training data are not what they were"
complains "--force"
cp "$tmp/labels" "$labels"
made_up "$tmp/data/mnist" t10k 60
again 1
complains "the evaluation data are not what they were"
set=$("$NORMA" doctor | sed -n 's/.*\b\(avx2\|avx512\)\b.*/\1/p' | sed -n 1p)
if [ -n "$set" ] && [ "${NORMA_ISA:-auto}" != plain ]; then
	made_up "$tmp/data/mnist" t10k 50
	NORMA_ISA=plain again 1
	complains "this is plain"
fi
made_up "$tmp/data/mnist" t10k 60
cd "$tmp/int"
"$NORMA" train --resume --force --out run --json >"$tmp/out" 2>"$tmp/err" &
cd - >/dev/null
pid=$!
await grep -q '"forced":"the evaluation data are not what they were"' "$tmp/int/run/events.jsonl"
kill -TERM "$pid"
wait "$pid" || true
again 2 --force --no-such
run 2 train --force
complains "--force is for --resume"
made_up "$tmp/data/mnist" t10k 50

# a loss that is not finite: exit code 3, the site, the checkpoint stays
ran="divergence" code=0
(train nan 1 "${settings[@]}" --norm none --optimizer sgd --lr 1e6 --warmup 0) >"$tmp/out" 2>"$tmp/err" || code=$?
[ "$code" = 3 ] || fail "exit code $code, not 3: $(cat "$tmp/err")"
grep -q "not finite" "$tmp/err" || fail "$(cat "$tmp/err")"
grep -q '"status":"diverged"' "$tmp/nan/run/events.jsonl" || fail "the record does not say it: $(tail -1 "$tmp/nan/run/events.jsonl")"

# a full disk: a clear error, and the old checkpoint stays whole
if mkdir "$tmp/full" && mount -t tmpfs -o size=600k tmpfs "$tmp/full" 2>/dev/null; then
	ran="full disk" code=0
	(train full 1 "${settings[@]}" --model vit_nano:dim=48,depth=2,heads=3,patch=7) >"$tmp/out" 2>"$tmp/err" || code=$?
	[ "$code" = 1 ] || fail "exit code $code, not 1: $(cat "$tmp/err")"
	grep -q "space" "$tmp/err" || fail "the error does not say why: $(cat "$tmp/err")"
	umount "$tmp/full"
fi
exit "$failed"
