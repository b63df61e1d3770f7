#!/bin/bash
# A checkpoint is dissected: with a head, pre-trained, with DTN and Dual PatchNorm, without a class token, with public names.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 320 100
model=vit_nano:dim=16,depth=2,heads=2,patch=7
lacks() { ! grep -qF -- "$1" <<<"$out" || fail "the output has '$1'"; }
# a drawing that is well-formed, has a caption, a style for dark screens and no number that is none
picture() {
	[ -s "$1" ] || { fail "no picture '$1'"; return; }
	for word in "<svg xmlns" prefers-color-scheme:dark 'class="caption"'; do grep -qF "$word" "$1" || fail "$1 lacks '$word'"; done
	! grep -q 'var(' <<<"$(sed '/^<style>/,/^}/d' "$1")" || fail "$1 has colours that only browsers know"
	! command -v rsvg-convert >/dev/null || rsvg-convert -o "$tmp/picture.png" "$1" || fail "$1 cannot be rendered"
	! grep -qE '[ ",M-]nan[ ",]|"inf"' "$1" || fail "$1 has a number that is none"
	if command -v xmllint >/dev/null; then xmllint --noout "$1" || fail "$1 is not well-formed"
	elif command -v python3 >/dev/null; then python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$1" || fail "$1 is not well-formed"; fi
}

run 0 train --data mnist --model "$model" --norm "blocks[0].*=dtn blocks[1].*=ln final=ln patch=dual" --batch 32 --steps 4 --out "$tmp/run" --json
ckpt=$tmp/run/model.safetensors

# docs/analysis.md has the table of the registry
run 0 analyze --parts; silent
awk '/^\| part \|/ { on = 1 } on && !/^\|/ { exit } on' docs/analysis.md | diff "$tmp/out" - >"$tmp/diff" ||
	fail "docs/analysis.md has not the table of the registry; it is: norma analyze --parts
$(head -20 "$tmp/diff")"

# all parts: numbers, tables, pictures
run 0 analyze "$ckpt" --samples 70 --batch 32 --site "final blocks[1].attn.in" --out "$tmp/told"
for word in "uniformity of [CLS]" "cross entropy of the head" "mean attention distance" patch.in.weight "DTN's lambda" blocks.1.attn.in; do
	says "$word"
done
json=$(cat "$tmp/told/analysis.json")
for key in layers distributions attention gradients patch dtn map similarity views maps magnitude directions sensitivity cost; do grep -q "\"$key\":" <<<"$json" || fail "analysis.json lacks $key"; done
[ "$(wc -l <"$tmp/told/layers.csv")" = 8 ] || fail "layers.csv: not a head, an embedding and two rows for each of three layers"
[ "$(wc -l <"$tmp/told/attention.csv")" = 5 ] || fail "attention.csv: not a line for each head of two blocks"
[ "$(wc -l <"$tmp/told/distributions.csv")" = 129 ] || fail "distributions.csv: not 2 sites x 2 sides x 2 kinds x 16"
[ "$(wc -l <"$tmp/told/gradients.csv")" = 4 ] || fail "gradients.csv: not a line for each block"
for p in layers attention distributions-final distributions-blocks.1.attn.in gradients patch_norm dtn map_cls map_tokens similarity views \
	attention_maps magnitude directions; do
	picture "$tmp/told/$p.svg"
done
[ ! -e "$tmp/told/against.svg" ] || fail "compared with nothing"

# the same bits on any number of threads
run 0 analyze "$ckpt" --samples 70 --batch 32 --against "$ckpt" --threads 1 --json
json file model norms samples layers distributions attention gradients patch dtn against views maps magnitude directions sensitivity cost
first=$out
run 0 analyze "$ckpt" --samples 70 --batch 32 --against "$ckpt" --threads 3 --json; [ "$out" = "$first" ] || fail "three threads give another result"

# some parts alone; a model without what was asked for says so
run 0 analyze "$ckpt" --samples 20 --only layers,dtn --json; lacks '"attention"'; says '"lambda_mean"'
run 0 train --data mnist --model "$model,class_token=0,pool=avg" --batch 32 --steps 2 --out "$tmp/avg" --json
run 0 analyze "$tmp/avg/model.safetensors" --samples 20 --only dtn; says "the model has none"
run 0 analyze "$tmp/avg/model.safetensors" --samples 20; lacks "[CLS]  "; lacks "DTN's"
run 0 train --data mnist --model "$model,class_at=1,registers=2,position_bias=1" --norm "attn.res=ln mlp.res=rms attn.qk=ln" --batch 32 --steps 2 \
	--out "$tmp/post" --json
run 0 analyze "$tmp/post/model.safetensors" --samples 20 --site "mlp.res" --json; says '"blocks.1.mlp.res"'

# a pre-trained encoder: its own loss while the decoder is there; shared norms tell shares, separate ones do not
run 0 pretrain --data mnist --model "$model" --norm "sep(bn,ln) decoder.*=ln" --decoder-dim 8 --decoder-depth 1 --decoder-heads 2 --batch 32 \
	--steps 3 --out "$tmp/mae" --json
for f in last model; do run 0 analyze "$tmp/mae/$f.safetensors" --samples 40 --batch 20; says "(MAE)"; says separate; done
run 0 convert "$tmp/mae/model.safetensors" "$tmp/encoder.safetensors" --to timm
run 0 analyze "$tmp/encoder.safetensors" --model "$model,pos=sincos,fc_norm=0" --norm "sep(bn,ln)" --data mnist --samples 40 --json
says '"gradients"'

run 2 analyze; complains "one checkpoint"; one_line
run 2 analyze "$ckpt" --only layer; complains "did you mean 'layers'"; one_line
run 2 analyze "$ckpt" --site "blocks[7].attn.in"; complains "blocks[7].attn.in"
run 2 analyze "$ckpt" --site "finl"; complains "did you mean 'final'"
run 1 analyze "$tmp/none.safetensors"; complains "none.safetensors"; one_line
: >"$tmp/file"
run 1 analyze "$ckpt" --samples 10 --only layers --out "$tmp/file"; complains "$tmp/file"
exit "$failed"
