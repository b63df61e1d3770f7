#!/bin/bash
# graph trains on molecules: values and classes, missing labels, rows that are no molecules; killed and resumed, on 1 and on 2 threads, with
# noise or without, the bits are the same.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc
NORMA=$(realpath "$NORMA")
export NORMA_DATA="$tmp/data"
mkdir -p "$tmp/data"

made_up_values >"$tmp/values.csv"
values="molecules:path=$tmp/values.csv,features=zinc"
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
small=(--model "graphormer-nano:depth=2,attention_dropout=0.1,activation_dropout=0.1" --batch 8 --lr 3e-3)

# what a set is
run 0 data info "$values"; says "64 train, 16 val, 16 test"; says "2 to 17 nodes"; says "1 of a node, 1 of an edge"
run 0 data info "$values" --split val --json; json nodes targets bad_rows; says '"known":16'
[ "$(find "$tmp/data/cache" -name '*.graphs' | wc -l)" = 1 ] || fail "no prepared graphs in the data root"
run 0 data info "$values,cache=none"; silent

run 0 data show "$values" --output "$tmp/sheet.svg" --count 5 --split test; says "5 molecules of test"
[ "$(grep -c 'class="structure"' "$tmp/sheet.svg")" = 5 ] || fail "not five formulas"
run 2 data show "$values"; complains "sheet.svg"; one_line

# values
run 0 graph --data "$values" "${small[@]}" --epochs 40 --warmup 2 --out "$tmp/values" --json
json eval_loss eval_mae eval_test_mae best_mae train_loss
echo "$out" >"$tmp/values.json"
says '"eval_samples":16'
mae=$(number eval_mae)
awk -v m="$mae" 'BEGIN { exit !(m < 2) }' || fail "it learns nothing: mean absolute error $mae"
grep -q eval_test_mae <<<"$(head -1 "$tmp/values/metrics.csv")" || fail "no test error in the record"
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
	(cd "$tmp/$folder" && exec "$NORMA" --threads "$threads" graph "$@")
}
ran="norma graph, undisturbed"
train whole 1 "${bits[@]}" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
ran="norma graph, 2 threads, killed"
again=("${bits[@]}")
steps=$(wc -l <"$tmp/whole/run/metrics.csv")
for i in 1 2 3; do
	train parts 2 "${again[@]}" >"$tmp/out" 2>"$tmp/err" &
	await lines $((steps * i / 4)) "$tmp/parts/run/metrics.csv"
	slay $!
	again=(--resume --out run --json)
done
train parts 2 "${again[@]}" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
cmp -s "$tmp/whole/run/model.safetensors" "$tmp/parts/run/model.safetensors" || fail "the weights differ from those of the undisturbed run"

# classes: several tasks with missing labels; one has a single class
made_up_classes >"$tmp/classes.csv"
classes="molecules:path=$tmp/classes.csv"
run 0 graph --data "$classes" "${small[@]}" --model graphormer:dim=24,depth=1,heads=2,hidden=24 --epochs 15 --warmup 1 \
	--out "$tmp/classes" --json
json eval_auc best_auc
grep -q eval_mae <<<"$out" && fail "classes have no mean absolute error"
awk -v a="$(number eval_auc)" 'BEGIN { exit !(a > 0.8) }' || fail "it learns no classes: $out"

# what the best weights say, for the report
rows=$(wc -l <"$tmp/values/predictions.csv")
[ "$rows" = 33 ] || fail "predictions of $((rows - 1)) molecules, not of 16 + 16"
grep -qx 'split,graph,task,smiles,target,prediction,tasks,known' <<<"$(head -1 "$tmp/values/predictions.csv")" || fail "not the columns of predictions"
awk -F, -v want="$(sed 's/.*"best_mae":\([0-9.e-]*\).*/\1/' "$tmp/values.json")" '$1 == "val" { n++; d = $5 - $6; s += d < 0 ? -d : d }
	END { s /= n; exit !(s - want < 1e-4 && want - s < 1e-4) }' "$tmp/values/predictions.csv" || fail "predictions are not those of the best weights"
awk -F, 'NR > 1 && ($5 == "" || $6 < 0 || $6 > 1) { bad = 1 } END { exit bad }' "$tmp/classes/predictions.csv" || fail "no probabilities of known targets"
cmp -s "$tmp/whole/run/predictions.csv" "$tmp/parts/run/predictions.csv" || fail "predictions differ from those of the undisturbed run"

# a split with many targets leaves room for the other one
awk 'BEGIN { printf "smiles"; for (t = 0; t < 1000; t++) printf ",t%d", t; print ",split"
	for (i = 0; i < 68; i++) { printf i % 2 ? "CCO" : "CCN"; for (t = 0; t < 1000; t++) printf ",%d.5", (i + t) % 7
		print i < 4 ? ",train" : i < 64 ? ",valid" : ",test" } }' >"$tmp/wide.csv"
