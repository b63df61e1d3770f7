#!/bin/bash
# Optimizers and schedules: the page is what the registries say, and a training knows all of them.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc

run 0 optimizers --markdown; silent
diff "$tmp/out" docs/optimizers.md >"$tmp/diff" ||
	fail "docs/optimizers.md is not what the registries say; renew it with: build/bin/norma optimizers --markdown >docs/optimizers.md
$(head -20 "$tmp/diff")"
run 2 optimizers adam; complains "takes no names"

made_up_mnist 40 10
model=vit_nano:dim=8,depth=1,heads=1,patch=14
short=(train --data mnist --model "$model" --batch 20 --steps 2)
run 0 optimizers
names() { awk -v head="$1" '$1 == head { on = 1; next } !NF { on = 0 } on { print $1 }' <<<"$list"; }
list=$out
[[ $(names optimizer | wc -l) -ge 6 && $(names schedule | wc -l) -ge 6 ]] || fail "the lists are short: $list"
for o in $(names optimizer); do run 0 "${short[@]}" --optimizer "$o" --out "$tmp/o-$o"; done
for s in $(names schedule); do run 0 "${short[@]}" --schedule "$s" --milestones 1 --out "$tmp/s-$s"; done
rate() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "lr") c = i } $c != "" { v = $c } END { print v }' "$tmp/$1/metrics.csv"; }
[[ $(rate s-constant) = 0.001 && $(rate s-step) = 0.0001 ]] || fail "rates $(rate s-constant), $(rate s-step)"
run 2 "${short[@]}" --schedule step --out "$tmp/none"; complains "it needs milestones"
run 2 "${short[@]}" --optimizer lars-tim --out "$tmp/none"; complains "did you mean 'lars-timm'?"
exit "$failed"
