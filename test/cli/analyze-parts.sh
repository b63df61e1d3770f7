#!/bin/bash
# Numbers of norma analyze that must agree with each other or with a closed form, and the views of norma norms.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
command -v python3 >/dev/null || { echo "skipped: python3 is not here" >&2; exit 77; }
made_up_mnist 40 40
model=vit_nano:dim=16,depth=2,heads=1,patch=7
# holds SENTENCE: a Python expression about j, the output, and n, the number of samples
holds() {
	python3 - "$tmp/out" "$1" <<-'EOF' || fail "not so: $1"
		import json, math, sys
		j = json.load(open(sys.argv[1]))
		n = j["samples"] if "samples" in j else 0
		near = lambda a, b, tol=2e-5: abs(a - b) <= tol * max(1, abs(b))
		sys.exit(not eval(sys.argv[2]))
	EOF
}

# layer norm without gain: every token has length sqrt(16), so that magnitudes do not vary
run 0 train --data mnist --model "$model" --norm "layer:affine=0" --batch 20 --steps 2 --out "$tmp/ln" --json
run 0 analyze "$tmp/ln/model.safetensors" --samples 4 --json
holds 'near(j["magnitude"][1]["after"]["length"][0], 4, 1e-3) and j["magnitude"][1]["after"]["variation"][0] < 1e-3'
holds 'j["magnitude"][1]["before"]["variation"][0] > 1e-3'
# with one head its part of a token is the token
holds 'near(j["magnitude"][1]["before"]["length"][0], j["layers"][2]["tokens"]["norm_mean"])'
# |mean u|^2 = 1/n + (1 - 1/n) mean cosine of pairs
holds 'near(j["directions"][1]["after"]["common"][0] ** 2, 1 / n + (1 - 1 / n) * j["layers"][3]["tokens"]["mean_cosine"])'
# the maps of all pictures have the entropy that the attention part finds
entropy='lambda k: sum(-w * math.log(w) for m in j["maps"]["maps"] if m["layer"] == "blocks.%d" % k for w in m["heads"][0]) / n'
holds "all(near(($entropy)(k), j['attention'][k]['heads'][0]['cls_entropy']) for k in (0, 1))"
holds 'all(near(sum(m["heads"][0]), 1) for m in j["maps"]["maps"]) and len(j["maps"]["maps"]) == 8'
# norms of one token do not care for others
holds 'not j["sensitivity"]["batches"] and all(v == 0 for s in j["sensitivity"]["lengths"] for v in s["change"])'
# patch projection, class token and positions; two blocks; head
holds 'j["cost"]["parameters"] == (49 * 16 + 16) + 16 + 17 * 16 + 2 * (16 * 48 + 48 + 16 * 16 + 16 + 2 * 16 * 64 + 64 + 16) + 170'
holds 'j["cost"]["norm_parameters"] == 0 and 0 < j["cost"]["norm_flops"] < j["cost"]["forward_flops"]'
holds 'all(0 <= v["alignment"] <= 4 and v["uniformity"] <= 0 for l in j["views"] for v in (l[k] for k in ("cls", "mean") if k in l))'

# a model against itself is its own similarity
run 0 analyze "$tmp/ln/model.safetensors" --samples 40 --only similarity,against --against "$tmp/ln/model.safetensors" --out "$tmp/told" --json
holds 'all(j["against"][k] == j["similarity"][k] for k in ("cls", "tokens"))'
[ -s "$tmp/told/against.svg" ] || fail "no drawing of the comparison"

# running statistics of the very samples that the largest batch has: what is left is n / (n - 1) of the variance
run 0 train --data mnist --model "$model" --norm batch:momentum=1 --batch 32 --limit 32 --steps 1 --lr 0 --warmup 0 --crop resize --flip 0 \
	--out "$tmp/bn" --json
run 0 analyze "$tmp/bn/model.safetensors" --split train --samples 32 --batch 32 --only sensitivity --json
holds '[b["batch"] for b in j["sensitivity"]["batches"]] == [2, 4, 8, 16, 32]'
holds 'j["sensitivity"]["batches"][4]["change"] < 5e-3 < 0.05 < j["sensitivity"]["batches"][0]["change"]'
holds 'j["sensitivity"]["batches"][4]["cosine"] > 0.9999'
holds 'all(s["change"][2] > 1e-3 for s in j["sensitivity"]["lengths"])'

run 2 analyze "$tmp/ln/model.safetensors" --against; complains "against"
run 1 analyze "$tmp/ln/model.safetensors" --against "$tmp/none.safetensors"; complains "none.safetensors"
run 0 train --data mnist --model "$model,image=14" --crop resize --batch 20 --steps 1 --out "$tmp/small" --json
run 1 analyze "$tmp/ln/model.safetensors" --against "$tmp/small/model.safetensors"; complains "image = 14, not 28"

# the norms as such
run 0 norms sphere --out "$tmp/views" --threads 1 --json; cp "$tmp/out" "$tmp/first"
holds '[s["norm"] for s in j][:3] == ["none", "rms", "layer"] and near(j[1]["length"], math.sqrt(3), 1e-3) and j[2]["off_plane"] < 1e-5'
run 0 norms sphere --threads 2 --json; cmp -s "$tmp/out" "$tmp/first" || fail "two threads give another cloud"
flow=(norms flow --model "vit:image=8,patch=4,dim=16,depth=3,heads=2,classes=5" --batch 4 --placement "pre post")
run 0 "${flow[@]}" --threads 1 --out "$tmp/views" --json; cp "$tmp/out" "$tmp/first"
holds 'len(j) == 2 and len(j[0]["gradient"]) == 3 and all(near(v, 4, 1e-3) for v in j[1]["length"])'
run 0 "${flow[@]}" --threads 2 --json; cmp -s "$tmp/out" "$tmp/first" || fail "two threads give another flow"
for p in sphere flow; do python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$tmp/views/$p.svg" || fail "$p.svg is not well-formed"; done
run 0 "${flow[@]}"; says "last / first"
run 2 norms flow --placement "a b c d e f g h i"; complains "at most"; one_line
run 2 norms sphere --norm layr; complains "did you mean 'layer'"; one_line
run 2 norms sphere flow; complains "one name"
exit "$failed"
