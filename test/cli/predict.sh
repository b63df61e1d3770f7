#!/bin/bash
# predict on molecules says what `norma graph` wrote of them, in any order, on 1 and on 2 threads; lines that are no molecules are told, and
# the others get their values. (Pictures: infer.sh.)
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc

# values of molecules of many sizes
{
	echo smiles,solubility,split
	for ((i = 0; i < 60; i++)); do
		chain=$(printf 'C%.0s' $(seq $((i % 13 + 1))))
		split=train
		((i % 3 == 1)) && split=valid
		((i % 3 == 2)) && split='test'
		echo "$chain$( ((i % 2)) && echo N || echo c1ccccc1),$((i % 13)).$((i % 10)),$split"
	done
} >"$tmp/values.csv"
run 0 graph --data "molecules:path=$tmp/values.csv,features=zinc,cache=none" --model graphormer-nano:depth=2 --norm "sep(bn,ln)" --batch 8 --lr 3e-3 \
	--epochs 3 --warmup 0 --eval-batch 7 --out "$tmp/values"
made_up_classes >"$tmp/classes.csv"
run 0 graph --data "molecules:path=$tmp/classes.csv,cache=none" --model graphormer:dim=24,depth=1,heads=2,hidden=24 --batch 8 --epochs 3 --warmup 0 \
	--out "$tmp/classes"

# shown FILE: line, task and %.7g of what each line of JSON says
shown() {
	sed 's/.*"line":\([0-9]*\),.*"tasks":\[\(.*\)\]}/\1 \2/; s/{"task":\([0-9]*\),"name":"[^"]*","\(value\|probability\)":\([^}]*\)},*/\1 \3 /g' "$1" |
		awk '{ for (i = 2; i < NF; i += 2) printf "%d %d %.7g\n", $1, $i, $(i + 1) }'
}
# the numbers are those of predictions.csv: the file's line of a molecule is its line here
for set in values classes; do
	tail -n +2 "$tmp/$set/predictions.csv" | cut -d, -f4 >"$tmp/$set.smi"
	for threads in 1 2; do
		run 0 predict "$tmp/$set/best.safetensors" --json --threads $threads <"$tmp/$set.smi"; silent
		cp "$tmp/out" "$tmp/$set.$threads"
	done
	cmp -s "$tmp/$set.1" "$tmp/$set.2" || fail "numbers depend on the threads"
	shown "$tmp/$set.1" >"$tmp/shown"
	awk -F, 'NR > 1 { print NR - 1, $3, $6 }' "$tmp/$set/predictions.csv" >"$tmp/want"
	[ "$(wc -l <"$tmp/want")" -ge 10 ] || fail "there is too little to compare"
	[ -z "$(sort "$tmp/want" | comm -23 - <(sort "$tmp/shown"))" ] || fail "not the numbers of predictions.csv: $(sort "$tmp/want" | comm -23 - <(sort "$tmp/shown") | sed -n 1,3p)"
done
grep -q '"name":"solubility","value":' "$tmp/values.1" || fail "no value under the column's name"
grep -q '"name":"ring","probability":0\.' "$tmp/classes.1" || fail "no probability under the column's name"

# neither neighbours nor the order show, nor which block of lines one is in
plain() { sed 's/"\(line\|argument\)":[0-9]*,//'; }
plain <"$tmp/values.1" | sort -u >"$tmp/want"
run 0 predict "$tmp/values/best.safetensors" --json < <(sort -r "$tmp/values.smi"; echo CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC)
[ -z "$(plain <"$tmp/out" | sort -u | comm -23 "$tmp/want" -)" ] || fail "the order or a large neighbour shows"
run 0 predict "$tmp/values/best.safetensors" --json "$(head -1 "$tmp/values.smi")"; json argument smiles tasks
[ "$(plain <"$tmp/out")" = "$(head -1 "$tmp/values.1" | plain)" ] || fail "alone it is another number"
run 0 predict "$tmp/values/best.safetensors" --json < <(printf 'C%.0s\n' $(seq 9000); cat "$tmp/values.smi")
[ "$(wc -l <"$tmp/out")" = $((9000 + $(wc -l <"$tmp/values.smi"))) ] || fail "lines are lost between blocks"
tail -n +9001 "$tmp/out" | plain | sort -u | cmp -s - "$tmp/want" || fail "the block of lines shows"
grep -q '^{"line":9001,' <<<"$(sed -n 9001p "$tmp/out")" || fail "not the numbers of the lines"

