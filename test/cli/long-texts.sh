#!/bin/bash
# Long texts: ListOps, norma text on rows of one's own with every model of texts, predict, eval, and what is said of bad input.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
export NORMA_DATA=$tmp/none
weights() { [ "$(bits "$1")" = "$(bits "$2")" ] || fail "the weights of $1 and $2 differ"; }

# ---- ListOps
run 0 data make listops --length 8:40 --samples 120:20:20 -o "$tmp/listops"; says "120 + 20 + 20 expressions"; says "--data listops:path="
cp -r "$tmp/listops" "$tmp/again"
run 0 data make listops --length 8:40 --samples 120:20:20 -o "$tmp/again" --json; json name dir train val test drawn
cmp -s "$tmp/listops/basic_train.tsv" "$tmp/again/basic_train.tsv" || fail "the same seed drew other expressions"
run 0 data check "listops:path=$tmp/listops"; says "160 samples"
run 2 data make listops --length 8; complains "is not 2 whole numbers"
run 2 data make listops --length 8:9; complains "leaves no length in between"
run 2 data make cifar10; complains "only listops and shapes are drawn"
run 1 data info listops; complains "norma data make listops"; one_line
cp -r "$tmp/listops" "$tmp/bad"
printf 'Source\tTarget\n[MAX 1 [MIM 2 3 ] ]\t3\n' >"$tmp/bad/basic_train.tsv"
run 1 data info "listops:path=$tmp/bad"; complains "unknown operator '[MIM'"; complains "did you mean '[MIN'?"; one_line
printf 'Source\tTarget\n[MAX 1 2\t2\n' >"$tmp/bad/basic_train.tsv"
run 1 data info "listops:path=$tmp/bad"; complains "line 2: 1 operator is not closed by ']'"; one_line

# ---- every attention: threads leave the bits alone, a run can be resumed, evaluated and asked
size=dim=16,depth=1,heads=2,hidden=24
for model in lra-transformer:$size lra-bigbird:$size,block=4,random=1 lra-reformer:$size,rounds=2; do
	text="text --data listops:path=$tmp/listops --model $model --batch 8 --steps 6 --max-length 40 --lr 1e-3"
	# shellcheck disable=SC2086 # words on purpose
	{
		rm -rf "$tmp/a" "$tmp/b"
		run 0 $text --out "$tmp/a" --threads 1; says "10 classes of a text"; says "test_accuracy"
		run 0 analyze "$tmp/a" --data "listops:path=$tmp/listops" --only attention --tokens 12 --samples 8
		grep -Eq "^blocks\.0 +[0-9.]+ +[0-9.]+ to [0-9.]+ " "$tmp/out" || fail "$model: no attention distance"
		run 0 $text --out "$tmp/b" --threads 3; weights "$tmp/a/model.safetensors" "$tmp/b/model.safetensors"
		rm -rf "$tmp/b"
		run 0 $text --steps 80 --out "$tmp/whole"
		"$NORMA" $text --steps 80 --checkpoint-steps 2 --out "$tmp/b" >"$tmp/out" 2>&1 &
		await test -e "$tmp/b/last.safetensors"
		slay $!
		run 0 text --resume --out "$tmp/b"; weights "$tmp/whole/model.safetensors" "$tmp/b/model.safetensors"
		rm -rf "$tmp/whole"
	}
done
run 0 eval "$tmp/a" --split val --confusion; says "accuracy"; says "20 samples"; says "precision"; says "truth"
run 0 eval "$tmp/a" --json; json accuracy f1 matthews nll samples macro_f1 classes; says '"split":"test"'
run 0 report "$tmp/a" -o "$tmp/a.html"; grep -q "Confusion: " "$tmp/a.html" || fail "no confusion matrix in the report"
grep -q "test accuracy" "$tmp/a.html" || fail "the accuracy on the test split is not in the report"
if grep -q "spectrum.csv" "$tmp/a.html"; then fail "the report of texts misses spectra of pictures"; fi
run 0 predict "$tmp/a" "MAX 1 2 X" --top 2; says "MAX 1 2 X"; says "%"
run 0 predict "$tmp/a" --json "MIN 4 5 X"; json text top; says '"probability"'
run 0 predict "$tmp/a" "MAX 1 2 X" "MAX$(printf ' %d' {1..9} {1..9} {1..9} {1..9} {1..9}) X"
complains "1 of 2 texts are cut off: the longest has 47 tokens, but the model reads 40"
run 0 predict "$tmp/a" "MOX 1 2 X"; complains "1 of 1 texts have words that the vocabulary does not know"
run 2 predict "$tmp/a" --pixels half "MAX 1 X"; complains "does not apply to a model that reads texts"
run 1 text --data "listops:path=$tmp/listops" --model "lra-reformer:$size,buckets=12" --max-length 40
complains "cannot be divided into 12 buckets"
run 1 text --data "listops:path=$tmp/listops" --model lra-transformer:$size,positions=20 --max-length 40; complains "the model has 20 positions"

