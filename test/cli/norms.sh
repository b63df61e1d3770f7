#!/bin/bash
# norms lists the registry and describes each norm; the picture of what it sees is measured.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 0 norms; says "layer     ln"; says "statistics over"; says "arXiv:1607.06450"; silent
registry=$(sed -n 's/^NORM(\(.*\))/\1/p' src/norms/norms.def)
for n in $registry; do
	grep -q "^$n " <<<"$out" || fail "no '$n' in the list"
done
run 0 norms --json; [ "$(wc -l <<<"$out")" = "$(wc -w <<<"$registry")" ] || fail "not one record for each norm"
for n in $registry; do
	run 0 norms "$n"
	for part in "$n" Equation "What its statistics see" Options Parameters Cost "Relation to the others" "■"; do says "$part"; done
	silent
done

over() { sed -n 's/.*"over":"\([^"]*\)".*/\1/p' <<<"$out"; }
# sees NAME WORDS: along what the values lie that an output value depends on
sees() { run 0 norms "$1" --json; [ "$(over)" = "$2" ] || fail "it sees '$(over)', not '$2'"; }
sees layer channels
sees ln channels
sees rms channels
sees batch "tokens, samples"
sees instance tokens
sees group "a group of channels, tokens"
sees dtn "channels, tokens"
sees switch "channels, tokens, samples"
sees power "tokens, samples of earlier steps"
sees dyt nothing
sees none nothing
sees sep "samples; channels"
run 0 norms dtn; says "2 C + 5 H parameters"; says "token 1    ▣ ■ ▣ ▣ ▣ ▣    □ □ □ □ □ □"; says "pos         H x 3  -1, -1, -1, -1, -1, 1, ..."
run 0 norms scale; says "sqrt(C)"
run 0 norms layer; says "7.0 flops per value forward, 11.0 backward"

run 2 norms lyaer; complains "did you mean 'layer'?"; one_line
run 2 norms layer rms; complains "one name"; one_line
run 1 norms --markdown "$tmp/none"; complains "cannot write"; one_line
exit "$failed"
