#!/bin/bash
# Figures of the papers that are recorded or measured by us: gradients by layer (Dual PatchNorm, Figure 2), lambda by head and distances
# from DTN's own mean (DTN, Figures 8 and 3b), singular values (SepNorm, Figure 4), arms over architectures and lambda (Figures 1 and 5),
# and what a paper says in words beside its numbers.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up "$tmp/data/mnist" train 120
made_up "$tmp/data/mnist" t10k 40
export NORMA_DATA=$tmp/data
model="vit_nano:dim=12,depth=2,heads=3,patch=7"
settings=(--data mnist --model "$model,class_at=1" --norm "blocks[0].*=dtn blocks[1].*=ln final=ln" --batch 8 --steps 30 --eval-every 0 --checkpoint-steps 10
	--gradients 5 --microscope 5)
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-4 * (1 + a) && -d < 1e-4 * (1 + a)) }' || fail "$1 is not $2"; }
# cell FILE STEP COLUMN
cell() { awk -F, -v step="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 && $1 == step && $c != "" { print $c; exit }' "$1"; }

# the layers make up the norm of all gradients, in the first step, every fifth and the last
run 0 --threads 1 train "${settings[@]}" --log-every 5 --out "$tmp/run"
[ "$(tail -n +2 "$tmp/run/layer_gradients.csv" | cut -d, -f1 | xargs)" = "1 5 10 15 20 25 30" ] || fail "other steps: $(cut -d, -f1 "$tmp/run/layer_gradients.csv" | xargs)"
grep -q '^step,patch_embed,.*blocks\.0,.*blocks\.1,.*head$' <<<"$(head -1 "$tmp/run/layer_gradients.csv")" || fail "$(head -1 "$tmp/run/layer_gradients.csv")"
near "$(awk -F, '$1 == 20 { for (i = 2; i <= NF; i++) s += $i * $i; print sqrt(s) }' "$tmp/run/layer_gradients.csv")" "$(cell "$tmp/run/metrics.csv" 20 grad_norm)"
# lambda begins in the middle, mean and variance move apart
[ "$(cell "$tmp/run/lambda.csv" 1 blocks.0.attn.in.mean.2)" = 0.5 ] || fail "lambda does not begin at a half"
[ "$(cell "$tmp/run/lambda.csv" 30 blocks.0.attn.in.mean.0)" != "$(cell "$tmp/run/lambda.csv" 30 blocks.0.attn.in.var.0)" ] || fail "one lambda for both"
# cut off and resumed on more threads: the same records
run 0 --threads 2 train "${settings[@]}" --log-every 5 --out "$tmp/part"
for f in layer_gradients.csv lambda.csv; do
	cmp -s "$tmp/run/$f" "$tmp/part/$f" || fail "$f depends on the threads"
	echo "99,1" >>"$tmp/part/$f"
done
run 0 train --resume "$tmp/part"
for f in layer_gradients.csv lambda.csv; do cmp -s "$tmp/run/$f" "$tmp/part/$f" || fail "$f differs after a resume"; done
run 0 report "$tmp/run" "$tmp/part" -o "$tmp/page.html"
for words in 'Gradient norm by layer' 'Gradient norm of the patch embedding' '<section id="lambda">' 'λ of the variance, blocks.0.mlp.in'; do
	grep -qF "$words" "$tmp/page.html" || fail "the report lacks '$words'"
done

# number KEY: of one line of JSON
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" <<<"$out"; }
# from DTN's own mean: with lambda 1 that of the token, with lambda 0 and equal weights that of the picture
for norm in "lam=1 layer" "lam=0,attention=uniform instance" "lam=0.5 none"; do
	run 0 train --data mnist --model "$model,class_at=1" --norm "blocks[0].*=dtn:${norm% *} blocks[1].*=ln final=ln" --batch 8 --steps 2 --eval-every 0 --out "$tmp/${norm% *}"
	run 0 analyze "$tmp/${norm% *}/model.safetensors" --samples 32 --only dtn,spectrum,layers --out "$tmp/${norm% *}/analyze" --json
	same=$(awk -v a="$(number dtn)" -v b="$(number "${norm#* }")" 'BEGIN { print a - b < 1e-9 && b - a < 1e-9 }')
	[ "$same" = "$([ "${norm#* }" = none ] && echo 0 || echo 1)" ] || fail "$norm: $(number dtn), layer $(number layer), instance $(number instance)"
done
# squares of the singular values are those of the lengths
near "$(awk -F, 'NR > 1 { s += $2 * $2 } END { print s }' "$tmp/lam=1/analyze/singular_values.csv")" \
	"$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "final" && $2 == "cls" { print 32 * ($at["norm_mean"] ^ 2 + $at["norm_sd"] ^ 2) }' "$tmp/lam=1/analyze/layers.csv")"

# combined arms are one chart: differences where the baseline is a part of the names, values and a bound elsewhere; and the paper's words
cp recipes/published.yaml "$tmp/"
cat >"$tmp/study.yaml" <<EOF
base: {data: mnist, batch: 8}
stages: [train: {steps: 3, eval_every: 0}]
arms: [{name: S/16, model: "vit_nano:dim=8,depth=1,heads=2,patch=14"}, {name: S/32, model: "vit_nano:dim=8,depth=1,heads=2,patch=28"}]
grid: {patch_norm: {Base: none, DPN: dual}}
seeds: 2
metric: train.eval_top1
baseline: Base
bound: 60 a line
published: {table: dpn/table1/imagenet1k, where: {recipe: ViT AugReg}}
out: $tmp/study
EOF
run 0 study "$tmp/study.yaml"
run 0 report "$tmp/study" -o "$tmp/study.html"
for words in '<section id="families">' 'difference to Base' '1 S/16, 2 S/32' 'a line' 'Where the paper contradicts itself' 'S/16 (72.5 and 72.5)' 'What it claims in words'; do
	grep -qF "$words" "$tmp/study.html" || fail "the page lacks '$words'"
done
! grep -qF 'three out of four fine-tunings' "$tmp/study.html" || fail "a contradiction of another table"
sed -i '/^baseline/d' "$tmp/study.yaml"
run 0 study "$tmp/study.yaml" --out "$tmp/values"; run 0 report "$tmp/values" -o "$tmp/values.html"
grep -qF 'by arm' "$tmp/values.html" || fail "no chart of the values"

# the page of claims and contradictions has all of the data file
ran="docs/published.md"
while IFS= read -r fact; do grep -qF -- "$fact" docs/published.md || fail "it lacks '$fact'"; done < <(sed -n 's/.*fact: "\(.*\)"}$/\1/p' recipes/published.yaml)
exit "$failed"
