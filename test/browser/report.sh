#!/bin/bash
# The page of norma report in a browser: no error on the console, every picture decoded, every drawing with a box, no text of a
# drawing over another, no scrolling sideways, hovering and hiding work; light, dark and as wide as a phone.
# Usage: test/browser/report.sh [FOLDER for screenshots]. NORMA is the command, CHROMIUM the browser. Exit 77, "skipped", without one.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/../cli/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$browser" ] || { echo "skipped: chromium is not here (scripts/setup --dev)" >&2; exit 77; }
shots=${1:-}
[ -z "$shots" ] || { mkdir -p "$shots"; shots=$(realpath "$shots"); }

# browse PAGE WIDTH light|dark ARG...: one visit with a profile of its own
browse() {
	local page=$1 width=$2 scheme=1
	[ "$3" = light ] || scheme=0
	shift 3
	timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking \
		--user-data-dir="$tmp/profile" --hide-scrollbars --window-size="$width,900" --blink-settings="preferredColorScheme=$scheme" \
		--enable-logging=stderr "$@" "file://$page" 2>"$tmp/browser.log"
}

# The checks run inside the page and leave their findings as an attribute of the root.
cat >"$tmp/check.js" <<'EOF'
addEventListener('load', () => {
	const bad = [], root = document.documentElement, box = e => e.getBoundingClientRect();
	for (const i of document.images) if (!(i.naturalWidth > 0)) bad.push('a picture is not decoded');
	for (const s of document.querySelectorAll('svg')) if (!(box(s).width > 0 && box(s).height > 0)) bad.push('a drawing has no box');
	if (!document.querySelectorAll('svg.chart').length) bad.push('no chart');
	if (root.scrollWidth > root.clientWidth) bad.push('scrolls sideways: ' + root.scrollWidth + ' of ' + root.clientWidth);
	for (const s of document.querySelectorAll('svg.chart')) {
		const texts = [...s.querySelectorAll('text')];
		texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
			const p = box(a), q = box(b), x = Math.min(p.right, q.right) - Math.max(p.left, q.left),
				y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
			if (x > 1 && y > 3) bad.push('texts overlap: ' + a.textContent + ' / ' + b.textContent);
		}));
		for (const t of texts) if (box(t).left < -1 || box(t).right > innerWidth + 1) bad.push('a text leaves the page: ' + t.textContent);
	}
	const chart = document.querySelector('svg.chart'), b = box(chart), tip = chart.parentNode.querySelector('.tip');
	chart.dispatchEvent(new PointerEvent('pointermove', { clientX: b.left + b.width / 2, clientY: b.top + b.height / 2 }));
	if (!tip || tip.hidden || !/\d/.test(tip.textContent)) bad.push('hovering shows nothing');
	chart.dispatchEvent(new PointerEvent('pointerleave'));
	if (!tip.hidden) bad.push('the tip stays');
	const entry = document.querySelector('.legend li'), line = document.querySelector('svg.chart g[data-arm="' + entry.dataset.arm + '"]');
	entry.click();
	if (box(line).width) bad.push('the legend hides nothing');
	entry.click();
	if (!box(line).width) bad.push('the legend does not bring it back');
	const scope = document.querySelector('#microscope'), [what, when] = scope.querySelectorAll('select, input');
	const drawn = () => scope.querySelector('svg.chart .bold').getAttribute('d'), last = drawn();
	if (!scope.querySelector('.maps svg')) bad.push('no heat map');
	when.value = 0;
	when.dispatchEvent(new Event('input'));
	if (drawn() === last || !/step 30\b/.test(scope.querySelector('output').textContent)) bad.push('the slider moves nothing');
	what.value = what.options.length - 1;
	what.dispatchEvent(new Event('input'));
	if (!/not measured/.test(scope.textContent)) bad.push('the statistic does not change');
	const light = getComputedStyle(document.body).backgroundColor.match(/\d+/g).reduce((a, v) => a + +v, 0) > 382;
	const found = [innerWidth, light ? 'light' : 'dark', bad.length ? [...new Set(bad)].join('; ') : 'fine'].join('|');
	if (parent === window) root.setAttribute('data-found', found);
	else parent.postMessage(found, '*');
});
EOF
# The page with more script at its end.
with_script() { awk -v file="$2" '/^<\/body>/ { print "<script>"; while ((getline line < file) > 0) print line; print "</script>" } { print }' "$1"; }

visit() { # NAME WIDTH SCHEME
	ran="$1, $3, $2 px"
	with_script "$tmp/$1.html" "$tmp/check.js" >"$tmp/checked.html"
	local found page=$tmp/checked.html
	if [ "$2" -lt 500 ]; then # narrower than a window can be: in a frame, which reports to the window
		page=$tmp/frame.html
		printf '<iframe width="%s" height="900" style="border:0" src="checked.html"></iframe>\n' "$2" >"$page"
		echo "<script>onmessage = e => document.documentElement.setAttribute('data-found', e.data)</script>" >>"$page"
	fi
	found=$(browse "$page" "$2" "$3" --virtual-time-budget=3000 --dump-dom | sed -n 's/.*data-found="\([^"]*\)".*/\1/p' | head -n 1) || true
	[ "$found" = "$2|$3|fine" ] || fail "found '$found'"
	! grep -i 'CONSOLE' "$tmp/browser.log" >&2 || fail "the console has messages"
	[ -z "$shots" ] || browse "$tmp/$1.html" "$2" "$3" --window-size="$2,$(($2 < 600 ? 8000 : 4600))" --screenshot="$shots/$1-$2-$3.png" || fail "no screenshot"
}

for s in 0 1 2; do
	fake_run "$tmp/ln-$s" ln $s 0.79$s 14
	fake_run "$tmp/sep-$s" 'sep(bn,ln)' $s 0.83$s 41
done
fake_run "$tmp/long" 'blocks[0:6].*=dtn:lam=0.5 mlp.in=sep(bn,ln) placement=sandwich <b>&"x"' 0 0.80 20
fake_run "$tmp/rms" rms 0 0.81 21
for k in 1 2 3 4 5 6 7 8 9; do fake_run "$tmp/many-$k" "group:groups=$k" 0 0.8$k $((10 + k)); done
run 0 report "$tmp"/ln-* "$tmp"/sep-* -o "$tmp/seeds.html"
run 0 report "$tmp/long" "$tmp/rms" -o "$tmp/long.html"
run 0 report "$tmp"/many-* -o "$tmp/many.html"

# the check itself: an error on the console and a picture that is none are found
ran="a page with faults"
echo 'console.error("on purpose"); document.querySelector("img").src = "data:image/png;base64,AAAA";' | cat - "$tmp/check.js" >"$tmp/faults.js"
with_script "$tmp/seeds.html" "$tmp/faults.js" >"$tmp/faults.html"
browse "$tmp/faults.html" 1200 light --dump-dom | grep -q 'not decoded' || fail "a broken picture is not noticed"
grep -q 'on purpose' "$tmp/browser.log" || fail "a message on the console is not noticed"

for page in seeds long many; do
	visit $page 1200 light
	visit $page 1200 dark
	visit $page 390 light
done
[ "$failed" = 0 ] && echo "three pages, three looks: fine"
exit "$failed"
