#!/bin/bash
# VTAB's protocol: which tasks are there, two checkpoints on published lists and on a set of one's own, and bad input.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
export NORMA_DATA=$tmp/data
pictures "$tmp/own/train" 12
pictures "$tmp/own/test" 4

# published lists of kitti-dist
list=$NORMA_DATA/vtab-1k/kitti
mkdir -p "$list"
cp -r "$tmp/own/train" "$tmp/own/test" "$list/"
(
	cd "$list"
	for k in 0 1 2; do for i in {0..8}; do echo "train/class-$k/$i.tif $k"; done; done >train800.txt
	for k in 0 1 2; do for i in 9 10 11; do echo "train/class-$k/$i.tif $k"; done; done >val200.txt
	for k in 0 1 2; do for i in {0..3}; do echo "test/class-$k/$i.tif $k"; done; done >test.txt
)
run 0 vtab --list; says "kitti-dist"; says "published split"; says "catalog/dtd"; says "1 of 19 tasks are there"

model=vit:image=16,patch=8,dim=16,depth=1,heads=2
for seed in 1 2; do
	run 0 train --data "vtab:of=folder:path=$tmp/own" --model "$model" --batch 8 --steps 4 --seed "$seed" --out "$tmp/run-$seed"
done
vtab=(vtab "$tmp/run-1" "$tmp/run-2" --parallel 2 --steps 6 --batch 8 --rates "0.1,0.01" --seeds 2 --out "$tmp/vtab")
run 0 "${vtab[@]}"
says "run-1"; says "run-2"; says "difference"; says "kitti-dist"; says "mean of 1"; says "from -1 to 1"; says "Missing: caltech101"
run 0 "${vtab[@]}" --json; json pixels checkpoints missing groups tasks seeds half published_split
says '"structured":{"mean"'; says '"samples":12'
[ "$(find "$tmp/vtab/run-1" -name eval.json | wc -l)" = 2 ] || fail "not just the chosen runs were tested"
{ [ -s "$tmp/vtab/vtab.md" ] && [ -s "$tmp/vtab/vtab.json" ]; } || fail "no tables"
run 0 vtab "$tmp/run-1" --tasks kitti-dist --extra "folder:path=$tmp/own" --steps 2 --batch 8 --rates 0.1 --seeds 1 --limit 5 --pixels imagenet --out "$tmp/short"
says "(partial)"; says "extra"; says "ImageNet's mean"

run 2 vtab; complains "at least one checkpoint"
run 2 vtab "$tmp/run-1" --tasks kitty-dist; complains "did you mean 'kitti-dist'?"
run 2 vtab "$tmp/run-1" --rates 0.1,x; complains "'x' is not a positive number"
run 1 vtab "$tmp/run-1" --tasks dtd; complains "no task is there"; complains "--list"
run 1 vtab "$tmp/run-1" --extra "folder:path=$tmp/nowhere"; complains "nowhere"
exit "$failed"
