#!/bin/bash
# Help, version, manual and completion exist for every command and come from the same tables.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 0 --version; says "norma "; silent
run 0 -V; says "norma "
run 0 --help; says "usage: norma"; says "bench"; says "--threads"; silent
run 0 help; says "commands"
run 2; complains "usage: norma"
for c in plan norms prove bench doctor completion man help; do
	run 0 help "$c"; says "usage: norma $c"; says "--threads"
	first=$out
	run 0 "$c" --help; [ "$out" = "$first" ] || fail "not the same as norma help $c"
	run 0 "$c" -h; silent
done
run 0 bench --help; says "--[no-]json"; says "--seconds X"; says "eager, compile, both"
run 2 help nosuch; complains "unknown command 'nosuch'"; one_line

# No escape sequences off a terminal.
run 0 help; ! grep -q $'\033' <<<"$out" || fail "colours in a file"

run 0 completion bash; bash -n "$tmp/out" || fail "bash cannot read it"
complete() { # words of the command line; the last is being completed
	bash -c '. "$1"; shift; COMP_WORDS=(norma "$@"); COMP_CWORD=$#; _norma; echo "${COMPREPLY[@]}"' - "$tmp/out" "$@"
}
ran=completion
[ "$(complete "do")" = doctor ] || fail "no completion of commands"
[ "$(complete bench step vit_tiny_bs8/t)" = vit_tiny_bs8/train ] || fail "no completion of cases"
[ "$(complete bench --peer co)" = compile ] || fail "no completion of an option's choices"
[ "$(complete --isa pl)" = plain ] || fail "no completion of a common option's choices"
[ "$(complete plan --inst)" = --instructions ] || fail "no completion of options"
run 2 completion fish; complains "bash"; one_line

run 0 man; says "norma(1)"; says "# EXIT STATUS"; says "NORMA"; says "*--seconds*"
if command -v scdoc >/dev/null; then
	cp "$tmp/out" "$tmp/man.scd"
	scdoc <"$tmp/man.scd" >"$tmp/norma.1" 2>"$tmp/scdoc" || fail "scdoc refuses it: $(cat "$tmp/scdoc")"
	grep -q "norma bench" "$tmp/norma.1" || fail "the manual lacks norma bench"
fi
exit "$failed"
