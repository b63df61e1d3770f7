#!/bin/bash
# The walks of docs/architecture.md are true: every file that they name exists and defines the function that is named after it. So are the
# links of every page and the headers that docs/library.md lists.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

page=docs/architecture.md
sed -n '/^## Three walks/,/^## Planner/p' "$page" >"$tmp/walks"
# `path`, or `path` (`function`): a function belongs to the last path before it.
# shellcheck disable=SC2016 # Markdown's `
grep -oE '`(src/[a-z0-9_/.]+|nr_[a-z0-9_]+)`' "$tmp/walks" | tr -d '`' >"$tmp/names"
[ "$(grep -c '^src/' "$tmp/names")" -ge 30 ] || fail "the walks of $page name few files"
[ "$(grep -c '^nr_' "$tmp/names")" -ge 10 ] || fail "the walks of $page name few functions"
file='' ran=$page
while read -r name; do
	case $name in
	src/*)
		file=$name
		[ -e "$file" ] || fail "$page names $file, which does not exist"
		;;
	*)
		# A definition begins at the first column and does not end in a semicolon.
		grep -qE "^[a-z].*\b$name\(.*[^;]$" "$file" || fail "$page says that $file defines $name"
		;;
	esac
done <"$tmp/names"

for page in *.md docs/*.md docs/*/*.md; do
	ran=$page
	while read -r link; do
		[ -e "$(dirname "$page")/$link" ] || fail "its link to $link leads nowhere"
	done < <(grep -oE '\]\([^)#: ]+[)#]' "$page" | sed 's/^](//; s/.$//' | grep '[./]')
done
ran=docs/library.md
# shellcheck disable=SC2016
for header in $(grep -oE '`[a-z0-9_]+\.h`' docs/library.md | tr -d '`'); do
	[ -e "include/norma/$header" ] || fail "there is no header $header"
done
for header in include/norma/*.h; do
	grep -qF "\`$(basename "$header")\`" docs/library.md || fail "it does not list $(basename "$header")"
done
exit "$failed"
