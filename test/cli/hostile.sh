#!/bin/bash
# A hostile surrounding: closed descriptors, FIFOs and links in the place of files, limits of file sizes, a terminal that goes away,
# files that are truncated while they are read, and what a kill leaves behind.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
# shellcheck source=test/cli/serve.inc
. test/cli/serve.inc
NORMA=$(realpath "$NORMA")
made_up "$tmp/data/mnist" train 60
made_up "$tmp/data/mnist" t10k 20
settings=(--data mnist --data-root "$tmp/data" --model "vit_nano:dim=24,depth=1,heads=3,patch=7" --batch 16 --checkpoint-steps 1)

# ---- closed descriptors: no file of the run gets one of them
for closed in '>&-' '2>&-' '<&- >&- 2>&-'; do
	ran="train $closed" code=0
	rm -rf "$tmp/closed"
	eval '"$NORMA" train "${settings[@]}" --steps 2 --out "$tmp/closed" >"$tmp/out" 2>"$tmp/err"' "$closed" || code=$?
	[ "$code" = 0 ] || fail "exit code $code"
	! grep -qv '^{.*}$' "$tmp/closed/events.jsonl" || fail "text in events.jsonl: $(cat "$tmp/closed/events.jsonl")"
	[ "$(grep -c '"event":"stop"\|"stop"' "$tmp/closed/events.jsonl")" = 1 ] || fail "no end: $(cat "$tmp/closed/events.jsonl")"
done

