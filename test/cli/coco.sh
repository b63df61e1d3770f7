#!/bin/bash
# COCO's annotations: made-up shapes, what is wrong with a file, scores of detections.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
export NORMA_DATA=$tmp/data
set=$tmp/shapes
ann=$set/annotations/instances_val.json

# shapes: the same seed the same bytes on any number of threads, another seed others
run 0 data make shapes --samples 6:3 --size 64 --shapes 2:4 --seed 3 -o "$set"; says "shapes: 6 + 3 pictures with"; says "use: --data coco:path=$set"; silent
run 0 data make shapes --samples 6:3 --size 64 --shapes 2:4 --seed 3 --threads 1 --json; json name dir train val shapes; silent
for f in annotations/instances_train.json annotations/instances_val.json train/000006.png val/000009.png; do
	cmp -s "$set/$f" "$NORMA_DATA/shapes/$f" || fail "$f differs"
done
run 0 data make shapes --samples 1:0 --size 64 --seed 4 -o "$tmp/other"
cmp -s "$set/train/000001.png" "$tmp/other/train/000001.png" && fail "another seed, the same picture"
run 2 data make shapes --shapes 5:2; complains "--shapes 5:2 is not a range"; one_line
run 2 data make shapes --samples 5; complains "is not 2 whole numbers"; complains "2000:200"; one_line
run 2 data make shape; complains "norma data make shapes"; one_line

# by its name, by its folder, by other names of folders and files
run 0 data info coco:path=shapes; says "6 train, 3 val"; says "Objects of each class"; says "triangle"; silent
run 0 data info "$set/:empty=1"; says "6 train, 3 val"
run 0 data show "coco:path=$set" --split val -o "$tmp/sheet.png"; says "3 pictures of val"; [ -s "$tmp/sheet.png" ] || fail "no sheet"
mkdir "$tmp/named"; cp -r "$set/train" "$tmp/named/photos"; cp "$set/annotations/instances_train.json" "$tmp/named/photos/_annotations.coco.json"
run 0 data info "coco:path=$tmp/named,train=photos"; says "6 train"
mv "$tmp/named/photos/_annotations.coco.json" "$tmp/named/a.json"
run 1 data info "coco:path=$tmp/named,train=photos"; complains "annotations/instances_photos.json': No such file"; one_line
run 0 data info "coco:path=$tmp/named,train=photos,train_json=a.json,masks=0"; says "6 train"
run 1 data info "coco:path=$tmp/named"; complains "has no pictures with annotations"; one_line

# what is wrong is named, with its file and entry; bad=skip leaves it out
bad() { # bad SED MESSAGE: the annotations after an edit
	cp -r "$set" "$tmp/bad"
	sed -i "$1" "$tmp/bad/annotations/instances_val.json"
	run 1 data info "coco:path=$tmp/bad" --split val; complains "instances_val.json'"; complains "$2"; one_line
	rm -r "$tmp/bad"
}
id=$(grep -o '"annotations":\[{"id":[0-9]*' "$ann" | grep -o '[0-9]*$')
bad "s/{\"id\":$id,\"image_id\":7,/{\"id\":$id,\"image_id\":70,/" "annotation $id: there is no image 70"
bad "s/\(\"id\":$id,\"image_id\":7,\"category_id\":\)[0-9]*/\1 77/" "annotation $id: there is no category 77"
bad "s/\(\"id\":$id,.image_id.:7,.category_id.:[0-9]*,.bbox.:\[[0-9.]*,[0-9.]*,\)[0-9.]*/\10.0/" "annotation $id: its box"
bad "s/\(\"id\":$id,.image_id.:7,.category_id.:[0-9]*,.bbox.:\[\)[0-9.]*/\1-9.0/" "is not inside the picture of 64 x 64"
bad "0,/\"counts\":\"/s//\"counts\":\"\\\\u0001/" "annotation $id: its mask cannot be read"
bad "s/000008.png/nosuch.png/" "image 8: there is no picture '$tmp/bad/val/nosuch.png'"
bad "s/}/]/" "line 1, column"
bad "s/\"annotations\"/\"notes\"/" "no list 'annotations'"
cp -r "$set" "$tmp/bad"
sed -i "s/{\"id\":$id,\"image_id\":7,/{\"id\":$id,\"image_id\":70,/; s/000008.png/nosuch.png/" "$tmp/bad/annotations/instances_val.json"
run 0 data info "coco:path=$tmp/bad,bad=skip" --split val; says "6 train, 2 val"; complains "annotation $id: there is no image 70"; complains "nosuch.png"
# a picture of another size than its annotations say
rm -r "$tmp/bad"; cp -r "$set" "$tmp/bad"; run 0 data make shapes --samples 1:0 --size 40 -o "$tmp/small"; cp "$tmp/small/train/000001.png" "$tmp/bad/val/000007.png"
run 1 data info "coco:path=$tmp/bad" --split val; complains "val/000007.png': it has 40 x 40 pixels (width x height), but its image 7"; one_line
run 0 data info "coco:path=$tmp/bad,bad=skip" --split val; says "2 val"; complains "val/000007.png"

