#!/bin/bash
# Mistakes give one line that names the subject and the nearest match, and the right exit code.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 2 benhc; complains "unknown command 'benhc' (did you mean 'bench'?)"; one_line
run 2 zzzzzz; complains "unknown command 'zzzzzz'"; one_line
run 2 bench; complains "one of step, all, latency"; complains "embed, startup"; one_line
run 2 bench stpe vit_tiny_bs8; complains "did you mean 'step'?"; one_line
run 2 bench step; complains "one case"; one_line
run 2 bench step a b; complains "one case"; one_line
run 2 bench step nosuch; complains "unknown case 'nosuch'"; complains "vit_tiny_bs8"; one_line
run 2 bench step vit_tiny_bs9; complains "did you mean 'vit_tiny_bs8'?"; one_line
run 2 bench step vit_tny_bs8/infer; complains "did you mean 'vit_tiny_bs8/infer'?"; one_line
run 2 bench step vit_tiny_bs8/trian; complains "did you mean 'vit_tiny_bs8/train'?"; one_line
run 2 bench step vit_tiny_bs8 --sceonds 1; complains "did you mean '--seconds'?"; one_line
run 2 bench step vit_tiny_bs8 --seconds soon; complains "--seconds"; one_line
run 2 bench step vit_tiny_bs8 --seconds -1; complains "--seconds"; one_line
run 2 bench step vit_tiny_bs8 --seconds; complains "needs a value"; one_line
run 2 bench step vit_tiny_bs8 --peer=eagre; complains "--peer"; one_line
run 2 bench step vit_tiny_bs8 --tiny --peer; complains "exclude each other"; one_line
run 2 bench loop mae32_bs128; complains "no hand-written loop"; one_line
run 2 --threads many plan vit_tiny_bs8; complains "--threads"; one_line
run 2 --isa sse plan vit_tiny_bs8; complains "--isa"; one_line
run 2 --nosuch plan vit_tiny_bs8; complains "unknown option '--nosuch'"; one_line
run 2 plan; complains "plan needs one case"; one_line
run 2 plan nosuch; complains "unknown case"; one_line
run 2 doctor now; complains "no arguments"; one_line
run 2 man 1; complains "unknown command '1'"; one_line
# names from outside cannot reach the terminal as escape sequences
run 2 plan $'\033[31mred'; ! grep -q $'\033' "$tmp/err" || fail "an escape sequence came through"

NORMA_PEERS=$tmp/none run 1 bench step vit_tiny_bs8 --peer eager; complains "setup-peers"; one_line
NORMA_ISA=sse9 run 0 plan vit_tiny_bs8 --tiny; complains "NORMA_ISA='sse9' is not known"

# a full disk is an error, not a lost line
if [ -w /dev/full ]; then
	ran="norma help >/dev/full" code=0
	"$NORMA" help >/dev/full 2>"$tmp/err" || code=$?
	[ "$code" = 1 ] || fail "exit code $code"
fi
# interrupted: 130
ran="interrupt" code=0
bash -c 'trap - INT; exec "$0" bench step vit_tiny_bs8 --seconds 60 >/dev/null' "$NORMA" &
pid=$!
# It has set its handler: before that it ignores the signal, as what runs in the background of a script does.
# shellcheck disable=SC2317 # `await` calls it
begun() { [ "/proc/$pid/exe" -ef "$NORMA" ] && (((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status") & 2) != 0)); }
await begun
kill -INT "$pid"
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit code $code, not 130"
exit "$failed"
