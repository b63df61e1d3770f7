#!/bin/bash
# fold: trained norms become part of the layers that read them, the outputs stay, and the file is read like any other.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc

made_up_mnist 40 10
model=vit_nano:dim=8,depth=2,heads=1,patch=14
trained() { # NAME OPTION...: some steps, long ones, so that gains and biases are not the first ones
	run 0 train --data mnist --model "$model" --batch 20 --steps 3 --lr 0.05 --out "$tmp/$1" "${@:2}"
}
number() { sed -n "s/.*\"$1\":\\([^,}]*\\).*/\\1/p" <<<"$out"; }
small() { awk -v x="$1" 'BEGIN { exit !(x >= 0 && x < 1e-5) }'; }
# folds NAME SITES PLAN: so many norms, and the plan of the new file
folds() {
	local scores
	run 0 fold "$tmp/$1/model.safetensors" "$tmp/$1.folded" --json
	json out model norms folded sites values_before values_after change ms_before ms_after
	[ "$(number folded)" = "$2" ] || fail "$(number folded) folded, not $2"
	small "$(number change)" || fail "the outputs change by $(number change)"
	[ "$(number values_after)" -lt "$(number values_before)" ] || fail "no fewer values"
	says "$3"
	run 0 eval "$tmp/$1/model.safetensors" --data mnist --json; scores=$(number top1)
	run 0 eval "$tmp/$1.folded" --data mnist --json; [ "$(number top1)" = "$scores" ] || fail "another accuracy: $(number top1), not $scores"
}
trained ln; folds ln 5 "attn.in=layer:affine=0"
trained rms --norm rms --residual layerscale:init=0.1; folds rms 9 "residual=plain"
trained derf --norm derf; folds derf 5 "final=derf:affine=0"
trained dyt --norm dyt; folds dyt 5 "final=dyt:affine=0"
trained repbn --norm repbn; folds repbn 5 "attn.in=none"
trained prepbn --norm prepbn --accumulate 2; folds prepbn 5 "attn.in=none"
trained taper --norm taper; folds taper 5 "mlp.in=none"

run 0 fold "$tmp/ln/model.safetensors"
says "becomes"; says "layer:affine=0"; says "outputs  change by"; says "nothing was written"; silent
run 0 inspect "$tmp/ln.folded"; says "affine=0"
# what there is, stays
run 1 fold "$tmp/ln/model.safetensors" "$tmp/ln.folded"; complains "it exists already"; complains "--force"; one_line
run 0 fold "$tmp/ln/model.safetensors" "$tmp/ln.folded" --force; says "written  $tmp/ln.folded"
# the last norm of a post-norm model has the head alone behind it, the others the stream; gains of tokens do not fold at all
trained post --placement post
run 0 fold "$tmp/post/model.safetensors"; says "stays: the residual stream reads it"; says "3  blocks.0.attn.res"
trained seednorm --norm seednorm
run 1 fold "$tmp/seednorm/model.safetensors" "$tmp/never"; complains "no norm can be folded"; complains "its gain depends on the tokens"; one_line
[ ! -e "$tmp/never" ] || fail "a refusal left a file"
trained bare --norm layer:affine=0
run 1 fold "$tmp/bare/model.safetensors" "$tmp/never"; complains "it has no gain (it was folded before"; one_line
# a post-norm encoder of texts: its last tokens are what it is for
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
for i in 1 2 3 4 5 6 7 8; do echo "the cat sees a dog and the bird hunts $i"; done >"$tmp/lines.txt"
run 0 mlm --data "text:path=$tmp/lines.txt" --tokenizer "$vocab" --model bert:dim=8,depth=1,heads=2,hidden=8 --steps 1 --batch 4 --out "$tmp/bert"
run 1 fold "$tmp/bert/model.safetensors" "$tmp/never"; complains "the residual stream reads it"; one_line
run 2 fold; complains "needs a file"; one_line
run 1 fold "$tmp/nowhere" "$tmp/never"; complains "nowhere"; one_line
exit "$failed"
