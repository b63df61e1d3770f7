#!/bin/bash
# The report is one well-formed page that names the winner, or says that there is none, and hides nothing that is missing.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
page=$tmp/report.html
has() { grep -qF -- "$1" "$page" || fail "the page lacks '$1'"; }
lacks() { ! grep -qF -- "$1" "$page" || fail "the page has '$1'"; }
well_formed() { # also: every picture is inside, nothing is fetched, ids are there
	command -v python3 >/dev/null || return 0
	python3 - "$page" <<-'EOF' || fail "the page is not well-formed"
		import sys, re, base64, json, xml.etree.ElementTree as tree
		text = open(sys.argv[1], encoding="utf-8").read()
		root = tree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
		every = list(root.iter())
		for e in every:
		    for key, value in e.attrib.items():
		        assert not re.search(r"\b(nan|inf)\b", value) or key in ("alt", "data-name", "aria-label"), (e.tag, key, value[:80])
		    if e.tag in ("script", "link", "iframe", "object"):
		        assert "src" not in e.attrib and "href" not in e.attrib, e.tag
		    if e.tag == "img":
		        assert e.get("alt") and base64.b64decode(e.get("src").removeprefix("data:image/png;base64,"), validate=True)[:4] == b"\x89PNG"
		    if e.tag == "a":
		        assert any(o.get("id") == e.get("href")[1:] for o in every), e.get("href")
		assert not re.search(r"https?://(?!www\.w3\.org|github\.com/leeoniya/uPlot \()", text)
		for data in root.findall(".//section[@id='microscope']//script[@type='application/json']"):
		    d = json.loads(data.text)
		    for arm in d["arms"]:
		        assert len(arm["v"]) == len(d["stats"]) and len(arm["steps"]) <= 48
		        for part in (g for v in arm["v"] for g in v if g):
		            assert len(part) == len(arm["steps"]) and all(len(r) == len(d["sites"]) for r in part)
		for table in root.iter("table"):
		    rows = [len(r) for r in table.iter("tr")]
		    assert len(set(rows)) == 1, rows
		for figure in root.iter("figure"):
		    assert len("".join(figure.find("figcaption").itertext())) > 20 or figure.get("class") == "picture", figure.get("class")
		    if figure.get("class") != "curve":
		        continue
		    data = json.loads(figure.find("script").text)
		    for line in data["lines"]:
		        n = len(line["x"])
		        assert 0 < n <= 2102 and all(len(line[k]) == n for k in ("y", "lo", "hi") if k in line), (line["name"], n)
	EOF
}

# three seeds each, far apart
for s in 0 1 2; do
	fake_run "$tmp/ln-$s" ln $s 0.79$s 14
	fake_run "$tmp/sep-$s" 'sep(bn,ln)' $s 0.83$s 41
done
run 0 report "$tmp"/ln-* "$tmp"/sep-* -o "$page" --json; json report; silent; well_formed
has '<strong class="plan">sep(bn,ln)</strong> is ahead'; has '83.10'; has 'over 3 seeds of each arm'; has 'The features agree'
has 'each sees one batch of 32 samples'; has '0123456789abcdef'; has 'norma pretrain --norm &quot;ln&quot; --seed 2'; has 'some CPU'
has 'The norms over time'; has '"sites":["blocks.0.attn.in","blocks.0.mlp.in"'; has '["in_length","length of a token before the norm: mean"]'
has 'Nothing: every run has its'; has 'odd&lt;col&gt;'; has 'Spectrum of [CLS]'; lacks 'no finite value'
[ "$(grep -o '<img ' "$page" | wc -l)" = 2 ] || fail "not one picture for each arm"

# every figure as a file; PDF where there is rsvg-convert, else the message says what to install
run 0 report "$tmp"/ln-* "$tmp"/sep-* -o "$page" --figures "$tmp/figures"; says "captions.txt in $tmp/figures"
[ "$(find "$tmp/figures" -name '*.svg' | wc -l)" = "$(grep -o '<figure' "$page" | wc -l)" ] || fail "not a file for each figure"
for f in arms-every-seed-top-1-of-a-linear-probe-on-cls curves-training-loss spectra-spectrum-of-cls microscope-ln-all-other-tokens pictures-ln; do
	grep -qF "<svg xmlns" "$tmp/figures/$f.svg" || fail "no $f.svg: $(ls "$tmp/figures")"
