#!/bin/bash
# norma serve: pages, events while files grow, and requests that must be refused or harmless.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
# shellcheck source=test/cli/fake_runs.inc
. test/cli/fake_runs.inc
# shellcheck source=test/cli/serve.inc
. test/cli/serve.inc
command -v curl >/dev/null || { echo "skipped: curl is not here" >&2; exit 77; }

# ---- wrong arguments
run 1 serve "$tmp/none"; complains "no such folder"; one_line
run 2 serve "$tmp" --port 65536; complains "port"
(cd "$tmp" && "$NORMA" serve 2>err || echo $? >code) || true
if [ "$(cat "$tmp/code")" != 2 ] || ! grep -q 'norma serve DIR' "$tmp/err"; then fail "without runs/: $(cat "$tmp/err")"; fi

# ---- a server
fake_run "$tmp/runs/live" 'sep(bn,ln) <b>' 0 0.79 14
fake_run "$tmp/runs/a b%25" ln 1 0.79 14               # a name that no request could give
fake_run "$tmp/runs/a b" ln 1 0.79 14
fake_run "$tmp/runs/vanishing" ln 2 0.79 14
live_study "$tmp/runs/deep/study"
mkdir -p "$tmp/runs/broken"
echo 'norm: ln' >"$tmp/runs/broken/config.yaml"
printf '\000\377{' | tee "$tmp/runs/broken/metrics.csv" "$tmp/runs/broken/events.jsonl" >"$tmp/runs/broken/env.json"
printf '{broken\n\n[1' >"$tmp/runs/broken/events.jsonl"
mkdir -p "$tmp/runs/bad-study"
printf 'arms: [[[\n' >"$tmp/runs/bad-study/study.yaml"
ln -s "$tmp/runs" "$tmp/runs/circle"
serve "$tmp/runs"
grep -q '"runs":8,"studies":2' "$tmp/serve.out" || fail "other runs: $(cat "$tmp/serve.out")"
[ "$(ps -o ni= -p "$server" | tr -d ' ')" = 19 ] || fail "not at the lowest priority"

# get CODE PATH [ARG...]: this status; the body is in $page, its headers in $head
get() {
	local want=$1 path=$2 code
	shift 2
	ran="GET $path $*"
	code=$(curl -s -m 300 --path-as-is -o "$tmp/page" -D "$tmp/head" -w '%{http_code}' "$@" "${url%/}$path") || true
	page=$(tr -d '\0' <"$tmp/page") head=$(tr -d '\r' <"$tmp/head")
	[ "$code" = "$want" ] || fail "status $code, not $want"
}
has() { grep -qF -- "$1" <<<"$page" || fail "the page lacks '$1'"; }
lacks() { ! grep -qF -- "$1" <<<"$page" || fail "the page has '$1'"; }
sends() { grep -qiF -- "$1" <<<"$head" || fail "the headers lack '$1': $head"; }

# ---- slow and silent clients: the others do not notice, and they are closed while all that follows goes on
trap '' PIPE
exec {dripping}<>"/dev/tcp/127.0.0.1/$port" {silent}<>"/dev/tcp/127.0.0.1/$port" {another}<>"/dev/tcp/127.0.0.1/$port"
printf 'GET / HTTP/1.1\r\nHost: loc' >&"$dripping"
exec {deaf}<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /events/live HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' "$port" >&"$deaf"     # reads nothing
drip() { # a header, until nobody listens
	local i
	for ((i = 0; i < 3000; i++)); do
		{ printf 'X' >&"$dripping"; } 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}
drip &
drip=$!

