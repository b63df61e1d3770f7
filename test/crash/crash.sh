#!/bin/bash
# The crash laboratory: crash.sh [kills|faults]... (default: both). Trainings, studies, downloads, converts and reports are killed (-9, TERM,
# HUP) at random moments, or an allocation or a write of theirs fails; then the same command runs again, undisturbed. All bits must be those
# of a run that nobody disturbed. CRASH_KILLS: kills in all (50); CRASH_FAULTS: faults of each kind in each command (20), spread evenly over
# all there are; 0: every write, and every allocation that has a call path of its own. CRASH_SEED: of the moments (1). CRASH_KINDS: only
# these commands. Prints one line for each kind; exit code 1 if anything was lost.
set -euo pipefail
cd "$(dirname "$0")/../.."
NORMA=$(realpath "${NORMA:-build/bin/norma}") GET=$(realpath "${CRASH_GET:-build/test/crash-get}") SHIM=$(realpath "${CRASH_SHIM:-build/test/libfault.so}")
kills=${CRASH_KILLS:-50} faults=${CRASH_FAULTS:-20}
RANDOM=${CRASH_SEED:-1}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}
if [ -w /dev/shm ]; then tmp=$(mktemp -d -p /dev/shm); else tmp=$(mktemp -d); fi       # in memory: most of the time goes into fsync
# shellcheck disable=SC2317 # the trap's
finish() { [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"; }
trap finish EXIT
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
lost=0
fail() { echo "LOST: $*" >&2; lost=$((lost + 1)); }

# ---- what is disturbed: each runs in a folder of its own and can be called again after any end; `result` hashes what it leaves
made_up "$tmp/data/mnist" train 120
made_up "$tmp/data/mnist" t10k 20
model="vit_nano:dim=24,depth=1,heads=3,patch=7,dropout=0.1"
base=(--data mnist --data-root "$tmp/data" --model "$model" --norm "sep(bn,ln)" --batch 16 --checkpoint-steps 2)
cat >"$tmp/study.yaml" <<-END
	title: crash
	base: {data: mnist, data_root: $tmp/data, model: "$model", batch: 16, checkpoint_steps: 2}
	stages: [{train: {epochs: 2}}, {knn: {data_root: $tmp/data, limit: 50}}]
	arms: [{name: a, norm: ln}, {name: b, norm: bn}]
	seeds: [0, 1]
	metric: knn.top1
	out: study
END
sed 's/epochs: 2/steps: 1/; s/^arms: .*/arms: [{name: a, norm: ln}]/; s/^seeds: .*/seeds: 1/' "$tmp/study.yaml" >"$tmp/small_study.yaml"
plain_csv() { cut -d, -f1,2,4-6,8- "$1" 2>/dev/null; }     # without the clock: seconds, samples_per_s
cmd_train() {
	if [ -f run/last.safetensors ]; then exec "$NORMA" train --resume --out run --json; fi
	rm -rf run
	exec "$NORMA" train "${base[@]}" --epochs 8 --eval-every 2 --ema 0.9 --out run --json
}
result_train() { { cat run/model.safetensors run/best.safetensors; plain_csv run/metrics.csv; ls -A run; } | sha256sum; }
# the same at the size for thousands of faults
cmd_small_train() {
	if [ -f run/last.safetensors ]; then exec "$NORMA" train --resume --out run --json; fi
	rm -rf run
	exec "$NORMA" train "${base[@]}" --steps 2 --checkpoint-steps 1 --workers 1 --out run --json
}
result_small_train() { { cat run/model.safetensors; plain_csv run/metrics.csv; ls -A run; } | sha256sum; }
cmd_small_study() { FAULT_IN=study exec "$NORMA" study "$tmp/small_study.yaml"; }
result_small_study() { result_study; }
cmd_study() { exec "$NORMA" study "$tmp/study.yaml"; }
result_study() {
	for d in study/*/seed-*; do cat "$d"/train/model.safetensors; plain_csv "$d/train/metrics.csv"; done | sha256sum
	cut -d, -f1-7,9- study/table.csv | sha256sum     # without the column `time`
	find study -name '.*.tmp' | sha256sum
}
cmd_download() { exec "$GET" "$address" archive.tgz "$sum" unpacked; }
result_download() { { cat archive.tgz; cd unpacked; find . -type f | sort | xargs cat; find . | sort; } | sha256sum; find . -maxdepth 1 | sort | sha256sum; }
cmd_convert() { exec "$NORMA" convert "$tmp/model.safetensors" out/ --to timm --force; }
result_convert() { { cat out/*; ls -A out; } | sha256sum; }
cmd_report() { exec "$NORMA" report "$tmp/reported" --output report.html; }
result_report() { { sed 's/Made on [^ ]*//' report.html; ls -A; } | sha256sum; }
# what is printed is whole, or the exit code says so
cmd_inspect() { exec "$NORMA" inspect "$tmp/model.safetensors" >out.txt; }
result_inspect() { sha256sum <out.txt; }
cmd_dry_run() { exec "$NORMA" study "$tmp/study.yaml" --dry-run >out.txt; }
result_dry_run() { sha256sum <out.txt; }

prepare() {
	mkdir -p "$tmp/served/tree"
	for k in 1 2 3 4 5 6 7 8; do head -c $((k * 100000)) /dev/urandom >"$tmp/served/tree/$k"; done
	tar -C "$tmp/served" -czf "$tmp/served/archive.tgz" tree
	sum=$(sha256sum <"$tmp/served/archive.tgz" | cut -d' ' -f1)
	python3 test/crash/server.py "$tmp/served" >"$tmp/port" &
	server=$!
	while [ ! -s "$tmp/port" ]; do sleep 0.05; done
	address=http://127.0.0.1:$(cat "$tmp/port")/archive.tgz
	"$NORMA" train "${base[@]}" --model "vit_nano:dim=96,depth=6,heads=3,patch=7" --epochs 1 --out "$tmp/reported" >"$tmp/log" 2>&1
	cp "$tmp/reported/model.safetensors" "$tmp/model.safetensors"
}

# undisturbed KIND: sets $want and $took (ms)
undisturbed() {
	mkdir -p "$tmp/want-$1"
	local began
	began=$(date +%s%N)
	(cd "$tmp/want-$1" && "cmd_$1") >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	took=$((($(date +%s%N) - began) / 1000000 + 1))
	want=$(cd "$tmp/want-$1" && "result_$1")
}
# again KIND WHAT: the command once more, to its end, and all bits compared
again() {
	(cd "$tmp/at" && "cmd_$1") >"$tmp/log" 2>&1 || { fail "$2: it does not go on: $(tail -n 1 "$tmp/log")"; return 0; }
	[ "$(cd "$tmp/at" && "result_$1")" = "$want" ] || fail "$2: other bits"
}

kill_some() { # KIND COUNT
	local signals=(9 TERM HUP) caught=0 k code signal pid
	undisturbed "$1"
	local before=$lost
	for ((k = 0; caught < $2 && k < 20 * $2; k++)); do
		signal=${signals[k % 3]}
		rm -rf "$tmp/at" && mkdir "$tmp/at"
		(cd "$tmp/at" && "cmd_$1") >"$tmp/log" 2>&1 &
		pid=$!
		sleep "$(printf '%d.%03d' $((at = RANDOM * took / 32768, at / 1000)) $((at % 1000)))"
		kill -"$signal" "$pid" 2>/dev/null || true
		code=0
		wait "$pid" 2>/dev/null || code=$?
		if [ "$code" = 0 ]; then took=$((took * 7 / 8 + 1)); continue; fi      # over before its kill
		caught=$((caught + 1))
		case $code in 129 | 130 | 137 | 143) ;; *) fail "$1: kill $k by $signal: exit code $code: $(tail -n 1 "$tmp/log")" ;; esac
		await_children
		again "$1" "$1: kill $k by $signal"
	done
	echo "kills   $1: $caught caught, $((lost - before)) lost"
}
# stages of a killed study end by themselves: their folders are free then
await_children() {
	local i
	for ((i = 0; i < 600; i++)); do
		if ! find "$tmp/at" -name events.jsonl -exec sh -c 'for f; do flock -n "$f" true || exit 1; done' _ {} + 2>/dev/null; then sleep 0.1; continue; fi
		if ! pgrep -f "$tmp/data" >/dev/null; then return; fi
		sleep 0.1
	done
}

# numbers WHAT TOTAL: which faults are tried
numbers() {
	if [ "$faults" != 0 ]; then seq 1 $(($2 / faults > 0 ? $2 / faults : 1)) "$2"
	elif [ "$1" = ALLOC ]; then sort -nu "$tmp/paths"
	else seq 1 "$2"; fi
}
# the names of our functions on the call path of the fault, innermost first
where() { sed -n "s|^$NORMA(+\(0x[0-9a-f]*\)).*|\1|p" "$tmp/where" 2>/dev/null | sed -n 1,8p | addr2line -f -e "$NORMA" 2>/dev/null | sed -n 'p;n' | xargs; }
fault() { # KIND WHAT NUMBER
	local code=0 name="$1: ${2,,} $3"
	rm -rf "$tmp/at" "$tmp/where" && mkdir "$tmp/at"
	(cd "$tmp/at" && export "FAULT_$2=$3" FAULT_WHERE="$tmp/where" && LD_PRELOAD=$SHIM "cmd_$1") >"$tmp/log" 2>"$tmp/err" || code=$?
	name="$name ($(where))"
	await_children
	if [ "$code" -gt 4 ]; then fail "$name: exit code $code: $(tail -n 1 "$tmp/err")"
	elif [ "$code" = 0 ] && [ "$(cd "$tmp/at" && "result_$1")" != "$want" ]; then fail "$name: exit code 0, but not what it should be"
	elif [ "$code" = 0 ]; then fine=$((fine + 1)); return 0
	elif [ ! -s "$tmp/err" ]; then fail "$name: exit code $code without a word"
	else told=$((told + 1)); fi
	if [ -n "$(ls -A "$tmp/at")" ]; then again "$1" "$name"; fi
}
fail_some() { # KIND
	local what total n before=$lost told fine tried
	undisturbed "$1"
	rm -rf "$tmp/at" "$tmp/counts" "$tmp/paths" && mkdir "$tmp/at"
	(cd "$tmp/at" && FAULT_COUNT=$tmp/counts FAULT_PATHS=$tmp/paths LD_PRELOAD=$SHIM "cmd_$1") >"$tmp/log" 2>&1 ||
		{ fail "$1 under the shim: $(tail -n 1 "$tmp/log")"; return; }
	for what in ALLOC WRITE; do
		total=$(awk -v k="$([ "$what" = ALLOC ] && echo 1 || echo 2)" '$k > most { most = $k } END { print most + 0 }' "$tmp/counts")
		tried=0 told=0 fine=0
		for n in $(numbers "$what" "$total"); do
			fault "$1" "$what" "$n"
			tried=$((tried + 1))
		done
		echo "faults  $1: ${what,,}: $tried of $total tried, $told ended with a message, $fine did no harm"
	done
	echo "faults  $1: $((lost - before)) lost"
}

[ $# -gt 0 ] || set -- kills faults
prepare
for part; do
	case $part in
	kills)
		for kind in ${CRASH_KINDS:-train study download convert report}; do
			case $kind in train) tenths=4 ;; study | download) tenths=2 ;; *) tenths=1 ;; esac
			kill_some "$kind" $((kills * tenths / 10))
		done
		;;
	faults) for kind in ${CRASH_KINDS:-inspect dry_run convert report small_train small_study}; do fail_some "$kind"; done ;;
	*) echo "crash.sh [kills|faults]..." >&2; exit 2 ;;
	esac
done
echo "$lost lost"
[ "$lost" = 0 ]
