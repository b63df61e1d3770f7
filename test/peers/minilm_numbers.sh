#!/bin/bash
# The real all-MiniLM-L6-v2: `norma sts` within 0.02 and `norma transfer` within 0.1 of known values, which scikit-learn and SciPy gave.
# NORMA_MINILM names the model's folder (scripts/setup-minilm), NORMA_DATA the folder with sts and senteval. Exit 77, "skipped", without.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${NORMA:=build/bin/norma}"
data=${NORMA_DATA:-$HOME/.cache/norma/data}
[ -f "${NORMA_MINILM:-}/model.safetensors" ] || { echo "NORMA_MINILM names no folder with model.safetensors: scripts/setup-minilm" >&2; exit 77; }
for d in sts senteval; do [ -d "$data/$d" ] || { echo "'$data/$d' is not there: NORMA_DATA names the folder that holds it" >&2; exit 77; }; done

failed=0
# near WHAT GOT WANT TOLERANCE
near() {
	awk -v g="$2" -v w="$3" -v t="$4" 'BEGIN { d = g - w; exit !(g != "" && d <= t && d >= -t) }' && return
	echo "$1: $2 instead of $3" >&2
	failed=1
}
# value JSON OBJECT KEY: of {"OBJECT": {..., "KEY": value
value() { python3 -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]][sys.argv[3]])' "$@"; }

for form in tokenized raw; do
	flags='' sums="STS12 72.367 STS13 80.603 STS14 75.589 STS15 85.390 STS16 78.989 STSB 82.032 SICK 77.147"
	if [ $form = raw ]; then
		[ -d "$data/sts/raw" ] || [ -f "$data/sts/raw.tar.gz" ] || { echo "no '$data/sts/raw': only the tokenized text is compared" >&2; continue; }
		flags=--raw sums="STS12 72.366 STS13 80.600 STS14 75.600 STS15 85.390 STS16 78.986 STSB 82.032 SICK 77.147"
	fi
	got=$("$NORMA" sts "$NORMA_MINILM" --data-root "$data" --json $flags)
	# shellcheck disable=SC2086 # words on purpose
	set -- $sums
	while [ $# -gt 0 ]; do near "$1 ($form)" "$(value "$got" "$1" spearman)" "$2" 0.02; shift 2; done
done
got=$("$NORMA" transfer "$NORMA_MINILM" --data-root "$data" --json)
set -- MR 76.72 CR 82.57 SUBJ 92.12 MPQA 87.47 SST2 81.16 TREC 89.20 MRPC 72.12
while [ $# -gt 0 ]; do near "$1" "$(value "$got" "$1" accuracy)" "$2" 0.1; shift 2; done
near "MRPC, F1" "$(value "$got" MRPC f1)" 80.53 0.1
[ $failed = 0 ] && echo "all numbers of the real model are as known"
exit $failed
