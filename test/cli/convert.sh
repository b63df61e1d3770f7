#!/bin/bash
# convert changes names and layout and back, resizes positions, refuses what does not fit; inspect shows what a file holds.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/strip.inc
. test/cli/strip.inc

tiny=vit:image=16,patch=4,dim=32,depth=2,heads=2,classes=5
run 0 models $tiny --patch-norm dual --write "$tmp/a" --seed 3
# there and back again: the same bytes
for names in timm huggingface huggingface5; do
	run 0 convert "$tmp/a" "$tmp/$names" --to $names; says "norma names to $names names"; says "taken    36 of 36"; silent
	run 0 convert "$tmp/$names" "$tmp/back" --to norma --force; says "$names names to norma names"
	cmp "$tmp/a" "$tmp/back" || fail "not what it was"
done
run 0 convert "$tmp/a" "$tmp/json" --to timm --json; json out from to model norms taken kept ignored
# every model's names are told
run 0 convert --help; says "graphormer  huggingface, huggingface_base, official"; says "huggingface_gamma, simcse"
run 2 convert "$tmp/a" "$tmp/never" --to hugginface; complains "did you mean 'huggingface'?"; one_line
# overwriting
run 1 convert "$tmp/a" "$tmp/timm" --to timm; complains "it exists already"; complains "--force"; one_line
run 0 convert "$tmp/a" "$tmp/timm" --to timm --force
# another size, other classes
run 0 convert "$tmp/a" "$tmp/large" --to norma --image 24 --classes 7
says "image=24,classes=7"; says "kept     2 at their initial values: head.weight, head.bias"
run 0 inspect "$tmp/large" --filter pos_embed; says "1x37x32"; run 0 inspect "$tmp/large" --filter head; says "7x32"
for kind in mae dino bigvision; do run 0 convert "$tmp/a" "$tmp/$kind" --to norma --image 24 --resample $kind; done
cmp -s "$tmp/mae" "$tmp/bigvision" && fail "two ways of resizing give the same"
run 2 convert "$tmp/a" "$tmp/x" --to norma --image 24 --resample bigvison; complains "did you mean 'bigvision'?"; one_line
# a folder gets the config that public loaders read
run 0 convert "$tmp/a" "$tmp/dir/" --to huggingface; grep -q '"hidden_size": 32' "$tmp/dir/config.json" || fail "no config"
[ -s "$tmp/dir/model.safetensors" ] || fail "no weights"
run 1 convert "$tmp/a" "$tmp/dir" --to huggingface; complains "model.safetensors"; one_line

# heads are not in the tensors: the config beside them tells, also other ones than of width 64, and the values are the same
run 0 models vit:image=16,patch=4,dim=128,depth=2,heads=8,classes=5,act=gelu_tanh --write "$tmp/eight" --seed 3
run 0 convert "$tmp/eight" "$tmp/hf/" --to huggingface; strip "$tmp/hf/model.safetensors" "$tmp/bare"; mv "$tmp/bare" "$tmp/hf/model.safetensors"
run 0 convert "$tmp/hf/model.safetensors" "$tmp/eight-back" --to norma --json; says "heads=8"
run 0 inspect "$tmp/eight-back"; says "heads=8"; says "act=gelu_tanh"
rm "$tmp/hf/config.json"; run 2 convert "$tmp/hf/model.safetensors" "$tmp/never" --to norma; complains "it looks like --model"; one_line
run 2 finetune "$tmp/hf/model.safetensors" --data mnist --out "$tmp/never"; complains "it looks like --model vit:image=16"; one_line

