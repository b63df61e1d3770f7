#!/bin/bash
# What libnorma.so exports is what test/cli/symbols.txt lists, each name under the version of the build, which headers and CMake agree on.
# `test/cli/symbols.sh --record` writes the list anew, for a commit that changes the interface on purpose.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -z "${NORMA_SANITIZE:-}" ] || exit 77
build=${NORMA_BUILD:-build}
list=test/cli/symbols.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
minor=${version%.*}
nm -D --defined-only "$build/lib/libnorma.so" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort >"$tmp/found"
sed "s/@@NORMA_$minor\$//" "$tmp/found" >"$tmp/names"
if [ "${1:-}" = --record ]; then
	cp "$tmp/names" "$list"
	exit
fi
if ! diff -u "$list" "$tmp/names"; then
	echo "libnorma.so exports other names than $list; if that is meant: test/cli/symbols.sh --record" >&2
	exit 1
fi

# the version, as text and as a number, in the header and in the library
cat >"$tmp/version.c" <<'END'
#include <norma/version.h>
#include <stdio.h>
int main(void) { return printf("%s %s %d %d\n", NR_VERSION, nr_version(), NR_VERSION_NUMBER, nr_version_number()) < 0; }
END
cc "$tmp/version.c" -o "$tmp/version" -Iinclude -I"$build/generated" -L"$build/lib" -lnorma -Wl,-rpath,"$build/lib"
number=$(awk -F. '{ print 10000 * $1 + 100 * $2 + $3 }' <<<"$version")
[ "$("$tmp/version")" = "$version $version $number $number" ] || { echo "not $version everywhere: $("$tmp/version")" >&2; exit 1; }
