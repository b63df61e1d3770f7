#!/bin/bash
# plan prints what a step runs and holds; rebuilding takes less memory, fusing fewer instructions.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

number() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" <<<"$out"; }
run 0 plan vit_tiny_bs8; says "parameters: 5717416"; says "peak:"; says "forward"; silent
run 0 plan vit_tiny_bs8 --instructions; says "blocks.11.mlp.fc2"; says "MFLOP"
run 0 plan vit_tiny_bs8 --json; json instructions forward backward arena_bytes scratch_bytes params forward_gflop; arena=$(number arena_bytes) count=$(number instructions)
run 0 plan vit_tiny_bs8 --json --rebuild; [ "$(number arena_bytes)" -lt "$arena" ] || fail "rebuilding saves nothing"
run 0 plan vit_tiny_bs8 --json --no-fuse; [ "$(number instructions)" -gt "$count" ] || fail "fusing saves no instruction"
run 0 plan vit_tiny_bs8 --json --no-narrow; { [ "$(number narrowed)" = 0 ] && [ "$(number arena_bytes)" -gt "$arena" ]; } || fail "narrowing saves nothing"
NORMA_NARROW=0 run 0 plan vit_tiny_bs8 --json; [ "$(number narrowed)" = 0 ] || fail "NORMA_NARROW=0 narrowed"
run 0 plan vit_tiny_bs8; says "9 narrowed to leading tokens"; says "narrowing saves"
NORMA_FUSE=0 run 0 plan vit_tiny_bs8 --json; [ "$(number fused)" = 0 ] || fail "NORMA_FUSE=0 fused"
run 0 plan vit_tiny_bs8 --json --infer; says '"backward":0'; says 'vit_tiny_bs8/infer'; infer=$out
run 0 plan vit_tiny_bs8/infer --json; [ "$out" = "$infer" ] || fail "not the same as --infer"
run 0 plan mae32_bs128 --json; says '"params":1320304'
run 0 plan vit_small_bs4 --json; says '"params":22050664'
# where norms sit
run 0 plan vit_tiny_bs8 --tiny --sites; says "blocks.1.mlp.in"; says "layer"; silent
run 0 plan vit_tiny_bs8 --tiny --sites --norm "sep(bn,ln)" --patch-norm dual --placement post
says "patch.out"; says "blocks.0.attn.res"; says "sep(bn,ln)"
run 0 plan vit_tiny_bs8 --tiny --sites --json --norm "blocks[0:1].*=rms blocks[-1].mlp.in=dyt"; says '{"site":"blocks.1.mlp.in","norm":"dyt"'
run 0 plan mae32_bs128 --tiny --norm "dtn decoder.blocks[0].*=sep(bn,rms)"; says "parameters:"
run 0 plan vit_tiny_bs8 --tiny --norm ln --residual layerscale:init=1e-5
run 2 plan vit_tiny_bs8 --tiny --norm lm; complains "did you mean 'ln'?"; one_line
run 2 plan vit_tiny_bs8 --tiny --norm "ln atn.in=bn"; complains "did you mean 'attn.in'?"; one_line
run 2 plan vit_tiny_bs8 --tiny --norm "blocks[7:].*=bn"; complains "no site matches"; one_line
run 2 plan vit_tiny_bs8 --tiny --placement pots; complains "did you mean 'post'?"; one_line
run 2 plan vit_tiny_bs8 --tiny --patch-norm daul; complains "did you mean 'dual'?"; one_line
run 2 plan vit_tiny_bs8 --tiny --norm "batch:momentom=1"; complains "did you mean 'momentum'?"; one_line

# on several ranks, on paper
run 0 plan mae32_bs128 --ranks 6; says "5.0 MiB of gradients, halving sums"; says "efficiency"; silent
[ "$(awk '$1 + 0 > 0 { print $1 }' "$tmp/out" | tr '\n' ' ')" = "1 2 4 6 " ] || fail "the rows: $out"
run 0 plan mae32_bs128 --tiny --ranks 1 --json; json efficiency sent_bytes; says '"sent_bytes":0.0'; says '"efficiency":1.0'
run 0 plan mae32_bs128 --ranks 2 --json; says '"gradient_bytes":5281216'; says '"sent_bytes":5281216.0'; says '"messages":2'
run 0 plan mae32_bs128 --ranks 8 --bf16 --reduce ring --overlap --bucket 1 --json; says '"gradient_bytes":2640608'; says '"buckets":3'; says '"messages":42'
run 0 plan vit_tiny_bs8 --tiny --ranks 4 --sync --norm bn --json; ! grep -q '"sync_layers":0' <<<"$out" || fail "no batch norms: $out"
run 0 plan vit_tiny_bs8 --tiny --ranks 4 --sync --json; says '"sync_layers":0'
run 0 plan vit_tiny_bs8 --ranks 1 --step 612 --json; says '"step_ms":612.0'
run 2 plan vit_tiny_bs8/infer --ranks 2; complains "--ranks is for training"; one_line
run 2 plan vit_tiny_bs8 --ranks 2 --bandwidth 0; complains "is not between"; one_line
run 2 plan vit_tiny_bs8 --ranks 2 --reduce rign; complains "did you mean 'ring'?"; one_line
exit "$failed"
