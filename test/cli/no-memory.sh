#!/bin/bash
# Each allocation of a command fails in turn, by a preloaded library (test/crash/fault.c; of those with the same call path the first): it ends
# with a message and another exit code than 0, or prints all that it should. test/crash/crash.sh does the same with larger commands.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
[ -z "${NORMA_SANITIZE:-}" ] || { echo "sanitizers have allocations of their own"; exit 77; }
shim=${NORMA_BUILD:-build}/test/libfault.so
[ -f "$shim" ] || { echo "no '$shim': build the target fault"; exit 77; }
export OMP_NUM_THREADS=1

# sweep NAME COMMAND...: what is printed decides
sweep() {
	local n code told=0
	ran=$1
	shift
	FAULT_PATHS=$tmp/paths LD_PRELOAD=$shim "$@" >"$tmp/want" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
	sort -nu "$tmp/paths" >"$tmp/numbers"
	while read -r n; do
		code=0
		FAULT_ALLOC=$n LD_PRELOAD=$shim "$@" >"$tmp/got" 2>"$tmp/err" || code=$?
		if [ "$code" = 0 ]; then
			cmp -s "$tmp/want" "$tmp/got" || fail "allocation $n: exit code 0, but not all of the output"
		elif [ "$code" -gt 4 ] || [ ! -s "$tmp/err" ]; then fail "allocation $n: exit code $code: $(cat "$tmp/err")"
		else told=$((told + 1)); fi
	done <"$tmp/numbers"
	[ "$told" -gt 20 ] || fail "only $told allocations were missed"
	rm "$tmp/paths"
}

# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up "$tmp/data/mnist" train 20
made_up "$tmp/data/mnist" t10k 10
cat >"$tmp/study.yaml" <<-END
	title: no memory
	base: {data: mnist, data_root: $tmp/data, model: "vit_nano:dim=24,depth=1,heads=3,patch=7", epochs: 1}
	stages: [train, {knn: {data_root: $tmp/data}}]
	arms: [{name: a, norm: ln}, {name: b, norm: bn}]
	seeds: 2
	metric: knn.top1
	out: $tmp/study
END
sweep 'study --dry-run' "$NORMA" study "$tmp/study.yaml" --dry-run
exit "$failed"