done
has 'Every seed: top‑1 of a linear probe on [CLS]'
if command -v rsvg-convert >/dev/null; then
	run 0 report "$tmp"/ln-* -o "$page" --figures "$tmp/pdf" --format pdf --json; json report figures
	grep -q '%PDF-' <<<"$(head -c 5 "$tmp/pdf/curves-training-loss.pdf")" || fail "no PDF"
	[ -z "$(find "$tmp/pdf" -name '*.svg')" ] || fail "drafts are left"
fi
run 2 report "$tmp"/ln-* -o "$page" --figures "$tmp/pdf" --format gif
run 0 report "$tmp"/ln-* "$tmp"/sep-* -o "$page"

# one seed: the interval is over samples, and these overlap
fake_run "$tmp/a" 'bn <b>&"x"' 0 0.800 20
fake_run "$tmp/b" 'layer:eps=1e-5' 0 0.805 21
run 0 report "$tmp/a" "$tmp/b" -o "$page" --title "<T> & more"; says "$page"; well_formed
has 'No difference'; has 'over 10000 samples'; has '&lt;T&gt; &amp; more'; has 'bn &lt;b&gt;&amp;&quot;x&quot;'; lacks '<b>&'

# other settings are said; a repeated seed does not count
fake_run "$tmp/c" ln 0 0.80 14 8
cp -r "$tmp/c" "$tmp/d"
run 0 report "$tmp/ln-0" "$tmp/c" "$tmp/d" -o "$page"; well_formed; has 'differ in more than their norms (epochs)'; has 'ln, epochs 8'; has 'repeat a seed'

# folders of a study: their paths tell them apart
fake_run "$tmp/s/ln/seed-0/pretrain" ln 0 0.80 14
fake_run "$tmp/s/bn/seed-0/pretrain" bn 0 0.85 15
run 0 report "$tmp"/s/*/seed-*/pretrain -o "$page"; well_formed; has '/s/bn/seed-0/pretrain</span>'; has '</strong> is ahead in these single runs'

# what is missing is said: no probe, no pictures, a run that was killed
rm "$tmp/a/probe.json" "$tmp/a/reconstruction.png" "$tmp/a/spectrum.csv"
echo '{"event":"start","step":0,"seconds":0}' >"$tmp/a/events.jsonl"
run 0 report "$tmp/a" -o "$page"; well_formed; has 'probe.json is missing'; has 'No run has a reconstruction.png'; has 'not finished'; has 'There is one arm only'
rm "$tmp/a/metrics.csv" "$tmp/a/env.json"; echo 'no PNG' >"$tmp/a/reconstruction.png"; echo '[1' >"$tmp/a/probe.json"
run 0 report "$tmp/a" -o "$page"; well_formed; has 'nothing can be compared'; has 'it is not a PNG file'; has 'No run has records'

# the microscope: a run without one has no section, a damaged file is said
run 0 report "$tmp/ln-1" "$tmp/b" -o "$page"; well_formed; has '{"arm":1,"steps":'; lacks '{"arm":2,"steps":'
rm "$tmp/b/microscope.csv"
run 0 report "$tmp/b" -o "$page"; well_formed; lacks 'The norms over time'
printf 'step,site,group,in_var\n1,a,tokens,1\n2,a<b,tokens,1\n' >"$tmp/b/microscope.csv"
run 0 report "$tmp/b" -o "$page"; well_formed; has 'The norms over time'; has 'line 3 is not a record'; lacks '"sites"'
# a study: unfinished, with a failed run, markup in names, published numbers, tuning, an analysis
fake_study "$tmp/study"
run 0 report "$tmp/study" -o "$page" --json; json report; silent; well_formed
has 'A &lt;made-up&gt; study &amp; its report'; has 'What is &lt;b&gt;ahead&lt;/b&gt;?'; has '&lt;/script&gt;&lt;b&gt;&amp;x'; lacks '<b>&x'; lacks '</script><b>'
has '<strong class="plan">BN+LN</strong> has the highest top‑1 on [CLS] (probe): 83.05 ± 0.64'; has '+4.00 ± 0'; has 'p (Wilcoxon)'
has 'The study is not finished: 5 of 6 runs are done'; has 'seed 1 failed: no &lt;memory&gt; left'
has 'Table &lt;1&gt; of a paper'; has 'ViT-B, 4000 epochs'; has '92.01 ± 0.3'; has '93.5 ?'; has '1 of 1 pairs of arms are in the published order'
lacks 'against FLOPs'; has 'against time'; has 'Uniformity of [CLS] against top‑1'
has '(an end of the list)'; has 'Learning curves'; has 'Spectrum of [CLS]'; has 'Trustworthiness 0.970'; has '>cat<'; has '>&lt;dog&gt;<'; has 'hold 80.0 %'; has 'Mean attention distance: BN+LN'
has 'Similarity of layers (CKA): LN'; has 'λ of dynamic token normalization, of the mean: LN'; has 'Uniformity of [CLS] by layer'; has 'Gradient by block'
has 'norma pretrain &quot;--norm=sep(bn,ln)&quot; --seed=1'; has "norma study $tmp/study/study.yaml"; has 'some CPU'; has '0123456789abcdef'
has 'arXiv:1607.06450'; has 'arXiv:2309.12931'; has 'arXiv:1910.07467'; has 'CITATION.cff'
[ "$(grep -o '<img ' "$page" | wc -l)" = 3 ] || fail "not one picture for each arm"

