#!/bin/bash
# robust: the same errors on any number of threads and as norma eval says; adaptation by batch; arms of several seeds; pictures that are
# corrupted already; classes that do not all occur; a page, its pictures and tables; what is wrong is said.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/own_pictures.inc
. test/cli/own_pictures.inc
made_up_mnist 160 60
number() { sed -n "s/^{[^{]*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }

for seed in 0 1; do
	run 0 train --data mnist --model vit_nano:dim=24,depth=1,heads=3,patch=7 --norm bn --batch 16 --epochs 4 --lr 3e-3 --seed $seed \
		--out "$tmp/study/BN/seed-$seed/train"
done
bn=$tmp/study/BN/seed-0/train/model.safetensors
run 0 train --data mnist --model vit_nano:dim=24,depth=1,heads=3,patch=7 --norm ln --batch 16 --epochs 4 --lr 3e-3 --out "$tmp/ln"
ln=$tmp/ln/model.safetensors

# clean errors are those of norma eval, corrupted ones depend on no number of threads
run 0 eval "$bn" --json
top1=$(number top1)
run 0 robust "$bn" --corruptions gaussian_noise,fog --severities 1,5 --threads 1 --json; json clean_error corrupted_error nll brier ece samples
says '"data":"mnist/test","samples":60'

awk -v a="$top1" -v b="$(number clean_error)" 'BEGIN { exit !(a + b > 0.999999 && a + b < 1.000001) }' || fail "clean error $(number clean_error), but top-1 $top1"
cp "$tmp/out" "$tmp/one"
run 0 robust "$bn" --corruptions fog,gaussian_noise --severities 1,5 --threads 2 --json
cmp -s "$tmp/one" "$tmp/out" || fail "the order or the threads show"
run 0 robust "$bn" --corruptions fog,gaussian_noise --severities 1,5 --seed 1 --json
! cmp -s "$tmp/one" "$tmp/out" || fail "the seed does not show"

# every corruption, every adaptation, several seeds; a page
run 0 robust "$tmp"/study/BN/seed-*/train/model.safetensors "$ln" --severities 5 --batch 20 --samples 40 --adapt none,stats,tent,sar --relative-to BN --out "$tmp/page"
for word in "BN, none" "BN, sar" "mCE" "±" "jpeg_compression" "frost (our texture)" "relative to the errors of BN"; do says "$word"; done
complains "texture of ours"; complains "changes nothing"
for f in robust.html robust.json errors.csv pictures.png; do [ -s "$tmp/page/$f" ] || fail "no $f"; done
[ "$(wc -l <"$tmp/page/errors.csv")" = $((1 + 3 * 4 * 16)) ] || fail "not a line for each error"
awk -F, 'NR > 1 && ($6 < 0 || $6 > 1 || $10 != 40)' "$tmp/page/errors.csv" >"$tmp/odd"
[ ! -s "$tmp/odd" ] || fail "odd errors: $(cat "$tmp/odd")"
# stats does nothing to layer norm
awk -F, '/ln/ && $3 ~ /none|stats/ { $3 = ""; print }' "$tmp/page/errors.csv" | sort | uniq -c | awk '$1 != 2' >"$tmp/odd"
[ ! -s "$tmp/odd" ] || fail "stats changed layer norm"

# pictures that are there, corrupted by somebody else; names of folders are classes
pictures "$tmp/own" 6
run 0 train --data "folder:path=$tmp/own,val=0.3" --model vit:image=28,channels=1,patch=7,dim=16,depth=1,heads=2 --epochs 2 --batch 4 --out "$tmp/own-run"
for s in 1 2 3 4 5; do mkdir -p "$tmp/c/fog"; cp -r "$tmp/own" "$tmp/c/fog/$s"; done
run 0 robust "$tmp/own-run/model.safetensors" --data "folder:path=$tmp/own,val=0" --corrupted "$tmp/c" --corruptions fog; says "18 samples"
read -r clean corrupted <<<"$(awk '$3 == $4 && $2 == 1 { print $3, $4 }' <<<"$out")"
{ [ -n "$clean" ] && [ "$clean" = "$corrupted" ]; } || fail "the same pictures have another error: $out"
# classes that do not occur are out of the softmax; folders may be called by numbers
mkdir "$tmp/some"; cp -r "$tmp/own/class-0" "$tmp/some/0"; cp -r "$tmp/own/class-2" "$tmp/some/2"
run 0 robust "$tmp/own-run/model.safetensors" --data "folder:path=$tmp/some,val=0" --corruptions none; says "limited to 2 of 3 classes"
# frost of one's own
picture "$tmp/frost/1.tif" 300 300 200 20
run 0 robust "$bn" --corruptions frost --frost "$tmp/frost" --samples 20
! grep -q texture <<<"$out$err" || fail "it is not told photographs from our texture"

# what cannot be
run 2 robust; complains "at least one checkpoint"
run 2 robust "$bn" --corruptions fgo; complains "did you mean 'fog'"
run 2 robust "$bn" --severities 6; complains "not a severity"
run 2 robust "$bn" --adapt tnet; complains "did you mean 'tent'"
run 2 robust "$bn" --relative-to DTN; complains "of an arm 'DTN'"
run 1 robust "$bn" --frost "$tmp/nothing"; complains "no such folder"; one_line
run 1 robust "$bn" --adapt tent --samples 10; complains "do not fill a batch"
run 1 robust "$tmp/own-run/model.safetensors" --data "folder:path=$tmp/own,val=0" --corrupted "$tmp/none" --corruptions fog; complains "$tmp/none/fog/1"
run 1 robust "$bn" --corruptions frost --frost "$tmp/own/class-0"; complains "too few for pictures"
exit $failed
