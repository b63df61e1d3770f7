#!/bin/bash
# Pictures of one's own: from a folder to a trained model and what is measured of it, with no more than --data.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
export NORMA_DATA=$tmp/data
pictures "$tmp/pics" 12
pics=folder:path=$tmp/pics
small=(--model vit_nano:image=24,patch=6,dim=16,depth=1,heads=2 --epochs 6 --lr 5e-3)

# nothing but the folder: a split of its own, mean and std measured, mixed sizes resized and cropped
run 0 train --data "$pics" "${small[@]}" --out "$tmp/run"
says "val is 10 % of the training pictures, chosen by their names"; says "pixels            mean"; says "3 classes"; complains "it is 8 here (--batch)"
grep -q 'chosen by their names' "$tmp/run/env.json" || fail "the record does not say how it was divided"
run 0 train --data "$pics" "${small[@]}" --batch 8 --crop center --crop-share 0.9 --out "$tmp/center" --json; silent
run 0 train --data "$pics" "${small[@]}" --batch 8 --crop random_resized --steps 2 --out "$tmp/random"

# pictures of the wrong size are refused before there is a run
run 1 train --data "$pics" "${small[@]}" --batch 8 --crop none --out "$tmp/none"; complains "differ in size"; complains "--crop auto"; one_line
[ ! -e "$tmp/none" ] || fail "a folder of a run that never began"

# what is no picture is counted, what is broken is named: all of it, before training
echo x >"$tmp/pics/class-0/notes.txt"; echo x >"$tmp/pics/class-1/a.GIF"; echo x >"$tmp/pics/class-1/b.gif"
run 0 data info "$pics"; complains "3 files of '$tmp/pics' left out: .txt, .gif"; one_line
rm "$tmp/pics/class-0/notes.txt" "$tmp/pics/class-1"/[ab].*
: >"$tmp/pics/class-2/empty.png"; head -c 300 "$tmp/pics/class-0/0.tif" >"$tmp/pics/class-0/cut.tif"
run 1 train --data "$pics" "${small[@]}" --out "$tmp/none"; complains "class-2/empty.png': it is empty"; complains "class-0/cut.tif"; complains "2 of 38 pictures"
complains "folder:path=$tmp/pics,bad=skip"; [ ! -e "$tmp/none" ] || fail "a folder of a run that never began"
run 0 train --data "$pics,bad=skip" "${small[@]}" --steps 2 --out "$tmp/skipped"; complains "2 pictures of"; says "2 pictures that cannot be read are left out"
rm "$tmp/pics/class-2/empty.png" "$tmp/pics/class-0/cut.tif"
exit "$failed"