# names, tabs, empty lines, a folder of a run
printf 'CCO ethanol\n\n  CCN\tamine of two \r\nCCC\n' >"$tmp/three.smi"
run 0 predict "$tmp/values" <"$tmp/three.smi"; silent
[ "$(awk '{ $NF = ""; print }' <<<"$out" | sed 's/ *$//')" = "molecule
ethanol
amine of two
CCC" ] || fail "not a table by names: $out"
grep -q 'solubility$' <<<"$(head -1 <<<"$out")" || fail "the table does not name the task"
run 0 predict "$tmp/values" --json <"$tmp/three.smi"
grep -q '^{"line":3,"smiles":"CCN","name":"amine of two","tasks":\[{' <<<"$(sed -n 2p "$tmp/out")" || fail "not line 3 with its name: $out"
echo "in water" >"$tmp/names"
run 0 predict "$tmp/values" CCO --names "$tmp/names"; says "in water"
run 0 predict "$tmp/classes" "CCO ethanol" CCN; says "ring"; says "never"; [ "$(wc -l <"$tmp/out")" = 3 ] || fail "not two molecules"
grep -q '"name":"a??b"' <<<"$(printf 'CCO a\xff\x01b\n' | "$NORMA" predict "$tmp/values" --json)" || fail "a name that is no UTF-8 is not told so"

# lines that are no molecules, or none for this model
printf 'CCO\nC1CC ring\nCC\n[Xe] xenon\n' >"$tmp/bad.smi"
for form in "" --json; do
	run 1 predict "$tmp/values" $form <"$tmp/bad.smi"
	complains "line 2: cannot read molecule 'C1CC': column 2: ring 1"; complains "line 4:"; complains "2 of 4"
	[ "$(grep -c 'CCO\|CC' <<<"$out")" = 2 ] || fail "not two molecules: $out"
done
run 1 predict "$tmp/values" CCO C1CC; complains "argument 2: cannot read molecule"; complains "1 of 2"; says "CCO"
run 1 predict "$tmp/values" C1CC; complains "ring 1"; one_line
run 2 predict "$tmp/values" </dev/null; complains "standard input has none"; one_line
run 2 predict "$tmp/values" CCO --pixels half; complains "pixels=half does not apply to"; one_line

# more tasks than a table has columns: a row for each
awk 'BEGIN { printf "smiles"; for (t = 0; t < 40; t++) printf ",assay%d", t; print ",split"
	for (i = 0; i < 8; i++) { printf i % 2 ? "CCO" : "CCN"; for (t = 0; t < 40; t++) printf ",%d", (i + t) % 2
		print i < 4 ? ",train" : ",valid" } }' >"$tmp/wide.csv"
run 0 graph --data "molecules:path=$tmp/wide.csv,cache=none" --model graphormer:dim=8,depth=1,heads=2,hidden=8 --batch 4 --steps 1 --out "$tmp/wide"
run 0 predict "$tmp/wide" "CCO ethanol" CC; says "probability"; [ "$(grep -c '^ethanol *assay' "$tmp/out")" = 40 ] || fail "not forty rows: $out"

# what the outputs are: the file says so, also when it was converted, or the user
run 0 convert "$tmp/classes/best.safetensors" "$tmp/copy.safetensors"
run 0 predict "$tmp/copy.safetensors" CCO --json; json probability; copy=$out
run 0 predict "$tmp/classes/best.safetensors" CCO --json; [ "$out" = "$copy" ] || fail "a converted file says something else"
run 0 predict "$tmp/copy.safetensors" CCO --json --outputs value; json value
run 0 models graphormer-nano --write "$tmp/new.safetensors"
run 2 predict "$tmp/new.safetensors" CCO; complains "--outputs value"; one_line
run 0 predict "$tmp/new.safetensors" CCO --outputs value; says "task 1"
run 0 models graphormer-nano:node_features=2,classes=1 --write "$tmp/odd.safetensors"
run 1 predict "$tmp/odd.safetensors" CCO --outputs value; complains "2 features of nodes and 1 of edges"; one_line
run 0 models graphormer-nano:in_degrees=3 --write "$tmp/few.safetensors"
run 1 predict "$tmp/few.safetensors" --outputs value CC "CC(C)C isobutane"; complains "argument 2"; complains "in_degrees"; says "CC"
exit $failed
