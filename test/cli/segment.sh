#!/bin/bash
# Segmentation: from a folder of pictures and label maps to a model, its scores, its overlays and its report.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
# shellcheck source=test/cli/label_maps.inc
. test/cli/label_maps.inc
export NORMA_DATA=$tmp/data
label_maps "$tmp/own" 20
small=(--model "vit:image=16,patch=4,dim=16,depth=1,heads=2" --batch 8 --lr 1e-2 --warmup 0 --store "$tmp/runs.db")
number() { grep -o "\"$1\":[0-9.e-]*" <<<"$2" | sed -n 1p | cut -d: -f2; }
more_than() { awk "BEGIN { exit !($1 > $2) }" || fail "$1 is not more than $2"; }

# nothing but the folder; it learns, draws and records what it tells apart
run 0 segment --data "$tmp/own" "${small[@]}" --epochs 20 --eval-every 10 --out "$tmp/run"
says "2 classes"; says "val is"; says "dense layer, backbone tuned"; says "mIoU"
run 0 eval "$tmp/run" --json; json miou pixel_acc mean_acc nll; silent
miou=$(number miou "$out")
more_than "$miou" 0.8
{ [ -s "$tmp/run/segmentation.png" ] && [ "$(find "$tmp/run/pictures" -name 'segment-*.png' | wc -l)" = 2 ]; } || fail "it did not draw"
# what the run recorded is what eval finds, whatever the number of threads
last=$(tail -1 "$tmp/run/metrics.csv" | cut -d, -f"$(sed -n 1p "$tmp/run/metrics.csv" | tr , '\n' | grep -n '^eval_miou$' | cut -d: -f1)")
awk "BEGIN { d = $last - $miou; exit !(d < 1e-7 && d > -1e-7) }" || fail "the run says $last, eval $miou"
first=$out; run 0 eval "$tmp/run" --json --threads 2; [ "$out" = "$first" ] || fail "other scores on 2 threads: $out"
run 0 eval "$tmp/run" --confusion; says "mean IoU"; says "IoU"; says "truth"
for view in slide square; do run 0 eval "$tmp/run" --view $view --side 24 --json; more_than "$(number miou "$out")" 0.5; done
run 0 report "$tmp/run" -o "$tmp/run.html"
for text in "Classes of pixels" "mean IoU" "Confusion: " "data:image/png"; do grep -q "$text" "$tmp/run.html" || fail "the report lacks '$text'"; done

# overlays and numbers of pictures of any size, one name twice
mkdir "$tmp/other"; cp "$tmp/own/images/1.png" "$tmp/other/0.png"
run 0 predict "$tmp/run" "$tmp/own/images/0.png" "$tmp/other/0.png" --draw "$tmp/pred" --json
says '"classes":[{"class":'; [ "$(wc -l <"$tmp/out")" = 2 ] || fail "not two lines: $out"
for name in 0 0-2 0.labels 0-2.labels; do [ -s "$tmp/pred/$name.png" ] || fail "no $name.png"; done
run 0 predict "$tmp/run" "$tmp/own/images/3.png" --draw "$tmp/pred" --view slide --stride 8; says "$tmp/pred/3.png"; says " %"
run 1 predict "$tmp/run" "$tmp/nosuch.png" --draw "$tmp/pred"; complains "nosuch.png"; one_line

# the decoder alone, from these weights, with its own norm in the plan; a larger square; the backbone stays as it is
run 0 segment --data "$tmp/own" --model auto --init "$tmp/run" --frozen --decoder bn --norm "ln segment.bn=rms" --window 20 --batch 8 --steps 2 --out "$tmp/frozen" --store "$tmp/runs.db"
says "backbone frozen"; says "batch norm and dense layer"
run 0 inspect "$tmp/frozen"; says "segment.bn"; grep -q 'segment.bn *rms' <<<"$out" || fail "the plan does not reach the decoder: $out"
norm_of() { run 0 inspect "$1"; sed -n '/^final /p' <<<"$out" | tr -s " "; }
[ "$(norm_of "$tmp/frozen")" = "$(norm_of "$tmp/run")" ] || fail "frozen norms have moved"

# data and settings that do not fit
made_up_mnist 20 20
run 1 segment --data mnist "${small[@]}" --out "$tmp/none"; complains "no label maps"; complains "labelmaps:path=DIR"
run 1 eval "$tmp/run" --data mnist; complains "no label maps"
run 2 eval "$tmp/run" --stats batch; complains "--stats does not apply"
run 2 segment --data "$tmp/own" "${small[@]}" --crop random_resized --out "$tmp/none"; complains "--window"; one_line
run 1 segment --data "$tmp/own" "${small[@]}" --zoom-min 3 --out "$tmp/none"; complains "zoom_min 3 is more than zoom_max 2"; one_line
png "$tmp/own/labels/7.png" 9 9 "$(row 9 5 0 1)"
run 1 segment --data "$tmp/own" "${small[@]}" --epochs 1 --out "$tmp/size"; complains "images/7.png"; complains "labels/7.png' 9 x 9"; one_line
printf 'left\nright\n' >"$tmp/own/classes.txt"; png "$tmp/own/labels/7.png" 24 21 "$(row 24 5 0 6)"
run 1 segment --data "$tmp/own" "${small[@]}" --out "$tmp/none"; complains "labels/7.png"; complains "pixel (5,0) is 6, which is no class of the 2"; one_line
rm "$tmp/own/labels/7.png"
run 1 segment --data "$tmp/own" "${small[@]}" --out "$tmp/none"; complains "images/7.png"; complains "it has no label map"; complains "bad=skip"; one_line
[ ! -e "$tmp/none" ] || fail "a folder of a run that never began"
run 0 data info "labelmaps:path=$tmp/own,bad=skip"; says "17 train, 2 val"; says "right"; says "pixels"; complains "1 pictures of"
exit "$failed"
