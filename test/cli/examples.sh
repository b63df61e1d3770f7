#!/bin/bash
# Every example of an installed header (what stands indented below a line `Example:`) and every ```c block of the documentation is compiled
# against an installed libnorma, without a warning, and runs without an error on small made-up data. An example is a whole program, or
# statements with an error slot `err`.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
[ -z "${NORMA_SANITIZE:-}" ] || exit 77
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc

DESTDIR=$tmp/stage cmake --install "$NORMA_BUILD" --prefix /opt/norma >/dev/null
lib=$(dirname "$(find "$tmp/stage" -name libnorma.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib OMP_NUM_THREADS=1 NORMA_DATA=$tmp/data

# ---- what the examples read: pictures, sentences, molecules
mkdir -p "$tmp/work/text"
cp test/data/pictures/rgb.jpg "$tmp/work/cat.jpg"
run 0 models vit:image=16,patch=4,dim=32,depth=2,heads=2,classes=5 --write "$tmp/work/model.safetensors" --seed 4
run 0 models bert:dim=16,depth=2,heads=2,hidden=24,positions=24,length=24,vocab=11 --write "$tmp/work/text/model.safetensors" --seed 2
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a cat sees the dog . >"$tmp/work/text/vocab.txt"
made_up "$tmp/data/fashion-mnist" train 60
made_up "$tmp/data/fashion-mnist" t10k 20
made_up_values >"$tmp/values.csv"
run 0 graph --data "molecules:path=$tmp/values.csv,cache=none" --model graphormer:dim=24,depth=1,heads=2,hidden=24 --batch 8 --steps 1 \
	--out "$tmp/molecules"
cp "$tmp/molecules/model.safetensors" "$tmp/work/molecules.safetensors"

# ---- one program for each example, named after its file and line
mkdir "$tmp/code"
headers=$(find "$tmp/stage" -path '*/include/norma/*.h')
# shellcheck disable=SC2086 # a list
awk -v dir="$tmp/code" '
function begin() { out = ""; at = FNR + 1 }
function end(    name, file) {
	name = FILENAME
	sub(/.*\/include\//, "", name)
	file = name
	gsub(/[^A-Za-z0-9]/, "-", file)
	file = dir "/" file "-" at ".c"
	if (out ~ /(^|\n)int main\(/) printf "#line %d \"%s\"\n%s", at, name, out >file
	else printf "#include <math.h>\n#include <norma/norma.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" \
		"int main(void)\n{\n\tstruct nr_error err = { 0 };\n\tchar message[2048];\n\t{\n#line %d \"%s\"\n%s\t}\n" \
		"\tif (err.code) fprintf(stderr, \"%%s\\n\", nr_error_text(&err, message, sizeof message));\n" \
		"\treturn err.code ? 1 : 0;\n}\n", at, name, out >file
	close(file)
	inside = 0
}
FNR == 1 { inside = 0; header = FILENAME ~ /\.h$/ }
header && inside && /^ \*   / { out = out substr($0, 6) "\n"; next }
header && inside && /^ \*$/ { out = out "\n"; next }
inside && (header || /^```$/) { end() }
inside { out = out $0 "\n" }
header ? /^ \* Example:$/ : /^```c$/ { inside = 1; begin() }
' $headers README.md docs/*.md
[ "$(find "$tmp/code" -name '*.c' | wc -l)" -ge 15 ] || { ran="awk"; fail "examples are lost"; }

# ---- every header for readers has one; the others are read through them
for header in $headers; do
	case ${header##*/} in
	real.h | tensor.h | patch.h | task.h | op.h | plugin.h) continue ;;
	esac
	ran=$header
	[ -n "$(find "$tmp/code" -name "norma-$(basename "$header" .h)-h-*.c")" ] || fail "it has no example"
done

for code in "$tmp"/code/*.c; do
	program=${code%.c} ran=$(basename "$code" .c)
	# shellcheck disable=SC2046 # pkg-config gives words
	cc -std=gnu17 -Wall -Wextra -Werror -Wno-unused "$code" -o "$program" $(pkg-config --cflags --libs norma) -lm || {
		fail "it does not compile"
		continue
	}
	(cd "$tmp/work" && "$program") >"$tmp/out" 2>&1 || fail "it fails: $(cat "$tmp/out")"
done
exit $failed
