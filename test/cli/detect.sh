#!/bin/bash
# norma detect: a few steps of both detectors, what they leave, who opens it, what is refused.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
export NORMA_DATA=$tmp/data
run 0 data make shapes -o "$tmp/shapes" --size 32 --samples 16:6 --shapes 1:3
pvt="pvt:image=32,patch=4,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2-2-2-2,sr=2-1-1-1"
small=(--data "coco:path=$tmp/shapes" --neck-dim 8 --head-convs 1 --batch 4 --steps 4 --threads 1 --store "$tmp/runs.db")
regions=(--detector mask_rcnn --anchor 3 --fc 16 --mask-pool 3 --rpn-rows 32 --roi-rows 12 --before 40 --proposals 16)

# ---- one stage
run 0 detect "${small[@]}" --model "$pvt" --out "$tmp/retina"
says 'RetinaNet, as mmdetection has it'
says 'ap50 '
[ -s "$tmp/retina/detections_bbox.json" ] || fail "no detections_bbox.json"
head -1 "$tmp/retina/metrics.csv" >"$tmp/columns"
for column in train_class train_box eval_ap eval_ap75 eval_mask_ap; do
	grep -q "$column" "$tmp/columns" || fail "metrics.csv has no $column"
done
run 0 eval "$tmp/retina/model.safetensors"
says 'boxes'
says 'AP50'
picture=$(find "$tmp/shapes/val" -name '*.png' | sort | sed -n 1p)
run 0 predict "$tmp/retina/model.safetensors" "$picture" --score 0 --draw "$tmp/drawn"
says 'objects'
[ -s "$tmp/drawn/$(basename "$picture")" ] || fail "no picture with marks"
run 1 predict "$tmp/retina/model.safetensors" "$tmp/nothing.png"
run 2 predict "$tmp/retina/model.safetensors" "$picture" --top 3
complains 'does not apply'

# ---- two stages; another pyramid; a ViT
run 0 detect "${small[@]}" "${regions[@]}" --model "$pvt" --out "$tmp/mask"
says 'mask_ap '
[ -s "$tmp/mask/detections_segm.json" ] || fail "no detections_segm.json"
run 0 eval "$tmp/mask/model.safetensors" --json
says '"masks"'
run 0 predict "$tmp/mask/model.safetensors" "$picture" --score 0 --json
says '"segmentation"'
run 0 detect "${small[@]}" --convention torchvision --box-loss giou --model "vit:image=32,patch=8,dim=8,depth=1,heads=1" \
	--norm "ln head.**=group:groups=2" --short-sides "24 32" --out "$tmp/vit"
says 'torchvision'

# ---- batch norms
run 1 detect "${small[@]}" --model "$pvt" --norm "ln neck.**=bn:frozen=1" --out "$tmp/frozen"
complains 'never measured'
run 0 detect "${small[@]}" --model "$pvt" --norm "ln neck.**=bn" --out "$tmp/bn"
says 'batch statistics  '
run 0 detect "${small[@]}" --model "$pvt" --norm "ln neck.**=bn:frozen=1" --init "$tmp/bn/model.safetensors" --out "$tmp/frozen"
says 'frozen            '

# ---- what cannot be
run 1 detect --data "mnist" --model "$pvt" --out "$tmp/bad"
run 1 detect "${small[@]}" --model "$pvt" --short-sides 99 --out "$tmp/bad"
complains 'not a list'
run 1 detect "${small[@]}" --model "$pvt,classes=2" --out "$tmp/bad"
complains 'the data have'
run 1 detect "${small[@]}" --model "$pvt" --first-level 5 --out "$tmp/bad"
complains 'first level 5'
[ ! -e "$tmp/bad" ] || fail "a run that cannot start leaves a folder"
exit "$failed"
