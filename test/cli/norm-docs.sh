#!/bin/bash
# docs/norms is what the registry says today, and its commands run.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

mkdir "$tmp/pages"
run 0 norms --markdown "$tmp/pages"; silent
ran="docs/norms"
diff -r "$tmp/pages" docs/norms >"$tmp/diff" ||
	fail "the pages are not those of the registry; renew them with: build/bin/norma norms --markdown docs/norms
$(head -20 "$tmp/diff")"

# shellcheck disable=SC2317 # the pages call it
norma() { "$NORMA" "$@"; }
for page in docs/norms/*.md; do
	lines=0
	# shellcheck disable=SC2016 # no expansion is meant
	while IFS= read -r line; do
		lines=$((lines + 1)) ran="$page: $line"
		(eval "$line") >"$tmp/out" 2>"$tmp/err" || fail "it does not run: $(cat "$tmp/err")"
	done < <(sed -n '/^```sh$/,/^```$/{/^```/!p}' "$page")
	ran=$page
	[ "$page" = docs/norms/README.md ] || [ "$lines" -ge 6 ] || fail "only $lines lines to run"
done
exit "$failed"
