#!/bin/bash
# prove: what is equal is found equal, what is not is not; every law holds, in time.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 0 prove all; says "laws, all hold"; silent
for law in "dtn:lam=1 = layer" "group:groups=1,scope=token = layer" "instance:scope=token = layer" "sep(layer,layer) = layer" \
	"contrast" "padded" "uniformity" "gain and bias fold" "all of it folds" "crms" "<W, dW>" "patch=dual" "band=5" "flops of dtn"; do says "$law"; done
! grep -q FAILS <<<"$out" || fail "a law fails: $out"
laws=$(grep -c " holds\$" <<<"$out")
run 0 prove all --json; [ "$(wc -l <<<"$out")" = "$laws" ] || fail "not one record for each law"
[ "$(grep -c '"holds":true' <<<"$out")" = "$(wc -l <<<"$out")" ] || fail "a record does not hold"

run 0 prove "dtn:lam=1" = ln; says "equal within 1e-05"; says "d weight"; says "dx"; silent
run 0 prove "dtn:lam=1 = ln" --json; json law values gradients differences holds; says '"holds":true'
run 0 prove dtn:lam=1 = ln --shape 2x6x12 --seeds 1 --special 1 --heads 2
run 0 prove "sep(bn,ln) = sep(batch,layer)"
run 1 prove rms = ln; says "differ"; silent
run 1 prove "sep(bn,ln) = ln" --json; says '"holds":false'
run 1 prove "ln:eps=1e-5 = ln:eps=0.1"
run 0 prove "ln:eps=1e-5 = ln:eps=0.1" --tolerance 1; silent

run 2 prove; complains "needs an equation"; one_line
run 2 prove ln; complains "not an equation"; one_line
run 2 prove ln = bn = "in"; complains "not an equation"; one_line
run 2 prove "lnn = ln"; complains "did you mean 'ln'?"; one_line
run 2 prove "ln:epz=1 = ln"; complains "eps"; one_line
run 2 prove "ln = ln" --shape 3x3; complains "3x12x12"; one_line
run 2 prove "ln = ln" --shape 1x1x5 --heads 3; complains "heads"; one_line
exit "$failed"