# ---- pages
get 200 /; has '/run/live'; has '/run/a%20b'; has '/study/deep/study'; has 'sep(bn,ln) &lt;b&gt;'; has 'not finished since'; lacks 'a b%25'; lacks '<script>'
sends "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'"; sends "frame-ancestors 'none'"
sends 'x-content-type-options: nosniff'; sends 'referrer-policy: no-referrer'; sends 'cache-control: no-store'
! grep -qi 'set-cookie\|unsafe-inline\|access-control-allow' <<<"$head" || fail "cookies or a weak policy: $head"
has '<span data-headline="live">'; has 'held-out'                    # a column of the metric that decides
get 200 /run/live; has 'data-name="live"'; has 'made-up'; has 'step 1200'; has 'The norms now'; has 'id="smooth"'; lacks '<script>'
[[ $(<"$tmp/page") == *'id="charts"'*'id="after"'*'The norms now'* ]] || fail "the norms come before the accuracy"
get 200 /run/a%20b; has 'data-name="a b"'
get 200 /study/deep/study; has 'a norm of its own'; has 'does it &lt;help&gt;?'; has '80.00'; has '± 1.20'; has '+10.00'; has 'top‑1 (knn)'; has 'out of &lt;luck&gt;'
has 'started, not finished'; has '/run/deep/study/sep_bn_ln/seed-0/train'; has 'one run &lt;failed&gt;'; has '6 of 8 stages done, 1 failed'
get 200 /run/deep/study/ln/seed-0/train; has 'href="/study/deep/study"'
get 200 /run/broken; has 'cannot be read'
get 200 /study/bad-study; has 'study.yaml'
get 200 /data/live; has '"columns":["step"'; has '"title":"Training loss"'; has '"noisy":true,"rank":3'; has 'odd<col>'; sends 'application/json'
command -v python3 >/dev/null && { python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/page" || fail "no JSON"; }
get 200 /data/deep/study; has '"label":"sep(bn,ln)"'; has '"seed":1'
get 200 /data/broken
get 200 /report/live; has 'What one norm plan learned'; sends "script-src 'sha256-"; ! grep -qi 'unsafe-inline' <<<"$head" || fail "a weak policy"
get 200 /report/deep/study; has '<h1>a norm of its own</h1>'
get 200 /report/broken; has 'metrics.csv'
for f in report.css uplot.css live.css uplot.js live.js; do get 200 /$f; sends 'nosniff'; done
get 204 /favicon.ico
get 200 / -I; sends 'content-length'
get 200 /run/live --head; get 200 /events/live --head; sends 'text/event-stream'

# ---- refused
get 403 / -H 'Host: evil.example'; get 403 / -H "Host: evil.example:$port"; get 403 / -H 'Host: localhost'; get 403 / -H "Host: localhost.evil.example:$port"
get 403 / -H "Host: 127.0.0.1:1$port"; get 403 /events -H 'Host: [::1]'; get 200 / -H "Host: LocalHost:$port"; get 200 / -H "Host: [::1]:$port"
get 403 /events/live -H 'Origin: http://evil.example'; get 403 /events/live -H 'Origin: null'; get 403 /data/live -H 'Sec-Fetch-Site: cross-site'
get 200 /data/live -H "Origin: http://127.0.0.1:$port"
for way in POST PUT DELETE PATCH OPTIONS; do get 405 / -X $way; sends 'allow: GET, HEAD'; done
get 405 /run/live -d 'x=1'
for path in /run/../../etc/passwd /run/%2e%2e/%2e%2e/etc/passwd /run/live/.. /../etc/passwd /run/live%00 '/run/li%5cve' '/run\live' /run//live /run/%zz /run/%ff \
	/run/live/%2E%2e/live; do
	get 400 "$path"; lacks 'root:'
done
for path in /etc/passwd /run/live/metrics.csv /run/live/config.yaml /run/nope /study/live /run/deep/study /data/nope /report/nope /events/nope /runx \
	/live.js/x "/run$tmp/runs/live" '/run/a%20b%2525' /run/; do
	case $path in /run/) get 400 "$path" ;; *) get 404 "$path" ;; esac
done
get 431 / -H "X: $(head -c 30000 /dev/zero | tr '\0' x)"
get 414 "/$(head -c 30000 /dev/zero | tr '\0' x)"
get 400 "/run/$(head -c 3000 /dev/zero | tr '\0' x)"

# ---- events while files grow
# holds FILE TEXT: waits until the file has it
holds() { await grep -qse "$2" "$1"; }
stream() { # FILE PATH [ARG...]: a viewer in the background
	local file=$1 path=$2
	shift 2
	curl -sN -m 900 "$@" "$url$path" >"$file" &
	viewers+=($!)
}
viewers=()
mark() { get 200 /data/live; sed -n 's/^{"mark":"\([^"]*\)".*/\1/p' <<<"$page"; }
stream "$tmp/shorter" "events/live?since=$(mark)"
holds "$tmp/shorter" retry:
sed -i '$d' "$tmp/runs/live/metrics.csv"        # the half line: the file became shorter
holds "$tmp/shorter" 'event: reload'
mark=$(mark)
ran="the streams"
stream "$tmp/stream" "events/live?since=$mark"
stream "$tmp/list" events
holds "$tmp/stream" 'retry:\|reload'
holds "$tmp/list" reload
printf '1301,5.1,90,0.25,nan,,,,,,\n13' >>"$tmp/runs/live/metrics.csv"
holds "$tmp/stream" '{"name":"live","rows":\[\[1301,5.1,90,0.25,null,null,null,null,null,null,null\]\]}'
printf '02,5.2,91,0.5,,,,,,,\n' >>"$tmp/runs/live/metrics.csv"         # the rest of the line
holds "$tmp/stream" '\[1302,5.2,91,0.5,'
holds "$tmp/stream" '"text":"step 1302, epoch 5.20'
holds "$tmp/list" '"name":"live","state".*step 1302'
! grep -q '^event: rows' "$tmp/list" || fail "rows in the list"
sed -i '$d' "$tmp/runs/live/metrics.csv"        # cut, as a resume does
holds "$tmp/stream" 'event: reload'
# who comes back gets what was missed, or is told to begin anew
ran="a viewer that comes back"
last=$(sed -n 's/^id: //p' "$tmp/stream" | sed -n 1p) next=$(sed -n 's/^id: //p' "$tmp/stream" | sed -n 2p)
stream "$tmp/again" events/live -H "Last-Event-ID: $last"
holds "$tmp/again" '^event'
[ "$(sed -n 's/^id: //p' "$tmp/again" | sed -n 1p)" = "$next" ] || fail "not the next event: $(head -n 5 "$tmp/again")"
stream "$tmp/old" events/live -H 'Last-Event-ID: 1.1'
holds "$tmp/old" '^event: reload'

