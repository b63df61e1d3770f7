#!/bin/bash
# on-set.sh SET COMMAND...: runs COMMAND on an instruction set; exit 77 (skipped) if the CPU lacks it. NORMA is the command that knows.
set -euo pipefail
export NORMA_ISA=$1
shift
has=$("$NORMA" doctor --no-measure --json | sed -n 's/.*"isa_available":\[\([^]]*\)\].*/\1/p')
[[ $has == *"\"$NORMA_ISA\""* ]] || { echo "this CPU lacks $NORMA_ISA" >&2; exit 77; }
exec "$@"
