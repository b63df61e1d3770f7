#!/bin/bash
# Molecules of one's own: a CSV as people have it, from --data to predictions in its own units.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
export NORMA_DATA=$tmp/data
mkdir -p "$tmp/data"
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || fail "$1 is not below $2"; }
small=(--model graphormer-nano:depth=1 --batch 8 --lr 3e-3 --epochs 30)

# chains, rings and chains on rings; the property is far from 0, capitals and a column of names as in a spreadsheet
{
	printf '\xef\xbb\xbfName,SMILES,LogS,Melting Point\n'
	for ((i = 1; i <= 60; i++)); do
		chain=$(printf 'C%.0s' $(seq $((i % 10 + 1))))
		case $((i % 3)) in
		0) s=${chain}N1CCCC1 ;;
		1) s=${chain}c1ccccc1 ;;
		*) s=${chain}N$(printf 'C%.0s' $(seq $((i / 10 + 1)))) ;;
		esac
		echo "\"mol, $i\",$s,$((300 + 10 * (i % 10))),$([ $((i % 9)) = 0 ] && echo NA || echo $((i % 10)).5)"
	done
} >"$tmp/mols.csv"

# found by what it is; Name is no target; val is set apart; targets are standardised, results are not
run 0 data info "$tmp/mols.csv"; says "known"; says "LogS"; silent
run 0 graph --data "$tmp/mols.csv:targets=LogS" "${small[@]}" --out "$tmp/run"
says "val is "; says " molecules, chosen by their SMILES"; says "standardised (mean 3"; says "1 target"; says "rmse"; says "r2"
grep -q 'chosen by their SMILES' "$tmp/run/env.json" || fail "the record does not say how it was divided"
run 0 graph --data "molecules:path=$tmp/mols.csv,targets=logs+melting point" "${small[@]}" --out "$tmp/both" --json; json eval_mae eval_rmse eval_r2; silent
run 0 predict "$tmp/run/best.safetensors" CCCc1ccccc1 --json; below 200 "$(sed -n 's/.*"value":\([0-9.]*\).*/\1/p' <<<"$out")"
# what predict says is what the training wrote
IFS=, read -r _ _ _ smiles _ said _ < <(sed -n 2p "$tmp/run/predictions.csv")
run 0 predict "$tmp/run/best.safetensors" "$smiles" --json; value=$(sed -n 's/.*"value":\([0-9.]*\).*/\1/p' <<<"$out")
awk -v a="$value" -v b="$said" 'BEGIN { exit !((a - b) ^ 2 < 1e-6 * b * b) }' || fail "predicted $value, written $said"
run 0 convert "$tmp/run/best.safetensors" "$tmp/copy.safetensors"; run 0 predict "$tmp/copy.safetensors" "$smiles" --json
[ "$value" = "$(sed -n 's/.*"value":\([0-9.]*\).*/\1/p' <<<"$out")" ] || fail "a copy predicts otherwise: $out"
# the same targets, as they are: a large number is hard to reach in a few steps
run 0 graph --data "$tmp/mols.csv:targets=LogS" "${small[@]}" --standardize no --out "$tmp/raw" --json; raw=$(number eval_mae)
run 0 graph --data "$tmp/mols.csv:targets=LogS" "${small[@]}" --out "$tmp/run2" --json; below "$(number eval_mae)" "$raw"

# scaffolds: none is in two splits
run 0 graph --data "molecules:path=$tmp/mols.csv,targets=LogS,split=scaffold,val=0.2,test=0.2" "${small[@]}" --epochs 1 --out "$tmp/scaffold"
says ", by scaffold: none is in two splits"; says "val is 20 of 60 molecules, test 20"; grep -q test <<<"$(cut -d, -f1 "$tmp/scaffold/predictions.csv" | sort -u)" || fail "no test split"
run 0 data info "molecules:path=$tmp/mols.csv,targets=LogS,split=file"; says "60 train"

# held out: the report shows those molecules
run 0 graph --data "molecules:path=$tmp/mols.csv,targets=LogS,split=file" "${small[@]}" --epochs 1 --hold-out 0.2 --out "$tmp/held"
run 0 report "$tmp/held" -o "$tmp/held.html"; grep -q 'predicted best' "$tmp/held.html" || fail "no molecules in the report"

# a column of words, columns that are not there
sed -i 's/^Name,/Maker,/; s/\xef\xbb\xbfName/Maker/' "$tmp/mols.csv"
run 1 graph --data "$tmp/mols.csv" "${small[@]}" --out "$tmp/no"; complains "column 'Maker' has 60 cells that are not numbers"; complains "targets=A+B"; one_line
run 1 graph --data "$tmp/mols.csv:targets=LogP" "${small[@]}" --out "$tmp/no"; complains "no column 'LogP'"; complains "it has Maker, SMILES, LogS"; one_line
run 1 graph --data "molecules:path=$tmp/mols.csv,smiles=structure" "${small[@]}" --out "$tmp/no"; complains "no column 'structure'"; one_line

# what a path means; what it may mean is said
sed 's/SMILES/structure/' "$tmp/mols.csv" >"$tmp/other.csv"
run 1 graph --data "$tmp/other.csv" --out "$tmp/no"; complains "molecules:path=$tmp/other.csv,smiles=COLUMN"; complains "text:path="; one_line
run 0 graph --data "molecules:path=$tmp/other.csv,smiles=Structure,targets=logs" "${small[@]}" --epochs 1 --out "$tmp/named"
mkdir "$tmp/flat"; run 1 train --data "$tmp/flat" --out "$tmp/no"; complains "$tmp/flat/CLASS/*.jpg"; one_line
run 2 train --data "$tmp/nosuch.txt" --out "$tmp/no"; complains "folder:path=DIR, text:path=FILE, molecules:path=FILE.csv"; one_line
printf 'a cat\na dog\n' >"$tmp/lines.txt"; run 0 data info "$tmp/lines.txt"; says "2 train"
run 1 train --data "$tmp/lines.txt" --out "$tmp/no"; complains "its samples are texts"; complains "norma simcse"; one_line
exit "$failed"