run 0 graph --data "molecules:path=$tmp/wide.csv,cache=none" --model graphormer:dim=8,depth=1,heads=2,hidden=8 --batch 4 --steps 1 --out "$tmp/wide"
[ "$(cut -d, -f1 "$tmp/wide/predictions.csv" | sort | uniq -c | xargs)" = "1 split 4000 test 50000 val" ] || fail "val leaves no room for test"
grep -q ',1000,60000$' <<<"$(grep '^val' "$tmp/wide/predictions.csv" | tail -1)" || fail "the file does not say what it lacks"
sed '/^test/d' "$tmp/wide/predictions.csv" >"$tmp/val.csv" && mv "$tmp/val.csv" "$tmp/wide/predictions.csv"
run 0 report "$tmp/wide" -o "$tmp/page.html"
for text in 'The page shows task 1 of 1000.' 'the first 50000 of the 60000 known targets of the val split'; do
	grep -qF -- "$text" "$tmp/page.html" || fail "the page lacks '$text'"
done

# analysis: [VNode] against nodes; padding is in no number
run 0 analyze "$tmp/values/best.safetensors" --out "$tmp/values/analyze"
says "[VNode]"; says "|dnode|"; says "gradients of the absolute error"; says "distance in bonds"; says "one node of each graph"
grep -q 'CLS\|picture\|patch' <<<"$out" && fail "words of pictures: $(grep 'CLS\|picture\|patch' <<<"$out")"
for svg in "$tmp"/values/analyze/*.svg; do
	grep -q '\[CLS\]\|picture\|patch' "$svg" && fail "words of pictures in ${svg##*/}"
done
grep -q '"colours": "target"' "$tmp/values/analyze/analysis.json" || fail "the map is not coloured by the target"
for threads in 1 2; do
	run 0 analyze "$tmp/values/best.safetensors" --json --threads $threads
	echo "$out" >"$tmp/analysis.$threads"
done
cmp -s "$tmp/analysis.1" "$tmp/analysis.2" || fail "numbers depend on the threads"
json layers distributions attention gradients map similarity magnitude directions cost cls_is tokens_are
# what else is in the set does not show
head -1 "$tmp/values.csv" >"$tmp/few.csv"
grep ',test$' "$tmp/values.csv" | sed -n 1,4p >>"$tmp/few.csv"
cp "$tmp/few.csv" "$tmp/more.csv"
echo "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC,1.5,train" >>"$tmp/more.csv"
sed -i 's/,test$/,val/' "$tmp/few.csv" "$tmp/more.csv"
for set in few more; do
	run 0 analyze "$tmp/values/best.safetensors" --data "molecules:path=$tmp/$set.csv,features=zinc,cache=none" --split val --only layers,attention --json
	echo "${out##*\"samples\"}" >"$tmp/$set.json"
done
cmp -s "$tmp/few.json" "$tmp/more.json" || fail "another set around them changes what molecules measure"
run 2 analyze "$tmp/values/best.safetensors" --only maps; complains "cannot analyse graphs by 'maps'"; one_line
run 0 analyze "$tmp/classes/best.safetensors" --split val --only gradients,map --out "$tmp/yes"; says "binary cross entropy"
grep -q '"colours": "class"' "$tmp/yes/analysis.json" || fail "classes are not the colours of the map"
run 0 analyze "$tmp/whole/run/best.safetensors" --only sensitivity,against,gradients --against "$tmp/whole/run/model.safetensors"
says "sensitivity to the batch"; says "separate"; says "linear CKA with the layers of"
run 1 analyze "$tmp/values/best.safetensors" --data "molecules:path=$tmp/values.csv"; complains "9 node and"; one_line

# the report
run 0 report "$tmp/values" "$tmp/whole/run" -o "$tmp/page.html"
for text in 'id="molecules"' 'class="structure"' 'predicted worst' 'Prediction against target' 'Uniformity of [VNode] by layer' 'Length of nodes by layer' \
	't-SNE of [VNode]' 'mean over heads, in bonds'; do
	grep -qF -- "$text" "$tmp/page.html" || fail "the page lacks '$text'"
done
run 0 report "$tmp/classes" -o "$tmp/page.html"
for text in 'false alarms' 'ROC curve' 'Predictions are probabilities'; do
	grep -qF -- "$text" "$tmp/page.html" || fail "the page lacks '$text'"
done
echo "test,1,1,C1CC,1,x,3,1" >>"$tmp/classes/predictions.csv"
printf 'a\0b\n' >"$tmp/values/predictions.csv"
run 0 report "$tmp/values" "$tmp/classes" -o "$tmp/page.html"
grep -q "predictions.csv.*zero bytes" "$tmp/page.html" || fail "damaged predictions are left out in silence"

# a study with an analysis
cat >"$tmp/study.yaml" <<END
base: {data: "$values", model: "graphormer-nano:depth=1", batch: 8}
stages:
  - graph: {steps: 4, lr: 1e-3}
  - analyze: {samples: 8, only: "layers,attention,gradients,map"}
grid: {norm: {LN: ln, BN+LN: "sep(bn,ln)"}}
seeds: 1
metric: graph.eval_test_mae
out: $tmp/study
END
run 0 study "$tmp/study.yaml"
run 0 report "$tmp/study" -o "$tmp/page.html"
for text in 'id="molecules"' 'Uniformity of [VNode] by layer'; do
	grep -qF -- "$text" "$tmp/page.html" || fail "the page of the study lacks '$text'"
done

# rows that are no molecules
{ cat "$tmp/values.csv"; echo "C1CC,1,train"; echo "CC,x,train"; } >"$tmp/bad.csv"
bad="molecules:path=$tmp/bad.csv,features=zinc,cache=none"
run 0 data info "$bad"; complains "skipping row 97"; complains "column 2: ring 1"; complains "row 98"
says "2 of 98 rows are not molecules"
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