# a public file says nothing of its model: it must be named, and is guessed
strip "$tmp/timm" "$tmp/public"
run 2 convert "$tmp/public" "$tmp/x" --to norma; complains "does not say which model it is"; complains "it looks like --model vit:image=16"; one_line
run 0 convert "$tmp/public" "$tmp/x" --to norma --model $tiny --file-norm patch=dual
run 2 convert "$tmp/public" "$tmp/y" --to norma --model vti; complains "did you mean"; one_line
run 2 convert "$tmp/public" "$tmp/y" --to norm --model $tiny; complains "did you mean 'norma'?"; one_line
run 2 convert "$tmp/public" "$tmp/y" --to norma --from timn --model $tiny; complains "did you mean 'timm'?"; one_line
run 1 convert "$tmp/public" "$tmp/y" --to norma --from huggingface --model $tiny; complains "it has no tensor 'vit.embeddings"; one_line
run 1 convert "$tmp/public" "$tmp/y" --to norma --model $tiny; complains "the model has no tensor 'patch_embed.norm.bias'"; one_line
run 0 convert "$tmp/public" "$tmp/y" --to norma --model $tiny --partial; says "ignored  4 tensors"
run 1 convert "$tmp/public" "$tmp/z" --to norma --model ${tiny/depth=2/depth=3} --file-norm patch=dual; complains "it has no tensor 'blocks.2.norm1.weight'"; one_line
run 1 convert "$tmp/public" "$tmp/z" --to norma --model ${tiny/dim=32/dim=48} --file-norm patch=dual; complains "the model needs"; one_line
run 1 convert "$tmp/public" "$tmp/z" --to norma --model ${tiny/classes=5/classes=6} --file-norm patch=dual; complains "tensor 'head.weight' is 5x32, but the model needs 6x32"; one_line
run 1 convert "$tmp/public" "$tmp/z" --to norma --model ${tiny/image=16/image=24} --file-norm patch=dual; complains "pos_embed"; complains "--resample"; one_line
[ ! -e "$tmp/z" ] || fail "a failed conversion left a file"
# patch.out and patch.pos have one name in public
run 0 models $tiny --norm "ln patch.out=ln patch.pos=ln" --write "$tmp/both"
run 1 convert "$tmp/both" "$tmp/z" --to timm; complains "would both be called 'patch_embed.norm.weight'"; complains "--to norma"; one_line
run 2 convert "$tmp/a" --to timm; complains "two files"; one_line
run 1 convert "$tmp/none" "$tmp/z" --to timm; complains "$tmp/none"; one_line

# inspect
run 0 inspect "$tmp/public"; says "names            timm"; says "looks like       --model vit:image=16"; says "patch=dual"; says "blocks.1.norm2.weight"; says "patch_embed.norm_pre"; silent
run 0 inspect "$tmp/huggingface" --norms; says "vit.encoder.layer.1.layernorm_after"; says "layer"; ! grep -q F32 <<<"$out" || fail "tensors too"
run 0 inspect "$tmp/a" --json; json file values naming model norm_plan metadata norms tensors
run 0 inspect "$tmp/a" --filter 'blocks.0.*'; ! grep -q blocks.1 <<<"$out" || fail "the filter let blocks.1 pass"
run 1 inspect "$tmp/a" --filter nosuch; complains "no tensor matches 'nosuch'"; one_line
run 2 inspect; complains "one file"; one_line
run 1 inspect "$tmp/none"; complains "$tmp/none"; one_line
# broken and hostile files: one line, exit 1
size=$(stat -c %s "$tmp/a")
for bytes in 0 1 7 8 9 100 $((size / 2)) $((size - 1)); do
	head -c "$bytes" "$tmp/a" >"$tmp/cut"
	run 1 inspect "$tmp/cut"; one_line
	run 1 convert "$tmp/cut" "$tmp/z" --to timm; one_line
done
head -c 4096 "$NORMA" >"$tmp/program"; run 1 inspect "$tmp/program"; one_line
printf '\xff\xff\xff\xff\xff\xff\xff\x7f{}' >"$tmp/huge"; run 1 inspect "$tmp/huge"; one_line
printf '\x02\0\0\0\0\0\0\0{}' >"$tmp/empty"; run 0 inspect "$tmp/empty"; says "0 tensors"
name=$'{"a\\u001b[31mb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
{ printf "\\x$(printf %x ${#name})\0\0\0\0\0\0\0%s\0\0\xc0\x7f" "$name"; } >"$tmp/nan"
run 0 inspect "$tmp/nan"; says "[31mb"; ! grep -q $'\033' "$tmp/out" || fail "an escape sequence came through"
run 1 convert "$tmp/nan" "$tmp/z" --to timm --model $tiny; complains "none of its 1 tensors"; one_line
exit "$failed"
