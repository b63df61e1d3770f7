#!/bin/bash
# models counts parameters and multiply-adds as papers and public code do, and shows one model in detail.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

number() { grep -o "\"$1\":[0-9.]*" <<<"$out" | sed -n 1p | cut -d: -f2; }
# counts PARAMS GMAC MODEL [FLAG...]; 224 px, 1000 classes, GMAC to three places
counts() {
	local params=$1 gmac=$2
	shift 2
	run 0 models --json "$@"; silent
	[ "$(number params)" = "$params" ] || fail "$(number params) parameters, not $params"
	[ "$(printf %.3f "$(number gmac)")" = "$gmac" ] || fail "$(number gmac) GMAC, not $gmac"
}
counts 5717416 1.254 ti/16
counts 22878952 1.143 s/32
counts 22050664 4.599 s/16
counts 88224232 4.409 b/32
counts 86567656 17.564 b/16
counts 304326632 61.555 l/16
counts 5717416 1.254 vit_tiny_patch16_224
counts 86567656 17.564 vit_base_patch16_224
# Dual PatchNorm adds 6 p^2 + 2 D
counts $((5717416 + 1920)) 1.254 ti/16 --patch-norm dual
counts $((22878952 + 6912)) 1.143 s/32 --patch-norm dual
counts $((22050664 + 2304)) 4.599 s/16 --patch-norm dual
counts $((88224232 + 7680)) 4.409 b/32 --patch-norm dual
counts $((86567656 + 3072)) 17.564 b/16 --patch-norm dual
counts $((304326632 + 3584)) 61.555 l/16 --patch-norm dual
# the ViTs of the DTN paper with LN: the class token is there from the first block, and has a position
counts 5710504 1.254 dtn/t:class_at=0
counts 5710504 1.254 'dtn/t*:class_at=0'
counts 22036840 4.599 dtn/s:class_at=0
counts 27777304 5.762 'dtn/s*:class_at=0'
counts 86540008 17.564 dtn/b:class_at=0
counts 86540008 17.564 'dtn/b*:class_at=0'
# With DTN in 10 blocks. Public code counts H biases of each norm's position projection; a softmax cannot see them and ours
# has none: 2 * 10 * H less than there. The late class token saves a few products of 10 blocks.
dtn="*=ln blocks[0:10].*=dtn"
counts $((5710792 - 2 * 10 * 4)) 1.248 'dtn/t*' --norm "$dtn"
counts $((22037176 - 2 * 10 * 6)) 4.578 dtn/s --norm "$dtn"
counts $((27777952 - 2 * 10 * 9)) 5.736 'dtn/s*' --norm "$dtn"
counts $((86540680 - 2 * 10 * 12)) 17.487 dtn/b --norm "$dtn"
counts $((86541160 - 2 * 10 * 16)) 17.487 'dtn/b*' --norm "$dtn"

# norms: DTN mixes tokens by two products (Eq. 5); ViT-S prints half of them, 0.28, PVT-Tiny 0.15 more than LN
norms() { run 0 models --json "$@"; printf '%.3f ' "$(number norm_gmac)"; }
[ "$(norms dtn/s --norm ln; norms dtn/s --norm "$dtn"; norms dtn/pvt-tiny --norm ln; norms dtn/pvt-tiny)" = "0.007 0.629 0.007 0.181 " ] ||
	fail "other operations of norms"

run 0 models; says "vit_tiny_patch16_224"; says "5,717,416"; says "61.555"; says "dtn/s*"; silent
run 0 models --json; [ "$(wc -l <"$tmp/out")" -gt 20 ] || fail "not a line for each preset"
run 0 models vit; says "Presets"; says "Options"; says "vit_base_patch32_224"
run 0 models ti/16:classes=10 --norm "*=ln blocks[0:6].attn.in=rms" --patch-norm dual
says "5,5"; says "blocks.*.mlp.fc1"; says "0 to 5"; says "6 to 11"; says "rms"; says "patch.in"; silent
run 0 models vit_nano --json --norm bn; says '"buffers":2'; says '"sites"'; says '"parts"'; json name family params gmac settings
run 2 models vit_tiny_patch16_225; complains "did you mean 'vit_tiny_patch16_224'?"; one_line
run 2 models ti/16:dept=3; complains "did you mean 'depth'?"; one_line
run 2 models ti/16 --norm lm; complains "did you mean 'ln'?"; one_line
run 2 models a b; complains "one name"; one_line
run 2 models --write x; complains "one model"; one_line
run 1 models vit:image=30,patch=16; complains "do not tile"; one_line
# initial values: by seed alone
run 0 models vit_nano --write "$tmp/a" --seed 1
run 0 models vit_nano --write "$tmp/b" --seed 1 --threads 1; cmp "$tmp/a" "$tmp/b" || fail "the same seed gives other values"
run 0 models vit_nano --write "$tmp/c" --seed 2; ! cmp -s "$tmp/a" "$tmp/c" || fail "another seed gives the same values"
run 1 models vit_nano --write "$tmp/no/such/folder"; complains "no/such/folder"; one_line
exit "$failed"
