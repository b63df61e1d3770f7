#!/bin/bash
# The live pages in a browser: see serve.mjs. Usage: test/browser/serve.sh [FOLDER for screenshots]. NORMA is the command,
# NORMA_NODE_MODULES a folder with playwright-core. Exit 77, "skipped", without node, playwright-core or a browser.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
# shellcheck source=test/cli/serve.inc
. test/cli/serve.inc
shots=${1:-}
[ -z "$shots" ] || { mkdir -p "$shots"; shots=$(realpath "$shots"); }
command -v node >/dev/null || { echo "skipped: node is not here (scripts/setup --dev)" >&2; exit 77; }
[ -n "${NORMA_BROWSER:-}" ] || command -v chromium >/dev/null || { echo "skipped: chromium is not here (scripts/setup --dev)" >&2; exit 77; }
[ -d "${NORMA_NODE_MODULES:-test/browser/node_modules}/playwright-core" ] ||
	{ echo "skipped: playwright-core is not here (npm install playwright-core; NORMA_NODE_MODULES)" >&2; exit 77; }

fake_run "$tmp/runs/live" ln 0 0.79 14
fake_run "$tmp/runs/other" 'sep(bn,ln)' 0 0.80 14
fake_study "$tmp/runs/study"
sed -i '$d' "$tmp/runs/live/metrics.csv"        # the half line
serve "$tmp/runs"
ran="the pages in a browser"
node test/browser/serve.mjs "$url" "$tmp/runs/live" ${shots:+"$shots"} || fail "see above"
serve_end TERM
exit "$failed"