# scores: the truth as detections is found whole, half of it half
found() { # found FILE EXPRESSION: annotations as detections, those whose number passes
	grep -o '"image_id":[0-9]*,"category_id":[0-9]*,"bbox":\[[^]]*\]' "$ann" | awk "$2 { printf \"%s{%s,\\\"score\\\":0.9}\", n++ ? \",\" : \"[\", \$0 } END { print \"]\" }" >"$1"
}
found "$tmp/all.json" 1; found "$tmp/some.json" "NR % 2"
run 0 score "$tmp/all.json" "$ann"; says "boxes of"; says "all                       100.00 %  100.00 %  100.00 %"; silent
run 0 score "$tmp/some.json" "$ann" --json; json AP AP50 AR100 classes precision of pictures; silent
run 0 score "$tmp/all.json" "$ann" --draw "$tmp/drawn" --pictures "$set/val"; says "3 pictures with the detections"; [ -s "$tmp/drawn/8.png" ] || fail "nothing drawn"
run 2 score "$tmp/all.json" "$ann" --draw "$tmp/drawn"; complains "--draw needs --pictures"; one_line
# boxes of the pixels as a file stores them, 37 x 29, though its EXIF data turn it: it is drawn lying, 11 times as large; else upright
turned() { # turned HEIGHT WIDTH: of the annotations
	echo '{"images":[{"id":1,"file_name":"exif-6.png","height":'"$1"',"width":'"$2"'}],"annotations":[{"id":1,"image_id":1,"category_id":1,' \
		'"bbox":[20,5,6,9],"iscrowd":0,"area":54}],"categories":[{"id":1,"name":"a"}]}' >"$tmp/turned.json"
	run 0 score "$tmp/found.json" "$tmp/turned.json" --draw "$tmp/drawn" --pictures test/data/pictures
	size=$(od -An -tu1 -j16 -N8 "$tmp/drawn/1.png" | tr -s ' ')
}
echo '[{"image_id":1,"category_id":1,"bbox":[20,5,6,9],"score":0.9}]' >"$tmp/found.json"
turned 29 37; [ "$size" = " 0 0 1 151 0 0 1 63" ] || fail "not 407 x 319 but $size"
turned 37 29; [ "$size" = " 0 0 1 63 0 0 1 151" ] || fail "not 319 x 407 but $size"
run 1 score "$tmp/all.json" "$ann" --of masks; complains "detection 1: it has no 'segmentation'"; one_line
run 1 score "$ann" "$ann"; complains "not a list of detections"; one_line
run 1 score "$tmp/all.json" "$set/annotations/instances_train.json"; complains "detection 1: there is no image 7"; one_line
run 1 score "$tmp/nosuch.json" "$ann"; complains "nosuch.json"; one_line
run 2 score "$tmp/all.json"; complains "needs a file of detections and one of annotations"; one_line
exit "$failed"
