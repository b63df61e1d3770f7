#!/bin/bash
# bench norms times every norm of the registry, with the keys of the peer's script, and says what it cannot do.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

run 0 norms --json; names=$(sed 's/.*"name":"\([a-z]*\)","alias.*/\1/' "$tmp/out")
run 0 bench norms --tiny --json; silent
[ "$(grep -c '"norm":"copy"' <<<"$out")" = 2 ] || fail "no copy beside the norms of each shape"
for n in $names; do
	[ "$n" = none ] || grep -q "\"norm\":\"${n}[\"(]" <<<"$out" || fail "the norm '$n' is not timed"
done
keys=(case norm mode threads shape fwd_us fwd_gbps fwdbwd_us fwdbwd_gbps)
run 0 bench norms --tiny --json --norm ln --shapes 2x17x24
for k in "${keys[@]}"; do [ "$(tail -1 <<<"$out" | grep -c "\"$k\":")" = 1 ] || fail "the record lacks '$k': $out"; done
says '"norm":"layer"'; says '"shape":[2,17,24]'; says '"peer_name":"ln"'
run 0 bench norms --tiny --json --norm layer:eps=1e-6 --norm rms
says '"norm":"layer:eps=1e-6"'; [ "$(wc -l <<<"$out")" = 6 ] || fail "not three records for each of two shapes: $out"
run 0 bench norms --tiny --norm dtn --shapes 2x16x16; says "of its GEMMs"
run 0 bench norms --tiny --json --norm dtn --shapes 2x16x16; says '"gemm_bound_fwd":'; says '"gemm_bound_fwdbwd":'
run 0 bench norms --tiny --threads 1; says "with backward"
run 2 bench norms --tiny --norm lyaer; complains "did you mean 'layer'?"; one_line
run 2 bench norms --tiny --shapes 3x4; complains "64x196x384"; one_line
run 2 bench norms --tiny --peer; complains "exclude each other"; one_line
run 2 bench loop vit_tiny_bs8 --tiny --norm layer; complains "bench norms"; one_line
NORMA_PEERS=$tmp/none run 1 bench norms --norm layer --shapes 2x16x16 --seconds 0 --peer; complains "setup-peers"; one_line
# a whole step with other norms
run 0 bench step vit_tiny_bs8/train --tiny --norm "sep(bn,ln)" --json; json ms params
run 2 bench step vit_tiny_bs8 --tiny --norm lm; complains "did you mean 'ln'?"; one_line
run 2 bench step vit_tiny_bs8 --norm ln --peer eager; complains "without --peer"; one_line
exit "$failed"
