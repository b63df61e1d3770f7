#!/bin/bash
# Gradients of several buckets that travel while backward goes on, also by a thread of their own: the bits of those that leave afterwards.
# In the preset tsan this is what ThreadSanitizer sees of that thread (MPI itself, which was not built for it, is left out).
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
if [ "${NORMA_SANITIZE:-}" = thread ]; then
	unset NORMA_SANITIZE
	printf '%s\n' called_from_lib:libgomp.so called_from_lib:libmpi.so.40 >"$tmp/supp"
	export TSAN_OPTIONS="suppressions=$tmp/supp ignore_noninstrumented_modules=1 exitcode=66"
fi
# shellcheck source=test/cli/ranks.inc
. test/cli/ranks.inc
made_up_mnist 80 20
want=
for overlap in after between thread; do
	rm -rf "$tmp/run"
	# shellcheck disable=SC2054 # commas of options
	on 0 2 2 train --data mnist --model vit_nano:dim=192,depth=6,heads=3,patch=14 --norm "sep(bn,ln)" --batch 8 --steps 3 --shards 4 --eval-every 0 \
		--overlap $overlap --out "$tmp/run"
	! grep -q ThreadSanitizer <<<"$err" || fail "$err"
	have=$(hash "$tmp/run")
	: "${want:=$have}"
	[ "$have" = "$want" ] || fail "overlap $overlap: $have instead of $want"
done
exit "$failed"