# damaged and missing files of a study become notes; a table.json stands in for what cannot be read
rm "$tmp/study/BN+LN/seed-0/pretrain/config.yaml" "$tmp/study/LN/seed-1/analyze/map.csv"
echo '{' >"$tmp/study/LN/seed-0/analyze/analysis.json"; echo '{' >"$tmp/study/table.json"; printf 'x' >"$tmp/study/tune/sensitivity.csv"
run 0 report "$tmp/study" -o "$page"; well_formed; has 'config.yaml'; has 'seed-0/pretrain: cannot read'; has 'sensitivity.csv'
echo '{' >"$tmp/study/LN/seed-0/probe.json"
run 1 report "$tmp/study" -o "$page"; complains 'probe.json'; one_line
cat >"$tmp/study/table.json" <<-'EOF'
	{"title": "kept", "question": "", "baseline": "LN", "seeds": [0, 1], "stages": [{"name": "pretrain", "command": "pretrain"}], "metrics": ["pretrain.eval_loss", 3],
	 "arms": [{"name": "LN", "folder": "LN", "metrics": {"pretrain.eval_loss": {"n": 2, "mean": 0.5}}}]}
EOF
run 1 report "$tmp/study" -o "$page"; one_line
sed -i 's/, 3\]/]/' "$tmp/study/table.json"
run 0 report "$tmp/study" -o "$page"; well_formed; has 'come from table.json'; has '<h1>kept</h1>'
echo 'stages: 3' >"$tmp/study/study.yaml"; run 0 report "$tmp/study" -o "$page"; well_formed
sed -i 's|"folder": "LN"|"folder": "../LN"|' "$tmp/study/table.json"; run 1 report "$tmp/study" -o "$page"; complains study.yaml; one_line
run 1 report "$tmp/study" "$tmp/c" -o "$page"; complains 'it is a study'; one_line

# wrong arguments
run 2 report; complains "at least one run"; one_line
run 1 report "$tmp/none"; complains "config.yaml"; one_line
run 1 report "$tmp/c" "$tmp/./c"; complains "given twice"; one_line
run 1 report "$tmp/c" -o "$tmp/none/x.html"; complains "x.html"; one_line
[ ! -e report.html ] || fail "a page was left behind"

# a training as it is
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up_mnist 80 40
for norm in ln bn; do
	run 0 train --data mnist --model vit_nano:dim=16,depth=1,heads=1,patch=14 --norm $norm --batch 16 --epochs 2 --log-every 1 --out "$tmp/t-$norm" --json
done
run 0 report "$tmp/t-ln" "$tmp/t-bn" -o "$page"; well_formed; has 'Held-out top-1'; has 'held-out top'; has 'each sees one batch of 16 samples'
run 0 analyze "$tmp/t-ln/model.safetensors" --data mnist --samples 16 --only layers,map,attention --out "$tmp/t-ln/analyze"
run 0 report "$tmp/t-ln" "$tmp/t-bn" -o "$page"; well_formed; has 'Uniformity of [CLS] by layer'; has 't-SNE of [CLS]'; has 'Mean attention distance'
exit "$failed"
