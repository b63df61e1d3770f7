#!/bin/bash
# The pages of norma report in a browser: see report.mjs. Made-up runs, made-up studies and, if folders are named, those too.
# Usage: test/browser/report.sh [SHOTS [STUDY...]]; SHOTS: folder for screenshots and PDFs. NORMA is the command, CHROMIUM the browser,
# NORMA_BROWSER the folder that playwright-core is kept in (build/browser). Exit 77, "skipped", without a browser, node or the package.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
# shellcheck source=test/browser/browser.inc
. test/browser/browser.inc
shots=${1:-}
[ -z "$shots" ] || { mkdir -p "$shots"; shots=$(realpath "$shots"); }
[ $# -lt 1 ] || shift

for s in 0 1 2; do
	fake_run "$tmp/ln-$s" ln $s 0.79$s 14
	fake_run "$tmp/sep-$s" 'sep(bn,ln)' $s 0.83$s 41
done
fake_run "$tmp/long" 'blocks[0:6].*=dtn:lam=0.5 mlp.in=sep(bn,ln) placement=sandwich <b>&"x"' 0 0.80 20
fake_run "$tmp/rms" rms 0 0.81 21
for k in 1 2 3 4 5 6 7 8 9; do fake_run "$tmp/many-$k" "group:groups=$k" 0 0.8$k $((10 + k)); done
fake_study "$tmp/study"
run 0 report "$tmp"/ln-* "$tmp"/sep-* -o "$tmp/seeds.html"
fake_predictions "$tmp/ln-0" 0.4
fake_predictions "$tmp/sep-0" 0.1
run 0 report "$tmp/ln-0" "$tmp/sep-0" -o "$tmp/graphs.html"
run 0 report "$tmp/long" "$tmp/rms" -o "$tmp/long.html"
run 0 report "$tmp"/many-* -o "$tmp/many.html"
run 0 report "$tmp/study" -o "$tmp/study.html"
pages=(seeds graphs long many study)
for folder in "$@"; do
	run 0 report "$folder" -o "$tmp/$(basename "$folder").html"
	pages+=("$(basename "$folder")")
done

# the check itself: a message, a picture that is none and a request are found
sed 's|^</body>|<script>console.error("on purpose");const i=new Image();i.src="data:image/png;base64,AAAA";document.body.append(i);</script><img alt="x" src="http://127.0.0.1:9/x.png"/></body>|' "$tmp/seeds.html" |
	sed 's/img-src data:/img-src data: http:/' >"$tmp/faulty.html"

files=()
for page in "${pages[@]}" faulty; do files+=("$tmp/$page.html"); done
node test/browser/report.mjs "$modules" "$browser" "$shots" "${files[@]}" || failed=1
exit "$failed"
