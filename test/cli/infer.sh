#!/bin/bash
# infer gives the same bits for any batch size and number of threads, and says what is wrong with its input; predict names
# what is in pictures.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/npy.inc
. test/cli/npy.inc

tiny=vit:image=16,patch=4,dim=32,depth=2,heads=2,classes=5
run 0 models $tiny --write "$tmp/w" --seed 4
npy '7, 3, 16, 16' $((7 * 3 * 256)) '<f4' >"$tmp/x.npy"
for what in logits pooled tokens; do
	for flags in "--batch 1" "--batch 3" "--batch 7 --threads 1" "--batch 100 --threads 2" "--batch 4 --threads 3"; do
		# shellcheck disable=SC2086 # words on purpose
		run 0 infer "$tmp/w" --input "$tmp/x.npy" --output "$tmp/y.npy" --what $what $flags; silent
		[ -e "$tmp/$what.npy" ] || cp "$tmp/y.npy" "$tmp/$what.npy"
		cmp "$tmp/$what.npy" "$tmp/y.npy" || fail "other bits"
	done
done
grep -aq "(7, 5)" "$tmp/logits.npy" || fail "logits are not (7, 5)"
grep -aq "(7, 32)" "$tmp/pooled.npy" || fail "pooled is not (7, 32)"
grep -aq "(7, 17, 32)" "$tmp/tokens.npy" || fail "tokens are not (7, 17, 32)"
# hierarchical models take pictures of other sizes, which need not be square or tile
run 0 models swin_nano:depths=1-1 --write "$tmp/swin" --seed 4
npy '3, 3, 26, 41' $((3 * 3 * 26 * 41)) '<f4' >"$tmp/wide.npy"
run 0 infer "$tmp/swin" --input "$tmp/wide.npy" --output "$tmp/y.npy" --what tokens; grep -aq "(3, 77, 64)" "$tmp/y.npy" || fail "not 7 x 11 tokens"
run 1 infer "$tmp/w" --input "$tmp/wide.npy" --output "$tmp/y.npy"; complains "(N,3,16,16)"; one_line
run 0 models levit_nano --write "$tmp/levit"
run 1 infer "$tmp/levit" --input "$tmp/wide.npy" --output "$tmp/y.npy"; one_line
run 0 convert "$tmp/levit" "$tmp/folded" --fold; says "folded   24 batch norms"; run 0 convert "$tmp/levit" "$tmp/folded-timm" --fold --to timm
says "timm_folded names"
npy '2, 3, 32, 32' $((2 * 3 * 1024)) '<f4' >"$tmp/square.npy"
run 0 infer "$tmp/folded-timm" --input "$tmp/square.npy" --output "$tmp/y.npy"; grep -aq "(2, 10)" "$tmp/y.npy" || fail "not (2, 10)"
run 2 convert "$tmp/levit" "$tmp/no" --to timm_folded; complains "not folded"; one_line
run 2 convert "$tmp/levit" "$tmp/no" --fold --to huggingface; complains "no form with folded norms"; one_line
run 2 convert "$tmp/w" "$tmp/no" --fold; complains "cannot fold"; one_line
# the same weights under other names, also where every norm sees the whole batch in training
for norm in ln "sep(bn,ln)" dtn; do
	run 0 models $tiny --write "$tmp/n" --norm "$norm"
	run 0 infer "$tmp/n" --input "$tmp/x.npy" --output "$tmp/1.npy" --batch 2
	run 0 convert "$tmp/n" "$tmp/t" --to timm --force
	run 0 infer "$tmp/t" --input "$tmp/x.npy" --output "$tmp/2.npy" --batch 7
	cmp "$tmp/1.npy" "$tmp/2.npy" || fail "other bits under timm's names"
done
# a larger picture
npy '1, 3, 24, 24' $((3 * 576)) '<f4' >"$tmp/large.npy"
run 0 infer "$tmp/w" --model ${tiny/image=16/image=24} --resample timm --input "$tmp/large.npy" --output "$tmp/y.npy"
run 1 infer "$tmp/w" --model ${tiny/image=16/image=24} --input "$tmp/large.npy" --output "$tmp/y.npy"; complains "--resample"; one_line

