#!/bin/bash
# runs lists a store, shows one run, tells a killed one from a running one, and survives stores that are none.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

writer=${NORMA_BUILD:-build}/test/unit-recorder
[ -x "$writer" ] || { echo "$writer is not built" >&2; exit 77; }
mkdir "$tmp/runs" && "$writer" sample "$tmp/runs"
NORMA=$(realpath "$NORMA")
cd "$tmp"
names() { awk 'NR > 1 { printf "%s ", $1 }' <<<"$out"; }
order() { [ "$(names)" = "$1" ] || fail "order is $(names)"; }

# the usual place, a folder, a file
run 0 runs; says "eval_top1 (best)"; silent; first=$out
order "vit-ln-0 vit-bn-0 vit-dtn-0 "
run 0 runs --store runs; [ "$out" = "$first" ] || fail "a folder is not its runs.db"
run 0 runs --store runs/runs.db; [ "$out" = "$first" ] || fail "not the same by its path"
grep -q '^vit-ln-0 *train *done .* 300 ' <<<"$first" || fail "a finished run: $first"
grep -q '^vit-bn-0 *train *interrupted .* 120 ' <<<"$first" || fail "an interrupted run: $first"
grep -q '^vit-dtn-0 *finetune *killed .* 200 ' <<<"$first" || fail "a killed run: $first"
run 0 runs --sort loss; order "vit-dtn-0 vit-ln-0 vit-bn-0 "
run 0 runs --sort accuracy; order "vit-ln-0 vit-dtn-0 vit-bn-0 "
run 0 runs --sort name; order "vit-bn-0 vit-dtn-0 vit-ln-0 "
run 0 runs --sort steps; order "vit-ln-0 vit-dtn-0 vit-bn-0 "
run 2 runs --sort los; complains "did you mean 'loss'?"; one_line
run 0 runs --json; [ "$(wc -l <"$tmp/out")" = 3 ] || fail "not a line for each run"
says '"status":"killed"'; says '"finished":null'; says '"seed":2'

# one run, by name, number, directory
run 0 runs vit-ln-0; grep -q "op.1 .* % at the end, best .* % at step" <<<"$(head -1 "$tmp/out")" || fail "the headline is not first: $out"
says "Results"; says "best_top1"; says "epochs: 3"; says "vit_tiny"; says "line two"; says "eval_top1"; silent
says "┤⠑⠢"
! grep -q $'\033' "$tmp/out" || fail "an escape sequence of the store reaches the terminal"
one=$out
run 0 runs 1; [ "$out" = "$one" ] || fail "not the same by number"
run 0 runs vit-ln-0 --json; json id name status results metrics config env steps values
run 2 runs vit-in-0; complains "did you mean 'vit-ln-0'?"; one_line
run 2 runs a b; one_line

# a run that runs: its lock is held
exec 9<>runs/vit-dtn-0/events.jsonl
if command -v python3 >/dev/null; then
	# F_OFD_SETLK with F_WRLCK on the whole file, kept by descriptor 9
	python3 -c 'import fcntl, struct; fcntl.fcntl(9, 37, struct.pack("hhqqi4x", 1, 0, 0, 0, 0))'
	run 0 runs --json; says '"status":"running"'
fi
exec 9>&-

# a disk where nothing may be written: the log cannot be joined
mkdir sealed
cp runs/runs.db sealed/runs.db
if [ "$(id -u)" = 0 ] && mount --bind sealed sealed 2>/dev/null && mount -o remount,ro,bind sealed 2>/dev/null; then
	run 0 runs --store sealed; says "vit-ln-0"
fi
umount sealed 2>/dev/null || true

# stores that are none
mkdir empty
cd empty
run 1 runs; complains "--store"; one_line
run 1 runs --store nothing.db; complains "nothing.db"; one_line
[ ! -e nothing.db ] || fail "reading made a store"
echo "this is no database at all, whatever its name may say about it, and it is long enough" >text.db
run 1 runs --store text.db; complains "not a database"; one_line
: >void.db
run 1 runs --store void.db; complains "empty"; one_line
for n in 100 5000 9000 20000; do # cut off
	head -c $n ../runs/runs.db >cut.db
	code=0
	"$NORMA" runs --store cut.db >"$tmp/out" 2>"$tmp/err" || code=$?
	ran="runs with a store of $n bytes"
	[ $code -le 1 ] || fail "exit code $code"
done
exit "$failed"