# ---- FIFOs where a file is expected: an error at once
fifo() { rm -f "$1"; mkfifo "$1"; }
mkdir -p "$tmp/pics/a" "$tmp/pics/b"
cp test/data/pictures/*.png "$tmp/pics/a" 2>/dev/null || true
cp test/data/pictures/*.jpg "$tmp/pics/b" 2>/dev/null || true
fifo "$tmp/pics/a/pipe.png"
fifo "$tmp/pipe"
run 1 predict "$tmp/closed/model.safetensors" "$tmp/pics/a/pipe.png"; complains "it is not a regular file"
run 1 predict "$tmp/pipe" "$tmp/pics/a/pipe.png"; complains "it is not a regular file"
run 1 train "${settings[@]}" --data "folder:path=$tmp/pics" --steps 1 --batch 2 --out "$tmp/folder"; complains "pipe.png': it is not a regular file"
run 1 train "$tmp/pipe"; complains "it is not a regular file"
run 1 runs --store "$tmp/pipe"; complains "it is not a regular file"
cp -r "$tmp/closed" "$tmp/bad"
for file in config.yaml env.json metrics.csv events.jsonl last.safetensors; do
	fifo "$tmp/bad/$file"
	ran="resume with a FIFO $file" code=0
	timeout 100 "$NORMA" train --resume --out "$tmp/bad" >"$tmp/out" 2>"$tmp/err" || code=$?
	[ "$code" = 1 ] || fail "exit code $code: $(cat "$tmp/err")"
	rm -f "$tmp/bad/$file"
	cp "$tmp/closed/$file" "$tmp/bad/"
done

# ---- the same in the folders that a report and a server read; links do not lead out of what is served
secret=$tmp/secret
printf 'step,epoch,seconds,loss\n1,1,1,0.12345\n' >"$secret"
for file in config.yaml env.json metrics.csv events.jsonl; do
	fake_run "$tmp/runs/fifo-${file%.*}" ln 0 0.8 3
	fifo "$tmp/runs/fifo-${file%.*}/$file"
done
fake_run "$tmp/runs/microscope" ln 0 0.8 3
fifo "$tmp/runs/microscope/microscope.csv"
fake_run "$tmp/runs/link" ln 0 0.8 3
ln -sf "$secret" "$tmp/runs/link/metrics.csv"
mkdir -p "$tmp/runs/study"
fifo "$tmp/runs/study/study.yaml"
run 1 report "$tmp/runs/fifo-config" --output "$tmp/report.html"; complains "config.yaml': it is not a regular file"
run 0 report "$tmp"/runs/fifo-{env,metrics,events} "$tmp/runs/microscope" --output "$tmp/report.html"
serve "$tmp/runs"
curl -s -m 60 "${url}run/link" >"$tmp/page" || fail "no answer"
curl -s -m 60 "${url}data/link" >>"$tmp/page" || true
curl -s -m 60 "${url}report/link" >>"$tmp/page" || true
! grep -q '0\.12345' "$tmp/page" || fail "a link out of the folder was followed"
curl -s -m 60 "${url}run/fifo-metrics" >"$tmp/page" || fail "no answer"
serve_end TERM

# ---- sizes are known before any memory is taken: parameters, then activations
if [ -z "${NORMA_SANITIZE:-}" ]; then
	for sizes in image=4096,patch=1 image=2048,patch=2,pos=sincos,dim=24; do
		ran="train $sizes" code=0
		(ulimit -v 1500000; "$NORMA" train "${settings[@]}" --model "vit_nano:$sizes" --out "$tmp/vast" >"$tmp/out" 2>"$tmp/err") || code=$?
		err=$(cat "$tmp/err")
		[ "$code" = 1 ] || fail "exit code $code: $err"
		complains "it needs at least"; complains "1.4 GiB are all there is"; complains "larger patches"
	done
fi

# ---- a limit of file sizes is an error with a name, and the checkpoint before it stays
ran="ulimit -f" code=0
(ulimit -f 60; "$NORMA" train "${settings[@]}" --steps 2 --out "$tmp/limit" >"$tmp/out" 2>"$tmp/err") || code=$?
[ "$code" = 1 ] || fail "exit code $code, not 1: $(cat "$tmp/err")"
grep -q "last.safetensors': File too large" "$tmp/err" || fail "$(cat "$tmp/err")"

# ---- the terminal goes away: a checkpoint, as after Ctrl-C; nohup is respected
ran="hang-up" code=0
"$NORMA" train "${settings[@]}" --checkpoint-steps 1000000 --epochs 100000 --out "$tmp/hup" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 3 "$tmp/hup/metrics.csv"
kill -HUP "$pid"
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit code $code, not 130: $(cat "$tmp/err")"
grep -q '"interrupted"' "$tmp/hup/events.jsonl" || fail "$(tail -1 "$tmp/hup/events.jsonl")"

# ---- a mapped file is truncated: it is named
ran="truncated data" code=0
"$NORMA" train "${settings[@]}" --epochs 100000 --out "$tmp/bus" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await lines 3 "$tmp/bus/metrics.csv"
: >"$tmp/data/mnist/train-images-idx3-ubyte"
wait "$pid" || code=$?
[ "$code" = 1 ] || fail "exit code $code, not 1: $(cat "$tmp/err")"
grep -q "train-images-idx3-ubyte': it was truncated while it was in use" "$tmp/err" || fail "$(tail -c 300 "$tmp/err")"
made_up "$tmp/data/mnist" train 60

# ---- what a kill leaves is removed when the run goes on; what another process is writing stays
ran="leftovers" code=0
dead=$(bash -c 'echo $$')
touch "$tmp/hup/.last.safetensors.$dead.0.tmp" "$tmp/hup/.best.safetensors.$dead.12.tmp" "$tmp/hup/.config.yaml.$$.1.tmp" "$tmp/hup/.mine.tmp"
"$NORMA" train --resume --out "$tmp/hup" >"$tmp/out" 2>"$tmp/err" &
pid=$!
await grep -q '"resume"' "$tmp/hup/events.jsonl"
kill -TERM "$pid"
wait "$pid" || code=$?
[ "$code" = 130 ] || fail "exit code $code: $(cat "$tmp/err")"
left=$(cd "$tmp/hup" && echo .*.tmp)
[ "$left" = ".config.yaml.$$.1.tmp .mine.tmp" ] || fail "left: $left"
exit "$failed"
