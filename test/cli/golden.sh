#!/bin/bash
# norma-golden: exit codes, the closing line, and that wrong, broken and missing files are never taken for passes.
set -u
golden=${NORMA_BUILD:-build}/bin/norma-golden
files=${NORMA_SOURCE:-.}/test/golden/metrics
[ -x "$golden" ] || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# expect CODE "LAST LINE" ARGUMENT...
expect() {
	local code=$1 last=$2 out
	shift 2
	out=$("$golden" "$@" 2>"$dir/stderr")
	local got=$?
	if [ $got -ne "$code" ] || [ "$(printf '%s\n' "$out" | tail -n 1)" != "$last" ]; then
		echo "norma-golden $*: exit $got, expected $code and '$last'"
		printf '%s\n' "$out"
		failed=1
	fi
	printf '%s\n' "$out" >"$dir/stdout"
}
says() {
	grep -q -- "$1" "$dir/stdout" "$dir/stderr" || { echo "nothing says '$1'"; cat "$dir/stdout"; failed=1; }
}

mkdir -p "$dir/good/deep" "$dir/bad" "$dir/empty" "$dir/other"
cp "$files/topk.safetensors" "$dir/good/"
cp "$files/schedules.safetensors" "$dir/good/deep/"
expect 0 "2 passed, 0 failed, 0 skipped" "$dir/good"
expect 0 "1 passed, 0 failed, 0 skipped" "$dir/good/topk.safetensors"
expect 0 "2 passed, 0 failed, 0 skipped" --verbose "$dir/good"
says "ok .*top1"

# A value that is off by more than the tolerance: the last bytes belong to the last tensor.
cp "$files/schedules.safetensors" "$dir/bad/a.safetensors"
printf '\x00\x00\x80\x3f' | dd of="$dir/bad/a.safetensors" bs=1 seek=$(($(stat -c %s "$dir/bad/a.safetensors") - 4)) \
	conv=notrunc status=none
expect 1 "0 passed, 1 failed, 0 skipped" "$dir/bad"
says "FAIL .*a.safetensors .*: error .*, tolerance 1e-05"

# Cut off, empty, not a tensor file at all.
head -c 600 "$files/topk.safetensors" >"$dir/bad/b.safetensors"
: >"$dir/bad/c.safetensors"
echo "hello" >"$dir/bad/d.safetensors"
expect 1 "2 passed, 4 failed, 0 skipped" "$dir/bad" "$dir/good"

# A tensor without code behind it must not pass: `rank` becomes `rink`.
rm "$dir"/bad/*
sed 's/"rank"/"rink"/' "$files/topk.safetensors" >"$dir/bad/e.safetensors"
expect 1 "0 passed, 1 failed, 0 skipped" "$dir/bad"
says "rink: nothing checks this tensor"

# Kinds without a handler are listed, not failed.
sed 's/"topk"/"tipk"/' "$files/topk.safetensors" >"$dir/other/f.safetensors"
expect 0 "0 passed, 0 failed, 1 skipped" "$dir/other"
says "tipk"

expect 1 "0 passed, 0 failed, 0 skipped" "$dir/empty"
expect 1 "0 passed, 0 failed, 0 skipped" "$dir/nowhere"
says "nowhere: No such file"
expect 2 "" --wrong "$dir/good"
expect 2 ""
exit $failed
