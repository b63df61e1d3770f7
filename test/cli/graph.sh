#!/bin/bash
# graph trains on molecules: values and classes, missing labels, rows that are no molecules; killed and resumed, on 1 and on 2 threads, with
# noise or without, the bits are the same.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
NORMA=$(realpath "$NORMA")
export NORMA_DATA="$tmp/data"
mkdir -p "$tmp/data"

# chains and rings of all sizes: the target counts carbons and oxygens
{
	echo smiles,target,split
	for ((i = 0; i < 48; i++)); do
		chain=$(printf 'C%.0s' $(seq $((i % 11 + 1))))
		for tail in O c1ccccc1 ; do
			split=train
			((i % 6 == 4)) && split=valid
			((i % 6 == 5)) && split=test
			echo "$chain$tail,$((i % 11)).$((i % 10)),$split"
		done
	done
} >"$tmp/values.csv"
values="molecules:path=$tmp/values.csv,features=zinc"
small=(--model graphormer-nano:depth=2,attention_dropout=0.1,activation_dropout=0.1 --batch 8 --lr 3e-3)

# what a set is
run 0 data info "$values"; says "64 train, 16 val, 16 test"; says "2 to 17 nodes"; says "1 of a node, 1 of an edge"
run 0 data info "$values" --split val --json; json nodes targets bad_rows; says '"known":16'
[ "$(find "$tmp/data/cache" -name '*.graphs' | wc -l)" = 1 ] || fail "no prepared graphs in the data root"
run 0 data info "$values,cache=none"; silent

# values
run 0 graph --data "$values" "${small[@]}" --epochs 40 --warmup 2 --out "$tmp/values" --json
json eval_loss eval_mae eval_test_mae best_mae train_loss
says '"eval_samples":16'
mae=$(sed 's/.*"eval_mae":\([0-9.e-]*\).*/\1/' <<<"$out")
awk -v m="$mae" 'BEGIN { exit !(m < 2) }' || fail "it learns nothing: mean absolute error $mae"
head -1 "$tmp/values/metrics.csv" | grep -q eval_test_mae || fail "no test error in the record"
run 0 graph --data "$values" "${small[@]}" --epochs 1 --warmup 0 --out "$tmp/text" --objective mse --no-test
says "squared error, 1 target"; says "batches of 5 sizes"; says "best mae"

# padding does not show: other batches, the same errors
for rows in 3 16; do
	run 0 graph --data "$values" "${small[@]}" --norm "sep(bn,ln)" --steps 2 --eval-batch $rows --out "$tmp/rows-$rows" --json
	grep -o '"eval_[a-z_]*mae":[0-9.]*' <<<"$out" | cut -c1-24 >"$tmp/rows.$rows"
done
cmp -s "$tmp/rows.3" "$tmp/rows.16" || fail "errors depend on the batches of the evaluation: $(cat "$tmp"/rows.*)"

# killed and resumed, 1 and 2 threads
bits=(--data "$values" "${small[@]}" --norm "sep(bn,ln)" --epochs 20 --accumulate 2 --flag 2 --checkpoint-steps 2 --out run --json)
train() { # FOLDER THREADS ARG...
	local folder=$1 threads=$2
	shift 2
	mkdir -p "$tmp/$folder"
	(cd "$tmp/$folder" && exec timeout -s KILL "${limit:-600}" "$NORMA" --threads "$threads" graph "$@")
}
ran="norma graph, undisturbed"
train whole 1 "${bits[@]}" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
ran="norma graph, 2 threads, killed"
for limit in 0.3 0.4 0.5 600; do
	if [ -f "$tmp/parts/run/last.safetensors" ]; then again=(--resume --out run --json)
	else again=("${bits[@]}"); rm -rf "$tmp/parts/run"; fi
	train parts 2 "${again[@]}" >"$tmp/out" 2>"$tmp/err" || [ "$limit" != 600 ] || fail "$(cat "$tmp/err")"
done
cmp -s "$tmp/whole/run/model.safetensors" "$tmp/parts/run/model.safetensors" || fail "the weights differ from those of the undisturbed run"

# classes: several tasks with missing labels; one has a single class
{
	echo smiles,oxygen,ring,never,split
	for ((i = 0; i < 40; i++)); do
		chain=$(printf 'C%.0s' $(seq $((i % 9 + 1))))
		split=train
		((i % 4 == 3)) && split=valid
		((i % 3 == 0)) && echo "${chain}O,1,,0,$split" && continue
		((i % 3 == 1)) && echo "${chain}c1ccccc1,0,1,,$split" && continue
		echo "${chain}N,,0,0,$split"
	done
} >"$tmp/classes.csv"
classes="molecules:path=$tmp/classes.csv"
run 0 graph --data "$classes" "${small[@]}" --model graphormer:dim=24,depth=1,heads=2,hidden=24 --epochs 15 --warmup 1 \
	--out "$tmp/classes" --json
json eval_auc best_auc
grep -q eval_mae <<<"$out" && fail "classes have no mean absolute error"
awk -v a="$(sed 's/.*"eval_auc":\([0-9.e-]*\).*/\1/' <<<"$out")" 'BEGIN { exit !(a > 0.8) }' || fail "it learns no classes: $out"

# rows that are no molecules
{ cat "$tmp/values.csv"; echo "C1CC,1,train"; echo "CC,x,train"; } >"$tmp/bad.csv"
bad="molecules:path=$tmp/bad.csv,features=zinc,cache=none"
run 0 data info "$bad"; complains "row 97 is left out"; complains "column 2: ring 1"; complains "row 98"
says "2 of 98 rows are no molecules"
run 0 data info "$bad,bad=skip"; silent; says "2 of 98"
run 1 data info "$bad,bad=fatal"; complains "row 97"; complains "bad=skip"
run 1 data info "$bad,bad=never"; complains "never"; one_line
run 1 data info molecules:path="$tmp/none.csv"; complains "none.csv"; one_line
run 1 data info molecules; complains "molecules:path="; one_line

# what does not go together
run 2 graph --data "$values" --model vit_micro --out "$tmp/no"; complains "it reads pictures"; one_line
run 1 graph --data "$values" "${small[@]}" --objective bce --out "$tmp/no"; complains "neither 0 nor 1"; one_line
run 1 graph --data "$classes" --model graphormer-nano:atoms=40 --out "$tmp/no" --batch 8; complains "table 'atoms'"; one_line
run 1 graph --data "$values" --batch 1000 --out "$tmp/no"; complains "do not fill"; one_line
run 1 graph --data "$values" "${small[@]}" --max-nodes 2 --out "$tmp/no"; complains "at most 2 nodes"; one_line
printf 'smiles\nCC\n' >"$tmp/bare.csv"
run 1 graph --data molecules:path="$tmp/bare.csv" --batch 1 --out "$tmp/no"; complains "no targets"; one_line
run 1 train --data "$values" --out "$tmp/no"; complains "its samples are graphs"; one_line
exit $failed
