#!/bin/bash
# The live pages in a browser: see serve.mjs and browser.inc. Usage: test/browser/serve.sh [FOLDER for screenshots]. NORMA is the
# command.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
# shellcheck source=test/cli/serve.inc
. test/cli/serve.inc
# shellcheck source=test/browser/browser.inc
. test/browser/browser.inc
shots=${1:-}
[ -z "$shots" ] || { mkdir -p "$shots"; shots=$(realpath "$shots"); }

fake_run "$tmp/runs/live" ln 0 0.79 14
fake_run "$tmp/runs/other" 'sep(bn,ln)' 0 0.80 14
live_study "$tmp/runs/study"
sed -i '$d' "$tmp/runs/live/metrics.csv"        # the half line
serve "$tmp/runs"
ran="the pages in a browser"
NORMA_NODE_MODULES=$modules/node_modules NORMA_BROWSER=$browser node test/browser/serve.mjs "$url" "$tmp/runs/live" ${shots:+"$shots"} || fail "see above"
serve_end TERM
exit "$failed"
