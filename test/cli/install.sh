#!/bin/bash
# An installed norma is found by pkg-config and by CMake, also after the tree was moved, and shows only nr_ symbols.
# shellcheck disable=SC2046 # pkg-config gives words
set -euo pipefail
[ -z "$NORMA_SANITIZE" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

DESTDIR="$dir/stage" cmake --install "$NORMA_BUILD" --prefix /opt/norma >/dev/null
mv "$dir/stage/opt/norma" "$dir/moved"
lib=$(dirname "$(find "$dir/moved" -name libnorma.a)")

others=$(nm -D --defined-only "$lib/libnorma.so" | awk '$2 != "A" && $3 !~ /^nr_/ { print $3 }')   # A: the version itself
[ -z "$others" ] || { echo "libnorma.so also shows: $others" >&2; exit 1; }
[ -L "$lib/libnorma.so.0" ] || { echo "no libnorma.so.0" >&2; exit 1; }

cat >"$dir/use.c" <<'END'
#include <norma/err.h>
int main(void) { return nr_strerror(NR_EIO) == 0; }
END
export PKG_CONFIG_PATH=$lib/pkgconfig
cd "$dir"
cc use.c -o use-pc $(pkg-config --cflags --libs norma)
LD_LIBRARY_PATH=$lib ./use-pc
cc use.c -o use-static $(pkg-config --cflags norma) "$lib/libnorma.a" \
	$(pkg-config --static --libs norma | sed 's/-lnorma//')
./use-static

# every header stands alone, also in C++ when there is a compiler for it
for h in "$dir"/moved/include/norma/*.h; do
	echo "#include <norma/$(basename "$h")>" >alone.c
	cc -std=c17 -Wall -Werror -fsyntax-only -I"$dir/moved/include" alone.c
	if command -v c++ >/dev/null; then
		c++ -x c++ -std=c++17 -fsyntax-only -I"$dir/moved/include" alone.c
	fi
done

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.21)
project(use C)
find_package(norma 0.2 REQUIRED)
add_executable(a use.c)
target_link_libraries(a norma::norma)
add_executable(b use.c)
target_link_libraries(b norma::norma_static)
END
cmake -G Ninja -S . -B b -DCMAKE_PREFIX_PATH="$dir/moved" >/dev/null
cmake --build b >/dev/null
b/a
b/b
if [ -x "$dir/moved/bin/norma" ]; then
	"$dir/moved/bin/norma" --version >/dev/null
	# its recipes and published numbers came along and go by their names, wherever it is started
	found() { grep -q 'arms x' < <("$dir/moved/bin/norma" "$@" --dry-run 2>&1 || true); }    # it is listed, though its data are not here
	found study sepnorm/table4 || { echo "no study by name" >&2; exit 1; }
	cp "$dir/moved/share/norma/recipes/sepnorm/table4.yaml" own.yaml
	found study own.yaml || { echo "no published numbers for a study elsewhere" >&2; exit 1; }
	found compare cpu/fashion-mnist --norm ln --norm rms || { echo "no recipe by name" >&2; exit 1; }
	for page in norma norma-train; do
		[ -s "$dir/moved/share/man/man1/$page.1" ] || [ ! -s "$NORMA_BUILD/man/$page.1" ] || { echo "no man page $page" >&2; exit 1; }
	done
fi
