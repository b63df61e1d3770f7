#!/bin/bash
# Every case trains and infers in its tiny form, on every instruction set and any number of threads, with equal losses.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

keys=(case ms ms_best gflop gflops ref_gflops share_of_ref peak_rss_mib threads isa reps steps_per_s samples_per_s
	params planned_mib foreign_cpu)
loss() { sed -n 's/.*"loss":\([^,}]*\).*/\1/p' <<<"$out"; }
for c in vit_tiny_bs8 vit_small_bs4 mae32_bs128 simcse_bs32_len32 graphormer_slim_bs128; do
	for task in train infer; do
		run 0 bench step $c/$task --tiny --json; json "${keys[@]}"; says "\"case\":\"$c/$task\""; silent
		run 0 bench step $c/$task --tiny; says "$c/$task"
		run 0 bench step $c/$task --tiny --profile; says "linear"
	done
	run 0 bench step $c --tiny --json --threads 1; says '"threads":1'; one=$(loss)
	run 0 --threads 2 bench step $c --tiny --json; says '"threads":2'
	[ "$(loss)" = "$one" ] || fail "loss $(loss) with two threads, $one with one"
	run 0 bench step $c --tiny --json --isa plain; says '"isa":"plain"'
	[ "$(loss | cut -c1-4)" = "$(cut -c1-4 <<<"$one")" ] || fail "loss $(loss) with plain kernels, $one with the best"
done
run 0 bench loop vit_tiny_bs8 --tiny --json; json case replay_ms hand_ms ratio; says '"same_gradients":true'
run 0 bench tsne --tiny --json; json case seconds kl trustworthiness
run 0 bench startup --tiny --json; json case ms ms_best runs
run 0 bench uniformity --tiny --json; json case ms gflops share_of_ref peak_rss_mib
run 0 bench all --tiny --json; [ "$(wc -l <"$tmp/out")" = 10 ] || fail "not ten records"
run 0 bench all --tiny; says "mae32_bs128/infer"
exit "$failed"
