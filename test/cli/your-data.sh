#!/bin/bash
# The commands of docs/your-data.md and of the README work as they stand there, on small data and with small models.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc
NORMA=$(realpath "$NORMA")
page=$(realpath docs/your-data.md)
readme=$(realpath README.md)
export NORMA_DATA=$tmp/data
mkdir -p "$tmp/data" "$tmp/bin" "$tmp/work"
cd "$tmp/work"
pictures pictures 10
cp pictures/class-0/0.tif new.jpg
made_up_values | cut -d, -f1,2 >molecules.csv
sentences 1 60 >lines.txt
{ echo text,label; sentences 2 60 | awk '{ print $0 "," (NR % 2 ? "good" : "bad") }'; } >reviews.csv
"$NORMA" mlm --data lines.txt --tokenizer "$vocab" --model bert:dim=16,depth=1,heads=2,hidden=24,positions=24 --max-length 16 --batch 8 --steps 1 --out bert >"$tmp/out" 2>&1 ||
	{ ran="norma mlm"; fail "$(cat "$tmp/out")"; }

# the page's commands, with models and lengths for a test
cat >"$tmp/bin/norma" <<'WRAPPER'
#!/bin/bash
more=()
case $1 in
train | compare) more=(--model vit_nano:image=24,patch=6,dim=16,depth=1,heads=2 --batch 8) ;;
graph) more=(--model graphormer-nano:depth=1,atoms=81 --batch 8) ;;
simcse) more=(--batch 8 --steps 2 --max-length 16) ;;
text) more=(--batch 8 --max-length 16) ;;
esac
exec "$NORMA" "$@" "${more[@]}"
WRAPPER
chmod +x "$tmp/bin/norma"
export NORMA PATH="$tmp/bin:$PATH"
# commands FILE FIRST-LINE LAST-LINE: those of the blocks of shell between these headings
# shellcheck disable=SC2016 # Markdown's `
commands() { sed -n "/^$2/,/^$3/p" "$1" | sed -n '/^```sh$/,/^```$/p' | grep '^[a-z]'; }
follow() {
	local line
	while read -r line; do
		ran=$line
		count=$((count + 1))
		bash -c "${line//--epochs 10/--epochs 1}" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "$(cat "$tmp/err")"
	done
}
count=0
follow < <(commands "$page" '# Your own data' '## What a path')
[ "$count" -ge 16 ] || fail "the page has only $count commands"
for f in norms.html molecules.html runs/pictures/best.safetensors runs/sentences/model.safetensors runs/reviews/classes.json; do [ -s "$f" ] || fail "no $f"; done

# and those of the README
mkdir "$tmp/readme"
ln -s "$PWD/pictures" "$PWD/new.jpg" "$PWD/molecules.csv" "$tmp/readme/"
ln -s "$PWD/lines.txt" "$tmp/readme/sentences.txt"
ln -s "$PWD/bert" "$tmp/readme/bert-base-uncased"
cd "$tmp/readme"
count=0
follow < <(commands "$readme" '## Your own data' '## Where to read on')
[ "$count" = 6 ] || fail "the README has $count commands there"
exit "$failed"
