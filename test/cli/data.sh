#!/bin/bash
# data lists, describes, fetches, checks and shows data sets; the readers agree with the real samples of ../shared/data if
# they are there.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
export NORMA_DATA=$tmp/sets

# Made-up CIFAR-10: 3073 bytes a record, labels 0 to 9.
made=$tmp/sets/cifar-10-batches-bin
mkdir -p "$made"
records() { # labels in octal, as printf and tr take them
	for label in 0 1 2 3 4 5 6 7 10 11; do
		printf '%b' "\\0$label"
		head -c 3072 /dev/zero | tr '\0' "\\2${label: -1}7"
	done
}
records >"$made/data_batch_1.bin"
records >"$made/test_batch.bin"

run 0 data list; says "cifar10"; says "$made (a part of it)"; says "norma data get svhn"; says "CC BY-SA"; silent
registry=$(sed -n 's/^DATASET(\(.*\))/\1/p' src/data/datasets.def | wc -l)
run 0 data list --json; [ "$(wc -l <<<"$out")" = "$registry" ] || fail "not one record for each data set"
run 0 data list --root "$tmp/none"; says "norma data get cifar10"

run 0 data info cifar10; says "10 train, 10 test"; says "32 x 32, RGB"; says "9  truck"; says "█"; complains "not the official set"
run 0 data info cifar10 --split test --json; json name count mean std labels class_names; says '"labels":[1,1,1,1,1,1,1,1,1,1]'
run 0 data show cifar10 --output "$tmp/a.png" --count 5; says "5 pictures of train"
head -c 8 "$tmp/a.png" | cmp -s - <(printf '\211PNG\r\n\032\n') || fail "no PNG"
run 0 data show cifar10 --output "$tmp/b.png" --count 5; cmp -s "$tmp/a.png" "$tmp/b.png" || fail "two sheets differ"
run 0 data show cifar10 --output "$tmp/c.png" --augment "crop=pad,pad=4,flip=0.5,size=32" --json; json name output pictures
run 1 data check cifar10; says "WRONG SIZE"; says "MISSING"; complains "not the official set"; complains "norma data get cifar10 --force"
run 1 data get cifar10; complains "cannot overwrite"; complains "--force"; one_line

# Damage is named.
head -c 5000 /dev/zero >"$made/test_batch.bin"
run 1 data info cifar10; complains "test_batch.bin"; complains "5000 bytes"; one_line
records | tr '\11' '\13' >"$made/test_batch.bin"
run 1 data info cifar10; complains "label 11 of picture 9 is not from 0 to 9"; one_line

# Mistakes.
run 2 data; complains "list, info, get, make, check or show"; one_line
run 2 data lsit; complains "did you mean 'list'?"; one_line
run 2 data info; complains "one data set"; one_line
run 2 data info cifra10; complains "did you mean 'cifar10'?"; one_line
run 2 data show cifar10; complains "--output"; one_line
run 2 data get cifar10 --from nmp; complains "did you mean 'npm'?"; one_line
run 1 data info svhn; complains "norma data get svhn"; one_line
run 1 data info cifar10 --split val; one_line
run 1 data get folder; complains "nothing to download"; one_line
run 0 data --help; says "--mirror"

# A server on the loopback that nobody listens to, and no packages.
run 1 data get svhn --mirror http://127.0.0.1:9/x; complains "127.0.0.1"; one_line
[ -z "$(find "$tmp/sets" -name "*svhn*")" ] || fail "something was left behind"

# Pictures of one's own.
mkdir -p "$tmp/own/cat" "$tmp/own/dog"
cp "$tmp/a.png" "$tmp/own/cat/a.png"; cp "$tmp/b.png" "$tmp/own/dog/b.png"
run 0 data info "folder:path=$tmp/own"; says "2 train"; says "cat"; silent
run 0 data check "folder:path=$tmp/own" --all; says "every picture decoded"
run 1 data info "folder:path=$tmp/nosuch"; complains "nosuch"; one_line
echo broken >"$tmp/own/cat/c.jpg"
run 1 data check "folder:path=$tmp/own" --all; complains "c.jpg"; one_line

shared=../shared/data/images
if [ ! -d "$shared" ]; then
	echo "skipped: the real samples of $shared are not there"
	exit "$failed"
fi
# facts NAME ROOT SPLIT
facts() { run 0 data info "$1" --root "$2" --split "$3" --json; }
facts cifar10 "$shared" train; says '"train":500'; says '"class_names":["airplane"'
facts stl10 "$shared" train; says '"labels":[1,1,1,1,1,1,1,1,1,1]'; says '"extra":217'
facts svhn "$shared" train; says '"train":883'; says '"test":200'
facts aircraft "$shared" test; says '"classes":3'
facts aircraft:level=family "$shared" test; says '"classes":3'
run 1 data info flowers102 --root "$shared"; complains "unpack them, too"; one_line
mkdir "$tmp/real"
tar -xzf "$shared/tiny-imagenet-20.tgz" -C "$tmp/real"
facts tiny-imagenet "$tmp/real" val; says '"val":1000'; says '"train":10000'; says '"classes":20'
run 0 data show cifar10 --root "$shared" --output "$tmp/sheet.png" --count 20 --split test; says "ship"
exit "$failed"