# ---- folders that come and go
fake_run "$tmp/runs/newcomer" ln 3 0.79 14
rm -r "$tmp/runs/vanishing"
# shows PATH TEXT: whether the page has it by now
# shellcheck disable=SC2317 # `await` calls it
shows() { get 200 "$1"; grep -qF "$2" <<<"$page"; }
await shows / '/run/newcomer'
await shows /run/vanishing 'folder is gone'
get 404 /report/vanishing; has 'config.yaml'
get 200 /data/vanishing

# ---- the slow and silent clients of the beginning were closed
ran="slow clients"
wait "$drip" || fail "a dripping client is kept"
timeout 300 cat <&"$silent" >"$tmp/nothing" || fail "a silent client is kept"
timeout 300 cat <&"$another" >"$tmp/nothing" || fail "another silent client is kept"
get 200 /run/live

# ---- the end: with viewers
serve_end INT
for v in "${viewers[@]}"; do wait "$v" || fail "a viewer's stream did not end well"; done

# ---- the token: the printed address lets in, once; then a cookie does; nothing else
ran="norma serve" code=0
"$NORMA" serve "$tmp/runs" --port 0 --json >"$tmp/token.out" 2>"$tmp/serve.err" &
server=$!
await [ -s "$tmp/token.out" ]
with=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$tmp/token.out")
url=${with%%\?*} port=${with%%/\?*} port=${port##*:} token=${with##*=}
[ "${#token}" = 32 ] || fail "no token of 32 digits in '$with'"
for path in / /run/live /data/live /live.js /nosuch; do get 403 "$path"; lacks 'made-up'; done
has 'ends with a token'
get 403 "/?token=${token%?}x"
get 403 /run/live -b "norma-$port=${token%?}x"
get 303 "/run/live?token=$token"; sends "set-cookie: norma-$port=$token; Path=/; HttpOnly; SameSite=Lax"; sends 'location: /run/live'
get 303 "//evil.example/?token=$token"; ! grep -qi 'location: //' <<<"$head" || fail "it leads elsewhere: $head"
get 200 /run/live -b "norma-$port=$token"; has 'made-up'; ! grep -qi set-cookie <<<"$head" || fail "a cookie again"
if curl -s -m 60 -o /dev/null "http://[::1]:$port/" 2>/dev/null; then
	url="http://[::1]:$port/"
	get 403 /
	get 200 / -b "norma-$port=$token"
fi
serve_end TERM
run 2 serve "$tmp/runs" --host 127.0.0.1 --no-token; complains '--host needs the token'; one_line
run 2 serve "$tmp/runs" --host nosuch; complains 'it is not an address'; one_line
ran="norma serve --host"
rm -f "$tmp/token.out"
"$NORMA" serve "$tmp/runs" --port 0 --json --host 127.0.0.1 >"$tmp/token.out" 2>"$tmp/serve.err" &
server=$!
await [ -s "$tmp/token.out" ]
grep -q 'nothing is encrypted' "$tmp/serve.err" || fail "it is not said: $(cat "$tmp/serve.err")"
: >"$tmp/serve.err"
with=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$tmp/token.out")
url=${with%%\?*} port=${with%%/\?*} port=${port##*:} token=${with##*=}
get 403 / -H 'Host: some.machine:1'
get 200 / -H 'Host: some.machine:1' -b "norma-$port=$token"
get 403 / -H 'Host: some.machine:1' -H 'Origin: http://evil.example' -b "norma-$port=$token"
serve_end TERM
exit "$failed"
