#!/bin/bash
# norma smiles: the JSON of molecules, and lines that are none with their row and column.
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run_on() {
	local want=$1 text=$2 code=0
	shift 2
	printf '%b' "$text" | "$NORMA" smiles "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
	out=$(cat "$tmp/out") err=$(cat "$tmp/err") ran="norma smiles $* on '${text:0:40}'"
	[ "$code" = "$want" ] || fail "exit code $code, not $want: $err"
}

run_on 0 'CO\n'
[ "$out" = '{"smiles":"CO","num_nodes":2,"node_feat":[[5,0,4,5,3,0,2,0,0],[7,0,2,5,1,0,2,0,0]],"edge_index":[[0,1],[1,0]],"edge_feat":[[0,0,0],[0,0,0]]}' ] ||
	fail "not the graph of methanol: $out"
silent
run_on 0 'F/C=C\\F methyl\n'
says '"smiles":"F/C=C\\F"'
says '[1,1,0]'
run_on 0 '{"smiles":"C[NH3+]"}\n' --features zinc
[ "$out" = '{"smiles":"C[NH3+]","atom_type":[0,10],"bonds":[[0,1,1]]}' ] || fail "not the types of ZINC: $out"

# drawn: one formula for each good line, under its name
run_on 0 'c1ccccc1O phenol\nC1CC\nN[C@@H](C)C(=O)O\n' --draw "$tmp/sheet.svg"
complains "1 of 3 rows"
[ -z "$out" ] || fail "JSON beside the drawing: $out"
[ "$(grep -c 'class="structure"' "$tmp/sheet.svg")" = 2 ] || fail "not two formulas"
for text in '>phenol<' 'aria-label="c1ccccc1O"' '<title>N[C@@H](C)C(=O)O</title>' 'prefers-color-scheme:dark' 'class="wedge"' '2 structural formulas'; do
	grep -qF -- "$text" "$tmp/sheet.svg" || fail "the sheet lacks '$text'"
done
if command -v python3 >/dev/null; then
	python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$tmp/sheet.svg" || fail "the sheet is no XML"
fi
run_on 1 'CC\n' --draw "$tmp/none/sheet.svg"
one_line

# bad lines: told and counted, only counted, or fatal
run_on 0 'CC\nC1CC\nC[Xx]\nO\n'
complains "row 2: cannot read molecule 'C1CC': column 2: ring 1 is opened but not closed"
complains "row 3: cannot read molecule 'C[Xx]': column 3: 'Xx' is not an element"
complains "2 of 4 rows"
[ "$(wc -l <"$tmp/out")" = 2 ] || fail "not the two good lines: $out"
run_on 0 'CC\nC1CC\n' --bad skip
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "more than the number: $err"
run_on 1 'CC\nC(C)(C)(C)(C)C\n' --bad fatal
complains "row 2, column 1: C has 5 bonds"
one_line
run_on 2 'CC\n' --bad never
run_on 1 'c1cccc1\n'
complains "no place for the double bond"
head -c 1048576 /dev/zero | tr '\0' C >"$tmp/long"
run 1 smiles "$tmp/long"
complains "row 1: cannot read molecule 'CCC"
complains "1048576 characters, more than 32768"
complains "none of its rows is a molecule"
run 1 smiles "$tmp/none"
one_line

exit "$failed"