bad() { run "$1" infer "$tmp/w" --output "$tmp/none.npy" "${@:2}"; one_line; }
bad 1 --input "$tmp/large.npy"; complains "(1,3,24,24), the model needs (N,3,16,16)"
npy '3, 16, 16' 768 '<f4' >"$tmp/flat.npy"; bad 1 --input "$tmp/flat.npy"; complains "(3,16,16)"
npy '1, 1, 16, 16' 256 '<f4' >"$tmp/grey.npy"; bad 1 --input "$tmp/grey.npy"; complains "(1,1,16,16)"
npy '0, 3, 16, 16' 0 '<f4' >"$tmp/zero.npy"; bad 1 --input "$tmp/zero.npy"; complains "(0,3,16,16)"
npy '1, 3, 16, 16' 768 '<i4' >"$tmp/int.npy"; bad 1 --input "$tmp/int.npy"; complains "instead of floats"
head -c 200 "$tmp/x.npy" >"$tmp/cut.npy"; bad 1 --input "$tmp/cut.npy"; complains "cut.npy"
bad 1 --input "$tmp/w"; complains "cannot read"
bad 1 --input "$tmp/nosuch.npy"; complains "nosuch.npy"
bad 2; complains "--input"
bad 2 --input "$tmp/x.npy" --model vit_tiny_patch16_22; complains "did you mean 'vit_tiny_patch16_224'?"
bad 1 --input "$tmp/x.npy" --model ${tiny/depth=2/depth=3}; complains "it has no tensor 'blocks.2.attn.in.weight'"
bad 1 --input "$tmp/x.npy" --model ${tiny/dim=32/dim=64}; complains "the model needs"
bad 2 --input "$tmp/x.npy" --what logit; complains "--what"
run 1 infer "$tmp/x.npy" --input "$tmp/x.npy" --output "$tmp/none.npy"; complains "x.npy"; one_line
run 1 infer "$tmp/nosuch" --input "$tmp/x.npy" --output "$tmp/none.npy"; complains "nosuch"; one_line
run 1 infer "$tmp/w" --input "$tmp/x.npy" --output "$tmp/no/folder/y.npy"; complains "folder"; one_line
run 2 infer --input "$tmp/x.npy" --output "$tmp/none.npy"; complains "one file of weights"; one_line
[ ! -e "$tmp/none.npy" ] || fail "a failed run left its output"

# pictures
pictures=test/data/pictures
printf 'ankle boot\nbag\ncoat\ndress\npullover\n' >"$tmp/names"
run 0 predict "$tmp/w" $pictures/rgb.jpg --names "$tmp/names"; says "rgb.jpg"; says "pullover"; says "%"; silent
run 0 predict "$tmp/w" $pictures/rgb.jpg $pictures/grey.png --top 2; says "class "; [ "$(wc -l <"$tmp/out")" = 6 ] || fail "not two lines for each"
run 0 predict "$tmp/w" $pictures/rgb.jpg --json --top 9; json picture top; [ "$(grep -o probability <<<"$out" | wc -l)" = 5 ] || fail "not five classes"
run 0 predict "$tmp/w" $pictures/rgb.jpg --json --pixels half; half=$out
run 0 predict "$tmp/w" $pictures/rgb.jpg --json --pixels imagenet; [ "$out" != "$half" ] || fail "the scale of the pixels makes no difference"
# a picture of a camera that was turned is what it is upright: the same one as PNG and as TIFF, and as it is stored
answer() { run 0 predict "$tmp/w" "$pictures/$1" --json; out=${out#*\"top\"}; }
answer exif-6.png; held=$out
answer turned-6.tif; [ "$out" = "$held" ] || fail "a turned picture has other classes as TIFF"
answer rgb.png; [ "$out" != "$held" ] || fail "a turned picture has the classes of the one that lies on its side"
run 0 models vit_nano --write "$tmp/nano"; run 0 predict "$tmp/nano" $pictures/rgb.png; says "class"
run 2 predict "$tmp/w"; complains "needs pictures"; one_line
run 1 predict "$tmp/w" "$tmp/nosuch.jpg"; complains "nosuch.jpg"; one_line
run 1 predict "$tmp/w" "$tmp/x.npy"; complains "x.npy"; one_line
run 1 predict "$tmp/w" "$tmp/x.npy" $pictures/rgb.jpg; says "rgb.jpg"; complains "x.npy"; complains "1 of 2"
run 1 predict "$tmp/x.npy" $pictures/rgb.jpg; complains "x.npy"; one_line
run 1 predict "$tmp/w" $pictures/rgb.jpg --names "$tmp/nosuch"; complains "nosuch"; one_line
exit "$failed"
