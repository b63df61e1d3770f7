#!/bin/bash
# BERT and RoBERTa: sizes, files under Hugging Face's names and back, runs on numbers of tokens, refusals.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/npy.inc
. test/cli/npy.inc

# ids TYPE BYTES SHAPE NUMBER...: an .npy of whole numbers below 256
ids() {
	local bytes=$2 i
	npy_header "$1" "$3"
	shift 3
	for i in "$@"; do printf '%b' "\\x$(printf %x "$i")"; head -c $((bytes - 1)) /dev/zero; done
}
run 0 models bert-base-uncased; says "109,483,778 parameters"; says "a text of 128 tokens"; says "embed=layer"
run 0 models roberta-base; says "pad"; run 0 models minilm-l6 --json; json params gmac sites
tiny=vocab=40,dim=16,depth=2,heads=2,hidden=24,positions=12,length=9
for family in bert roberta; do
	run 0 models $family:$tiny --write "$tmp/$family" --seed 3 --norm "sep(bn,ln)"
	names="huggingface huggingface_base"; [ $family = roberta ] || names="$names huggingface_gamma simcse"
	for n in $names; do
		run 0 convert "$tmp/$family" "$tmp/$n" --to "$n" --force; says "norma names to $n names"; silent
		run 0 convert "$tmp/$n" "$tmp/back" --to norma --force; says "names to norma names"
		cmp "$tmp/$family" "$tmp/back" || fail "not what it was"
	done
	run 0 inspect "$tmp/huggingface_base" --norms; says "cls_norm_layer"
done
# a folder gets config.json, by which a file without our words is known
run 0 models bert:$tiny --write "$tmp/plain" --seed 3 --norm eps=1e-6
run 0 convert "$tmp/plain" "$tmp/dir/" --to huggingface; grep -q '"num_attention_heads": 2' "$tmp/dir/config.json" || fail "no heads"
grep -q '"layer_norm_eps": ' "$tmp/dir/config.json" || fail "no eps"
# runs: the same bits for any batch size, and padding is seen by nobody
ids '<i4' 4 '3, 6' 5 7 9 11 2 3 5 8 9 0 0 0 4 0 0 0 0 0 >"$tmp/x.npy"
ids '<i8' 8 '3, 4' 5 7 9 11 5 8 9 0 4 0 0 0 >"$tmp/short.npy"
for what in logits pooled tokens; do
	for flags in "--batch 1" "--batch 2 --threads 1" "--batch 3 --threads 2"; do
		# shellcheck disable=SC2086 # words on purpose
		run 0 infer "$tmp/bert" --input "$tmp/x.npy" --output "$tmp/y.npy" --what $what $flags; silent
		[ -e "$tmp/$what.npy" ] || cp "$tmp/y.npy" "$tmp/$what.npy"
		cmp "$tmp/$what.npy" "$tmp/y.npy" || fail "other bits"
	done
done
grep -aq "(3, 6, 16)" "$tmp/tokens.npy" || fail "tokens are not (3, 6, 16)"
run 0 infer "$tmp/bert" --input "$tmp/short.npy" --output "$tmp/z.npy" --what pooled
[ "$(tail -c 64 "$tmp/z.npy" | od -An -t f4)" = "$(tail -c 64 "$tmp/pooled.npy" | od -An -t f4)" ] || fail "padding changes the result"
# what does not fit
ids '<i4' 4 '1, 2' 5 77 >"$tmp/bad.npy"
run 1 infer "$tmp/bert" --input "$tmp/bad.npy" --output "$tmp/z.npy"; complains "row 0 has the id 77"; one_line
ids '<i4' 4 '1, 13' 1 1 1 1 1 1 1 1 1 1 1 1 1 >"$tmp/long.npy"
run 1 infer "$tmp/bert" --input "$tmp/long.npy" --output "$tmp/z.npy"; complains "only 12 positions"; one_line
ids '<f4' 4 '1, 2' 1 1 >"$tmp/float.npy"
run 1 infer "$tmp/bert" --input "$tmp/float.npy" --output "$tmp/z.npy"; complains "token ids (N,T)"; one_line
made_up "$tmp/data/mnist" train 40
made_up "$tmp/data/mnist" t10k 10
run 2 knn "$tmp/bert" --data mnist --data-root "$tmp/data"; complains "it reads text, but a model of pictures is needed"
run 2 train --data mnist --data-root "$tmp/data" --model bert:$tiny --batch 10 --out "$tmp/run"; complains "it reads text"
run 2 pretrain --data mnist --data-root "$tmp/data" --model bert:$tiny --batch 10 --out "$tmp/run"
run 1 models bert:${tiny/heads=2/heads=3}; complains "16 channels cannot be divided into 3 heads"; one_line
exit "$failed"
