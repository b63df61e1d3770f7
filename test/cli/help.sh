#!/bin/bash
# Help, version, manual and completion exist for every command and come from the same tables.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 0 --version; says "norma "; silent
run 0 -V; says "norma "
run 0 --help; says "usage: norma"; says "bench"; says "--threads"; silent
run 0 help; says "look inside"
run 2; complains "usage: norma"
for c in plan norms prove bench doctor completion man help; do
	run 0 help "$c"; says "usage: norma $c"; says "--threads"
	first=$out
	run 0 "$c" --help; [ "$out" = "$first" ] || fail "not the same as norma help $c"
	run 0 "$c" -h; silent
done
run 0 bench --help; says "--[no-]json"; says "--seconds X"; says "compile, both"
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
[ "$(complete train --norm dt)" = dtn ] || fail "no completion of norms"
[ "$(complete train --model vit_nan)" = vit_nano ] || fail "no completion of models"
[ "$(complete train --data = cifar100)" = cifar100 ] || fail "no completion of data sets"
[ "$(complete train --data fold)" = folder:path= ] || fail "no completion of own data"
run 0 completion zsh; says "#compdef norma"; says "vit_nano"
! command -v zsh >/dev/null || zsh -n "$tmp/out" || fail "zsh cannot read it"
run 0 completion fish; says "complete -c norma -n '__fish_seen_subcommand_from train' -l norm -x -a"; says "cifar100"
! command -v fish >/dev/null || fish -n "$tmp/out" || fail "fish cannot read it"
run 2 completion csh; complains "bash, zsh and fish"; one_line

# every line of every help fits a terminal
export LC_ALL=C.UTF-8
run 0 help
for c in "" $(sed -n 's/^  \([a-z]*\) .*/\1/p' "$tmp/out"); do
	# shellcheck disable=SC2086 # no command: no word
	run 0 help $c
	wide=$(grep -E '^.{81}' "$tmp/out" || true)
	[ -z "$wide" ] || fail "help $c is wider than 80 columns: $wide"
done

run 0 man; says "norma(1)"; says "# EXIT STATUS"; says "NORMA"; says "*norma-bench*(1)"
cp "$tmp/out" "$tmp/man.scd"
run 0 man train; says "norma-train(1)"; says '\[RECIPE.yaml\]'; says "*--epochs*"
run 2 man nosuch; complains "unknown command 'nosuch'"
run 0 man bench; says "*--seconds*"
if command -v scdoc >/dev/null; then
	scdoc <"$tmp/man.scd" >"$tmp/norma.1" 2>"$tmp/scdoc" || fail "scdoc refuses it: $(cat "$tmp/scdoc")"
	grep -q 'norma.*bench' "$tmp/norma.1" || fail "the manual lacks norma bench"
	run 0 man --out "$tmp/pages"; silent
	for page in norma norma-train norma-report norma-man; do
		scdoc <"$tmp/pages/$page.1.scd" >"$tmp/$page.1" || fail "scdoc refuses $page"
	done
	if command -v man >/dev/null; then
		MANWIDTH=80 man -l "$tmp/norma-train.1" >"$tmp/page" 2>"$tmp/err" || fail "man cannot show it: $(cat "$tmp/err")"
		grep -qF '[RECIPE.yaml]' "$tmp/page" || fail "the page has no [RECIPE.yaml]: $(sed -n 1,12p "$tmp/page")"
	fi
fi
exit "$failed"
