#!/bin/bash
# What the papers and their released code say, and the recipes must have: settings that a comparison with published numbers stands on.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"

# study NAME: the settings of every arm, one per line
study() { plans "recipes/$1.yaml" --out "$tmp/none"; }
# arm NAME TEXT: the arm's settings have it
arm() {
	local line
	line=$(grep -F -- "$1 " <<<"$out" | sed -n 1p)
	grep -qF -- "$2" <<<"$line" || fail "'$1' lacks '$2': $line"
}
lacks() { ! grep -qF -- "$2" <<<"$(grep -F -- "$1 " <<<"$out")" || fail "'$1' has '$2'"; }

# AugReg's augmentation by model, on ImageNet-1k and on ImageNet-21k, where the mean of the patches is pooled
for name in dpn/table1 dpn/table6 dpn/figure1; do study $name; arm "Ti/16," "randaugment=n=2,m=0"; arm "S/16," "randaugment=n=2,m=15"; done
grep -q '^randaugment: "n=2,m=0"' recipes/augreg/ti16.yaml || fail "Ti/16 has not light1"
grep -q '^epochs: 300' recipes/augreg/s16-plus.yaml || fail "S/16+ is not the published one"
study dpn/table1-21k
for model in Ti/16 S/32; do lacks "$model," randaugment; lacks "$model," mixup; done
arm "S/16," "randaugment=n=2,m=0"; lacks "S/16," mixup
for model in B/32 B/16; do arm "$model," "randaugment=n=2,m=10"; arm "$model," "mixup=0.2"; done
for model in Ti/16 S/32 S/16 B/32 B/16; do arm "$model," "pool=avg,fc_norm=0,class_token=0"; done

# every norm of DTN's Table 3 sits where DTN does
for name in dtn/table3 dtn/cpu/table3; do
	last=10; [ $name = dtn/table3 ] || last=3
	study $name
	for norm in bn in gn sn scale:per_channel=1 dtn; do says "norm=blocks[0:$last].*=$norm blocks[$last:].*=ln final=ln"; done
	says "pn:variant=dtn,groups=-1,warmup="
done
study dtn/table10; says "dtn:attention=free,init=zero"; says "position_bias=eq7"
study dtn/layers
for layers in 4 6 8; do arm "$layers layers" "class_at=$layers"; arm "$layers layers" "blocks[0:$layers].*=dtn"; done
study dtn/table1; grep -qE '72\.2$' <<<"$(grep -E '^ViT-T, LN ' <<<"$out")" || fail "no published ViT-T"
study norms/kinds; says "norm=gn:scope=token"; says "norm=in:scope=token"
study sepnorm/figure5; arm "linear 0.1, LN" "power=linear"; lacks "cls 0.1, LN" power
study dpn/table4; arm "B/32, 220K, DPN" "63.0"; arm "L/16, 1.1M, Base" "78.7"
study dpn/table2; arm "L/16, 1.1M, 384, DPN" "88.3"; arm "B/32, 220K, 224, Base" "77.6"

# a recipe that names another one names one that is there
while IFS=: read -r file name; do
	[ -e "recipes/$name" ] || [ -e "$(dirname "$file")/$name" ] || [ -e "$(dirname "$file")/../$name" ] || [ -e "$name" ] || { ran=$file; fail "names '$name', which is not there"; }
done < <(grep -roE '[a-z0-9_/-]+\.yaml' recipes --include='*.yaml' | grep -v 'study.yaml$')

# make demo ends in the report of the study that it ran
ran="scripts/demo"
printf '#!/bin/sh\necho "$@" >>"%s/calls"\n' "$tmp" >"$tmp/norma"; chmod +x "$tmp/norma"
scripts/demo "$tmp/norma" "$tmp/demo" >"$tmp/out"
[ "$(tail -1 "$tmp/calls")" = "report $tmp/demo --output $tmp/demo/report.html" ] || fail "it ends with: $(tail -1 "$tmp/calls")"
grep -q "^study recipes/demo.yaml --out $tmp/demo" "$tmp/calls" || fail "it runs no study: $(cat "$tmp/calls")"
exit "$failed"
