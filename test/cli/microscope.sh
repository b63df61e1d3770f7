#!/bin/bash
# --microscope: the weights have the bits of a run without it, the record those of any number of threads, and a run that was killed
# and resumed has the record of an undisturbed one.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
NORMA=$(realpath "$NORMA")
made_up "$tmp/data/mnist" train 120
made_up "$tmp/data/mnist" t10k 20
settings=(--data mnist --data-root "$tmp/data" --model "vit_nano:dim=12,depth=2,heads=3,patch=7,dropout=0.1" --batch 8 --accumulate 2
	--norm "sep(bn,ln) blocks[1].attn.in=switch blocks[1].mlp.in=dtn" --steps 150 --eval-every 0 --checkpoint-steps 40 --out run --json)
train() { # FOLDER THREADS ARG...
	local folder=$1 threads=$2
	shift 2
	mkdir -p "$tmp/$folder"
	(cd "$tmp/$folder" && exec "$NORMA" --threads "$threads" "$@")
}
# values NAME: the tensors of a file, without the header, which has the settings
values() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1"))) "$1"; }

ran="with and without"
train off 2 train "${settings[@]}" >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
train one 1 train "${settings[@]}" --microscope 20 >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
train two 2 train "${settings[@]}" --microscope 20 >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
[ ! -e "$tmp/off/run/microscope.csv" ] || fail "a record that was not asked for"
cmp -s <(values "$tmp/off/run/model.safetensors") <(values "$tmp/two/run/model.safetensors") || fail "looking on has changed the weights"
cmp -s "$tmp/one/run/microscope.csv" "$tmp/two/run/microscope.csv" || fail "the record depends on the threads"

# the first step, every twentieth and the last; two groups at each of five sites; drift begins at 0; the switch has three shares
ran="the record"
steps=$(tail -n +2 "$tmp/one/run/microscope.csv" | cut -d, -f1 | uniq -c | awk '{ print $2 "x" $1 }' | xargs)
[ "$steps" = "1x10 20x10 40x10 60x10 80x10 100x10 120x10 140x10 150x10" ] || fail "steps: $steps"
awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	NF != 29 { print "line " NR " has " NF " cells"; exit 1 }
	$1 == 1 && $3 == "tokens" && $2 != "final" && $at["gain_drift"] != 0 { print "drift at step 1: " $0; exit 1 }
	$1 == 150 && $2 ~ /blocks.0/ && $3 == "tokens" && !($at["gain_drift"] > 0 && $at["in_var"] > 0 && $at["out_length_max"] >= $at["out_length"]) { print; exit 1 }
	$2 == "blocks.1.attn.in" && $3 == "tokens" { s = $at["mean_ln"] + $at["mean_in"] + $at["mean_bn"]; if (s < 0.999999 || s > 1.000001) { print; exit 1 } }
	$2 == "blocks.1.mlp.in" && $3 == "tokens" && !($at["var_ln"] > 0 && $at["var_ln_sd"] >= 0 && $at["var_bn"] == "") { print; exit 1 }
	' "$tmp/one/run/microscope.csv" >"$tmp/out" || fail "$(cat "$tmp/out")"

# killed, with a later record and a half one left behind
ran="resume"
train cut 1 train "${settings[@]}" --microscope 20 >"$tmp/out" 2>"$tmp/err" &
pid=$!
await grep -qs '^60,' "$tmp/cut/run/microscope.csv"
slay $pid
if [ ! -e "$tmp/cut/run/model.safetensors" ]; then # it was still alive
	{ sed -n 2p "$tmp/one/run/microscope.csv" | sed 's/^1,/9999,/'; printf '9999,final,tok'; } >>"$tmp/cut/run/microscope.csv"
	train cut 2 train --resume --out run --json >"$tmp/out" 2>"$tmp/err" || fail "$(cat "$tmp/err")"
fi
cmp -s "$tmp/one/run/microscope.csv" "$tmp/cut/run/microscope.csv" || fail "the record differs from that of the undisturbed run"

# one that is damaged is not gone on with
sed -i '3s/.*/nonsense/' "$tmp/two/run/microscope.csv"
cd "$tmp/two"
run 1 train --resume --out run; complains "line 3 is not a record (remove"
cd - >/dev/null

# also for pre-training, decoder included
run 0 pretrain --data mnist --data-root "$tmp/data" --model vit_nano:dim=12,depth=1,heads=3,patch=7 --decoder-dim 8 --decoder-depth 1 --decoder-heads 2 \
	--batch 10 --steps 2 --eval-every 0 --microscope 1 --out "$tmp/mae"
grep -q '^2,decoder.blocks.0.attn.in,tokens,' "$tmp/mae/microscope.csv" || fail "no site of the decoder"
run 0 report "$tmp/one/run" "$tmp/mae" -o "$tmp/page.html"
grep -q '<section id="microscope">' "$tmp/page.html" || fail "the report has no section for it"
exit "$failed"
