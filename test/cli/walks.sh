#!/bin/bash
# The walks of docs/architecture.md are true: every file that they name exists and defines the function that is named after it.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

page=docs/architecture.md
sed -n '/^## Three walks/,/^## Planner/p' "$page" >"$tmp/walks"
# `path`, or `path` (`function`): a function belongs to the last path before it.
grep -oE '`(src/[a-z0-9_/.]+|nr_[a-z0-9_]+)`' "$tmp/walks" | tr -d '`' >"$tmp/names"
[ "$(grep -c '^src/' "$tmp/names")" -ge 30 ] || fail "the walks of $page name few files"
[ "$(grep -c '^nr_' "$tmp/names")" -ge 10 ] || fail "the walks of $page name few functions"
file= ran=$page
while read -r name; do
	case $name in
	src/*)
		file=$name
		[ -e "$file" ] || fail "$page names $file, which does not exist"
		;;
	*)
		# A definition begins at the first column and does not end in a semicolon.
		grep -E "^[a-z].*\b$name\(" "$file" | grep -qv ';$' || fail "$page says that $file defines $name"
		;;
	esac
done <"$tmp/names"
exit "$failed"
