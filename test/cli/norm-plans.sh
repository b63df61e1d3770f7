#!/bin/bash
# The commands of docs/norm-plans.md run as they stand.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

count=0
# shellcheck disable=SC2016 # Markdown's `
while IFS= read -r line; do
	count=$((count + 1))
	eval "run 0 ${line#norma }"
	silent
done < <(sed -n '/^```sh/,/^```$/p' docs/norm-plans.md | sed -n 's/^\(norma .*\)$/\1/p' | sed 's/ #.*//')
ran="docs/norm-plans.md"
[ "$count" -ge 5 ] || fail "only $count commands found"
exit "$failed"