# ---- rows of one's own: pairs as CSV, values as JSON lines
{
	echo "id,sentence1,sentence2,label"
	paste -d, <(sentences 1 60) <(sentences 2 60) | awk '{ printf "%d,%s,%s\n", NR, $0, NR % 3 ? "same" : "other" }'
} >"$tmp/pairs.csv"
sentences 3 60 | awk '{ printf "{\"text\": \"%s\", \"score\": %.1f}\n", $0, NF + NR % 2 / 2 }' >"$tmp/values.jsonl"
small=$size,positions=40
for model in bert:$small roberta:$small bigbird:$small,block=2,random=1 reformer:$small,chunk=4,rounds=2; do
	rm -rf "$tmp/a"
	run 0 text --data "labelled:path=$tmp/pairs.csv,val=0.2" --tokenizer "$vocab" --model "$model" --batch 8 --steps 4 --max-length 32 \
		--metric matthews --out "$tmp/a"
	says "2 classes of a pair of texts; matthews decides"
done
run 0 predict "$tmp/a" "$(printf 'the dog\ta cat')"; says "same"; says "other"
rm -rf "$tmp/a"
run 0 text --data "labelled:path=$tmp/values.jsonl,val=0.2,test=0.2" --tokenizer "$vocab" --model bert:$small --batch 8 --steps 4 \
	--max-length 32 --out "$tmp/a"
says "a value of a text; spearman decides"; says "test_spearman"
run 0 eval "$tmp/a"; says "Spearman"; run 2 eval "$tmp/a" --confusion; complains "tells values"
echo "the dog sees a cat" | "$NORMA" predict "$tmp/a" >"$tmp/said" || fail "predict from standard input"
grep -q "the dog sees a cat" "$tmp/said" || fail "nothing said of a line of standard input"
run 1 text --data "labelled:path=$tmp/pairs.csv,label=lable" --tokenizer "$vocab"; complains "no column 'lable'"; complains "did you mean 'label'?"
run 1 text --data "labelled:path=$tmp/pairs.csv" --objective value --tokenizer "$vocab"; complains "some labels are no numbers"
run 1 text --data "labelled:path=$tmp/pairs.csv" --metric spearman --tokenizer "$vocab"; complains "it does not measure classes"
printf 'text,label\nx,1\ny\n' >"$tmp/bad.csv"
run 1 data info "labelled:path=$tmp/bad.csv"; complains "line 3 has 1 columns, but the header line has 2"; one_line
printf '{"text": "x", "label": 1}\n{"text": "y"}\n' >"$tmp/bad.jsonl"
run 1 data info "labelled:path=$tmp/bad.jsonl"; complains "line 2: 'label' is missing"; one_line
printf '\xef\xbb\xbfText,Label\r\n"a ""fine"", long\r\nfilm",good\r\n,bad\r\n' >"$tmp/dos.csv"
run 0 data info "labelled:path=$tmp/dos.csv,val=0"; says "2 train"; ! grep -q documents <<<"$out" || fail "labels are no documents"
run 0 data info "listops:path=$tmp/listops"; says "classes   10"
printf 'text;label\nx;1\n' >"$tmp/bad.csv"
run 1 data info "labelled:path=$tmp/bad.csv"; complains "columns of .csv are separated by commas"; one_line
awk 'NR == 7 { sub("score\": [0-9.]*", "score\": \"none\"") } { print }' "$tmp/values.jsonl" >"$tmp/mixed.jsonl"
run 0 text --data "labelled:path=$tmp/mixed.jsonl" --tokenizer "$vocab" --model bert:$small --max-length 32 --batch 8 --steps 1 \
	--out "$tmp/mixed"
complains "labels are taken as classes: 1 of"
printf 'a,b\nx,1\n' >"$tmp/bad.csv"
run 1 data info "labelled:path=$tmp/bad.csv"; complains "which column is the text? there are a, b"

exit $failed
