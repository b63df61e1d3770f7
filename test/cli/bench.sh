#!/bin/bash
# Every case trains and infers in its tiny form, on every instruction set and any number of threads, with equal losses.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

keys=(case ms ms_best ms_p95 peak_gflops share_of_peak copy_gbs gflop gflops ref_gflops share_of_ref peak_rss_mib threads isa reps
	steps_per_s samples_per_s params planned_mib foreign_cpu)
loss() { sed -n 's/.*"loss":\([^,}]*\).*/\1/p' <<<"$out"; }
for c in vit_tiny_bs8 vit_small_bs4 mae32_bs128 simcse_bs32_len32 graphormer_slim_bs128; do
	for task in train infer; do
		run 0 bench step $c/$task --tiny --json; json "${keys[@]}"; says "\"case\":\"$c/$task\""; silent
		run 0 bench step $c/$task --tiny; says "$c/$task"
		run 0 bench step $c/$task --tiny --profile; says "linear"; says "of limit"
		run 0 bench step $c/$task --tiny --profile --json; json case ops op pass share bound of_limit peak_gflops share_of_peak copy_gbs
	done
	run 0 bench step $c --tiny --json --threads 1; says '"threads":1'; one=$(loss)
	run 0 --threads 2 bench step $c --tiny --json; says '"threads":2'
	[ "$(loss)" = "$one" ] || fail "loss $(loss) with two threads, $one with one"
	run 0 bench step $c --tiny --json --isa plain; says '"isa":"plain"'
	[ "$(loss | cut -c1-4)" = "$(cut -c1-4 <<<"$one")" ] || fail "loss $(loss) with plain kernels, $one with the best"
done
run 0 bench loop vit_tiny_bs8 --tiny --json; json case replay_ms hand_ms ratio peak_gflops copy_gbs; says '"same_gradients":true'
run 0 bench tsne --tiny --json; json case seconds kl trustworthiness
run 0 bench startup --tiny --json; json case ms ms_best runs peak_gflops copy_gbs
run 0 bench uniformity --tiny --json; json case ms gflops share_of_ref share_of_peak peak_rss_mib
# latency: inference of the cases of one sample, and no other
run 0 bench latency --tiny --json; [ "$(wc -l <"$tmp/out")" = 2 ] || fail "not two records"
says '"case":"vit_small_bs1/infer"'; says '"case":"minilm_bs1_len16/infer"'
[ "$(grep -c '"ms_p95":.*"share_of_peak":' "$tmp/out")" = 2 ] || fail "a record without p95 or share of the peak"
# gemm: the shapes of every case, forward and both gradients; those of one sample forward only
run 0 bench gemm --tiny; says "of peak"; says "graphormer_slim_bs128   TN"
run 0 bench gemm --tiny --json; says '"of":"mae32_bs128","kind":"NN"'; says '"of":"vit_small_bs1","kind":"NT"'
[ "$(grep -c '"gflops":.*"peak_gflops":.*"copy_gbs":.*"share_of_peak":' "$tmp/out")" = "$(wc -l <"$tmp/out")" ] || fail "a record without limits"
grep -q '"of":"vit_small_bs1","kind":"T' "$tmp/out" && fail "gradients of a case that is not trained"
# a block's four linear layers on all tokens, both gradients of each: m n k of the second one of the MLP
says '"of":"simcse_bs32_len32","kind":"TN","m":24,"n":96,"k":42,"calls":1'
# scaling: ratios to the base; blocks and samples do that many times the work of a base of one block
run 0 bench scaling --tiny; says "plan ms"; says "blocks"
run 0 bench scaling --tiny --json; [ "$(wc -l <"$tmp/out")" = 17 ] || fail "not 17 records"
says '"what":"base","times":1,"value":1'; says '"what":"blocks","times":25,"value":25'; says '"what":"threads","times":8,"value":8,"threads":8'
[ "$(grep -c '"gflop_ratio":.*"ms_ratio":.*"mib_ratio":.*"plan_ratio":.*"share_of_peak":' "$tmp/out")" = 17 ] || fail "a record lacks a ratio"
run 2 bench norms --peer strong; complains "bench step, all and latency"; one_line
run 2 bench step vit_tiny_bs8 --peer strnog; complains "strong"; one_line
run 0 bench all --tiny --json; [ "$(wc -l <"$tmp/out")" = 40 ] || fail "not 40 records"
run 0 bench all --tiny; says "mae32_bs128/infer"
exit "$failed"
