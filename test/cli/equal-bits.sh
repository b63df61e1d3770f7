#!/bin/bash
# What a sample gets depends neither on the samples beside it nor on the threads: infer, embed and predict give the same bits for 1 to 17
# pictures, texts and molecules at a time, on 1 to 4 threads. NORMA_ISA names the instruction set.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/npy.inc
. test/cli/npy.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc

export NORMA_SHARE=1    # or one thread would do it all: the models are small
most=17 width=40
run 0 models vit:image=16,patch=4,dim=$width,depth=2,heads=2,classes=5 --norm "sep(bn,ln)" --write "$tmp/vit" --seed 4
run 0 models bert:vocab=25,dim=$width,depth=2,heads=2,hidden=72,positions=24,length=24 --write "$tmp/words/model.safetensors" --seed 5
run 0 models graphormer-nano:depth=2 --write "$tmp/graphormer" --seed 6
npy "$most, 3, 16, 16" $((most * 3 * 256)) '<f4' >"$tmp/x.npy"
mapfile -t pictures < <(find test/data/pictures -name '*.png' -o -name '*.jpg' | sort | sed -n "1,${most}p")
sentences 9 $most >"$tmp/texts"
for ((i = 1; i <= most; i++)); do printf 'C%.0s' $(seq $((i * 5 % 13 + 1))); ((i % 3)) && echo N || echo c1ccccc1; done >"$tmp/molecules"
[ "${#pictures[@]}" = $most ] || fail "there are too few pictures"

# rows FILE COUNT WIDTH: the last ones of an array
rows() { tail -c $(($2 * $3 * 4)) "$1"; }
# same KIND: $tmp/now has the last $n results of those that all samples together had on one thread
same() {
	[ -e "$tmp/$1.all" ] || cp "$tmp/now" "$tmp/$1.all"
	tail -c "$(stat -c %s "$tmp/now")" "$tmp/$1.all" | cmp -s - "$tmp/now" || fail "other bits"
	[ "$(stat -c %s "$tmp/$1.all")" -ge $((n * 20)) ] || fail "there is too little to compare"
}
for threads in 1 2 3 4; do
	for ((n = most; n >= 1; n--)); do
		run 0 infer "$tmp/vit" --input "$tmp/x.npy" --output "$tmp/y.npy" --what tokens --batch $n --threads $threads
		rows "$tmp/y.npy" $most $((17 * width)) >"$tmp/now"; same arrays
		run 0 embed "$tmp/words" --format npy --out "$tmp/y.npy" --threads $threads < <(tail -n $n "$tmp/texts")
		rows "$tmp/y.npy" $n $width >"$tmp/now"; same texts
		run 0 predict "$tmp/vit" "${pictures[@]: -n}" --json --threads $threads
		cp "$tmp/out" "$tmp/now"; same pictures
		run 0 predict "$tmp/graphormer" --outputs value --json --threads $threads < <(tail -n $n "$tmp/molecules")
		sed 's/"line":[0-9]*,//' "$tmp/out" >"$tmp/now"; same molecules
	done
done
exit "$failed"
