#!/bin/bash
# doctor says what was chosen and why, and warns of settings that are wrong or slow.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT NORMA_ISA

run 0 doctor; says "kernels"; says "GFLOP/s"; says "GB/s"; says "libyaml"; silent
run 0 doctor --no-measure; says "compiled: plain"
run 0 doctor --json --no-measure; json version cpu isa isa_reason threads warnings libraries memory_bytes
run 0 doctor --no-measure --isa plain; says "plain: asked for"
NORMA_ISA=plain run 0 doctor --no-measure; says "asked for by NORMA_ISA"
NORMA_ISA=sse9 run 0 doctor --no-measure; says "NORMA_ISA='sse9' is not known"; says "warning"
OMP_WAIT_POLICY=passive run 0 doctor --no-measure; says "OMP_WAIT_POLICY=passive"
OMP_WAIT_POLICY=active run 0 doctor --no-measure; says "OMP_WAIT_POLICY=active"
run 0 doctor --no-measure --threads 999; says "999 threads on"
exit "$failed"
