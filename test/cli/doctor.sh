#!/bin/bash
# doctor says what was chosen and why, and warns of settings that are wrong or slow.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT NORMA_ISA

run 0 doctor; says "kernels"; says "of the peak"; says "GB/s"; says "libyaml"; silent
run 0 doctor --json; json peak_gflops sgemm_gflops share_of_peak copy_gbs; silent
run 0 doctor --no-measure; says "compiled: plain"
run 0 doctor --json --no-measure; json version cpu isa isa_reason threads warnings libraries memory_bytes
run 0 doctor --no-measure --isa plain; says "plain: asked for"
NORMA_ISA=plain run 0 doctor --no-measure; says "asked for by NORMA_ISA"
NORMA_ISA=sse9 run 0 doctor --no-measure; says "NORMA_ISA='sse9' is not known"; says "warning"
OMP_WAIT_POLICY=passive run 0 doctor --no-measure; says "OMP_WAIT_POLICY=passive"
OMP_WAIT_POLICY=active run 0 doctor --no-measure; says "OMP_WAIT_POLICY=active"
run 0 doctor --no-measure --threads 999; says "999 threads on"
# Started once more, it has all CPUs that it had before, also where OpenMP ties the first thread to one of them.
cpus() { sed -n 's/.*"cpus_allowed":\([0-9]*\).*/\1/p' <<<"$out"; }
run 0 doctor --json --no-measure; before=$(cpus)
OMP_PROC_BIND=true run 0 doctor --json; [ "$(cpus)" = "$before" ] || fail "$(cpus) CPUs, $before before"
exit "$failed"
