#!/bin/bash
# tokenize writes the reference files again as they are, reads back what it wrote, and says what is wrong.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
files=test/golden/text/tokenizer

for f in wordpiece wordpiece_pairs bpe bpe_pairs; do
	vocab=$files/vocab.txt
	[ "${f#bpe}" = "$f" ] || vocab=$files/bpe
	run 0 tokenize --vocab $vocab --hex <$files/$f.tsv; silent
	cmp "$tmp/out" $files/$f.tsv || fail "$f.tsv is not the same"
done
cut -f 1,2 $files/wordpiece_pairs.tsv >"$tmp/texts"
run 0 tokenize --vocab $files/vocab.txt --hex --pair <"$tmp/texts"; cmp "$tmp/out" $files/wordpiece_pairs.tsv || fail "the texts alone give something else"

run 0 tokenize --vocab $files/vocab.txt <<<"Hello, world!"; [ "$out" = "101 7592 1010 2088 999 102" ] || fail "$out"
run 0 tokenize --vocab $files/vocab.txt --tokens --no-special <<<"unaffable"; [ "$out" = "una ##ffa ##ble" ] || fail "$out"
run 0 tokenize --vocab $files/vocab.txt --pair --types --max-length 5 <<<$'hello world\tworld'; [ "$out" = $'101 7592 102 2088 102\t0 0 0 1 1' ] || fail "$out"
run 0 tokenize --vocab $files/vocab.txt --pad 5 <<<"hello"; [ "$out" = "101 7592 102 0 0" ] || fail "$out"
run 0 tokenize --vocab $files/vocab.txt --json <<<"hello"; json ids types tokens
run 0 tokenize --vocab $files/vocab.txt --decode --no-special <<<"101 7592 1010 2088 999 102"; [ "$out" = "hello, world!" ] || fail "$out"
run 0 tokenize --vocab $files/bpe <<<"an angle"; run 0 tokenize --vocab $files/bpe/merges.txt --decode --no-special <<<"$out"; [ "$out" = "an angle" ] || fail "$out"
printf 'hello\n\nworld' >"$tmp/lines"; run 0 tokenize --vocab $files/vocab.txt <"$tmp/lines"; [ "$(wc -l <"$tmp/out")" = 3 ] || fail "not three lines"

bad() { run "$@"; one_line; }
bad 2 tokenize </dev/null; complains "--vocab"
bad 1 tokenize --vocab "$tmp/nosuch.txt" </dev/null; complains "nosuch.txt"
mkdir "$tmp/empty"; bad 1 tokenize --vocab "$tmp/empty" </dev/null; complains "no tokenizer.json"
printf '[UNK]\n[CLS]\n[SEP]\nx\nx\n' >"$tmp/vocab.txt"; bad 1 tokenize --vocab "$tmp/vocab.txt" </dev/null; complains "line 5"
bad 1 tokenize --vocab $files/vocab.txt --hex <<<"6g"; complains "hexadecimal"
bad 1 tokenize --vocab $files/vocab.txt --hex --pair <<<"61"; complains "no second text"
bad 1 tokenize --vocab $files/vocab.txt --pair <<<"one"; complains "no tab"
bad 1 tokenize --vocab $files/vocab.txt --decode <<<"101 30522"; complains "30522"
bad 1 tokenize --vocab $files/vocab.txt --max-length 1 <<<"a"; complains "1 id has no room for the 2 special tokens (line 1)"
bad 1 tokenize --vocab $files/vocab.txt --pair --cut only_first --max-length 5 <<<$'a\tb\na\tb c d'; complains "(line 2)"
bad 1 tokenize --vocab "$tmp/nowhere" </dev/null; complains "No such file or directory"
bad 2 tokenize --vocab $files/vocab.txt --hex --json </dev/null; complains "--hex"
bad 2 tokenize --vocab $files/vocab.txt --cut longest </dev/null; complains "longest_first"
bad 2 tokenize --vocab $files/vocab.txt text </dev/null; complains "standard input"

# the benchmark runs
run 0 bench tokenize --tiny --json; says '"mb_per_s":'; [ "$(wc -l <"$tmp/out")" = 2 ] || fail "not two records"
run 0 bench tokenize --tiny --vocab $files/vocab.txt --text $files/vocab.txt; says "MB/s"
bad 2 bench gemm --text x; complains "bench tokenize"

# a reference file that is off by one id
if [ -x "${NORMA_BUILD:-build}/bin/norma-golden" ]; then
	cp -r $files "$tmp/golden"; chmod -R u+w "$tmp/golden"
	sed -i '3s/ 1879 / 1878 /' "$tmp/golden/wordpiece.tsv"
	ran="norma-golden"; got=$("${NORMA_BUILD:-build}/bin/norma-golden" "$tmp/golden") && fail "it passes a wrong id"
	grep -q "wordpiece.tsv.*line 3" <<<"$got" || fail "line 3 is not named: $got"
	grep -q "^3 passed, 1 failed, 0 skipped" <<<"$got" || fail "$got"
fi
exit "$failed"
