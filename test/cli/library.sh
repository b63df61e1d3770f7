#!/bin/bash
# The programs of examples/ build against an installed libnorma, without a warning, and give what the command gives.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
[ -z "${NORMA_SANITIZE:-}" ] || exit 77
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc

DESTDIR=$tmp/stage cmake --install "$NORMA_BUILD" --prefix /opt/norma >/dev/null
lib=$(dirname "$(find "$tmp/stage" -name libnorma.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib OMP_NUM_THREADS=1      # tiny regions: threads would wait for each other
for program in first embed own_model; do
	# shellcheck disable=SC2046 # pkg-config gives words
	cc -std=gnu17 -O1 -Wall -Wextra -Werror "examples/$program.c" -o "$tmp/$program" $(pkg-config --cflags --libs norma) -lm
done
# try CODE PROGRAM ARG...: as run does for norma
try() {
	local want=$1 code=0
	shift
	"$tmp/$1" "${@:2}" >"$tmp/out" 2>"$tmp/err" || code=$?
	out=$(cat "$tmp/out") err=$(cat "$tmp/err") ran="$*"
	[ "$code" = "$want" ] || fail "exit code $code, not $want: $err"
}

# ---- sentences: the bits of norma embed
mkdir "$tmp/bert"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a cat sees the dog . >"$tmp/bert/vocab.txt"
run 0 models bert:dim=16,depth=2,heads=2,hidden=24,positions=24,length=24,vocab=11 --write "$tmp/bert/model.safetensors" --seed 2
printf '%s\n' 'a cat sees the dog .' 'a dog' '' 'the cat' 'a dog' >"$tmp/lines"
run 0 embed "$tmp/bert" <"$tmp/lines"; cp "$tmp/out" "$tmp/want"
try 0 embed "$tmp/bert" <"$tmp/lines"; silent
cmp -s "$tmp/out" "$tmp/want" || fail "other embeddings than those of norma embed"
try 1 embed "$tmp/none" <"$tmp/lines"; complains "$tmp/none"

# ---- pictures: the class and probability of norma predict, also where the training scaled and cropped pictures in its own way
run 0 models vit:image=16,patch=4,dim=32,depth=2,heads=2,classes=5 --write "$tmp/vit.safetensors" --seed 4
made_up "$tmp/data/mnist" train 40
made_up "$tmp/data/mnist" t10k 10
run 0 train --data mnist --data-root "$tmp/data" --model vit:image=24,patch=6,channels=1,dim=16,depth=1,heads=2 --crop resize --filter bilinear \
	--crop-share 0.8 --steps 2 --batch 10 --out "$tmp/run"
for weights in vit.safetensors run/model.safetensors run; do
	for name in rgb.jpg grey.png; do
		picture=test/data/pictures/$name
		run 0 predict "$tmp/$weights" $picture --top 1 --json
		want=$(sed -E 's/.*"class":([0-9]+),"name":"([^"]*)","probability":([0-9.]+).*/\1 \2 \3/' <<<"$out" |
			awk -v named="${weights%%vit*}" '{ printf "class %s%s, probability %.4f", $1, named ? " " $2 : " ", $NF }')
		try 0 first "$tmp/$weights" $picture; silent
		[ "$out" = "$want" ] || fail "$out, but norma predict says $want"
	done
done
# the crop is that of the training
for share in 0 0.8 1; do
	run 0 predict "$tmp/run" "$picture" --top 1 --json --crop-share "$share"
	cp "$tmp/out" "$tmp/share-$share"
done
cmp -s "$tmp/share-0" "$tmp/share-0.8" || fail "not the crop of the training"
! cmp -s "$tmp/share-0" "$tmp/share-1" || fail "the crop does not show"
try 1 first "$tmp/vit.safetensors" "$tmp/lines"; complains "$tmp/lines"
try 1 first "$tmp/none" "$tmp/lines"; complains "$tmp/none"

# ---- a model of one's own under three plans (chance: ln 8 = 2.08); a rule for a site that it does not have
for plan in "" "sep(bn,ln)" "dtn placement=post"; do
	try 0 own_model "$plan"; silent
	awk '/^step 400/ { ok = $NF < 0.8 } END { exit !ok }' "$tmp/out" || fail "it has not learned: $out"
done
try 1 own_model "blocks[0].nothing=ln"; complains "no site matches the rule 'blocks[0].nothing=ln'"
exit $failed
