#!/bin/bash
# Training on several hosts: two network namespaces with addresses and names of their own, joined by a veth pair. The bits are those of one
# process; latency and loss (netem, or test/crash/link.c where the kernel lacks it) change none; a cut link and a killed rank end the run with a message that
# names rank and host. Needs root; exit code 77 without.
# names without spaces, commas of options, the trap
# shellcheck disable=SC2086,SC2054,SC2317,SC2115
set -euo pipefail
cd "$(dirname "$0")/../.."
NORMA=$(realpath "${NORMA:-build/bin/norma}")
tmp=$(mktemp -d)
a=nrm$$a b=nrm$$b
finish() {
	[ -z "${launcher:-}" ] || kill -9 "$launcher" 2>/dev/null || true
	[ -z "${line:-}" ] || kill "$line" 2>/dev/null || true
	for n in $a $b; do
		ip netns pids $n 2>/dev/null | xargs -r kill -9 2>/dev/null || true
		ip netns del $n 2>/dev/null || true
	done
	rm -rf "$tmp"
}
trap finish EXIT
if [ "$(id -u)" != 0 ] || ! command -v mpirun >/dev/null || ! ip netns add $a 2>/dev/null; then
	echo "skipped: network namespaces need root, ip and mpirun" >&2
	exit 77
fi
ip netns add $b
ip link add ${a}0 type veth peer name ${b}0
address=1
for n in $a $b; do
	ip link set ${n}0 netns $n
	ip -n $n addr add 10.231.77.$address/24 dev ${n}0
	ip -n $n link set ${n}0 up
	ip -n $n link set lo up
	address=$((address + 1))
done
# what mpirun starts on the other host: in its namespace, under its name
cat >"$tmp/agent" <<-END
	#!/bin/bash
	shift
	exec ip netns exec $b unshare --uts bash -c 'hostname host-b; exec bash -c "\$0"' "\$*"
END
cat >"$tmp/here" <<-END
	#!/bin/bash
	exec ip netns exec $a unshare --uts bash -c 'hostname host-a; exec "\$@"' host-a "\$@"
END
chmod +x "$tmp/agent" "$tmp/here"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NORMA_DATA=$tmp/data TMPDIR=$tmp OMP_NUM_THREADS=1
net() { # FIRST-THREE-NUMBERS: two ranks whose words go over that network, in $hosts
	hosts=("$tmp/here" mpirun --mca plm_rsh_agent "$tmp/agent" --mca btl self,tcp --mca btl_tcp_if_include "$1.0/24"
		--mca oob_tcp_if_include "$1.0/24" --mca hwloc_base_binding_policy none -H "$1.1:1,$1.2:1" -n 2 -x NORMA_DATA -x OMP_NUM_THREADS)
}
net 10.231.77
failed=0
fail() { echo "$1: $(cat "$tmp/out" "$tmp/err")" >&2; failed=1; }
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
made_up "$tmp/data/mnist" train 160
made_up "$tmp/data/mnist" t10k 20
train=("$NORMA" train --data mnist --model vit_nano:dim=48,depth=2,heads=3,patch=7,dropout=0.1 --norm "sep(batch:sync=1,ln)" --batch 16 --shards 2)
want() { bits "$1/model.safetensors"; }

"${train[@]}" --epochs 2 --out "$tmp/alone" >"$tmp/out" 2>"$tmp/err" || fail "alone"
one=$(want "$tmp/alone")
over() { # NAME
	"${hosts[@]}" "${train[@]}" --epochs 2 --out "$tmp/$1" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "$1"
	[ "$(want "$tmp/$1")" = "$one" ] || fail "$1: other bits than one process"
	echo "$1: the bits of one process"
}
over two-hosts
grep -q "ranks             2 on host-a, host-b" "$tmp/out" || fail "the header does not name both hosts"
endless() { # NAME ARG...
	rm -rf "$tmp/$1"
	"${hosts[@]}" "${train[@]}" --steps 10000000 --eval-every 0 --log-every 1 --checkpoint-steps 1 --out "$tmp/$1" "${@:2}" >"$tmp/out" 2>"$tmp/err" </dev/null &
	launcher=$!
	for ((i = 0; i < 1200; i++)); do
		if [ -f "$tmp/$1/metrics.csv" ] && [ "$(wc -l <"$tmp/$1/metrics.csv")" -ge 8 ]; then return 0; fi
		sleep 0.1
	done
	fail "$1: it does not start"
}
ended() { # NAME SECONDS
	for ((i = 0; i < $2 * 10; i++)); do
		kill -0 "$launcher" 2>/dev/null || break
		sleep 0.1
	done
	if kill -0 "$launcher" 2>/dev/null; then fail "$1: still there after $2 s"; else wait "$launcher" && fail "$1: it ended with success"; fi
	launcher=
	"$NORMA" inspect "$tmp/$1/last.safetensors" >/dev/null || fail "$1: the checkpoint is damaged"
}
ranks() { for p in $(ip netns pids $a) $(ip netns pids $b); do [ "$(readlink "/proc/$p/exe")" != "$NORMA" ] || echo "$p"; done; }
silence() { # NAME LIMIT: the ranks end by themselves; mpirun waits for the daemon of the other host
	for ((i = 0; i < 900; i++)); do
		! grep -q "rank 0 on host-a has waited $2 s for rank 1 on host-b" "$tmp/err" || break
		sleep 0.1
	done
	echo "$1: $(grep -hE "has waited" "$tmp/err" | sed -n 1p)"
	[ $i -lt 900 ] || fail "$1: no clear error"
	for ((i = 0; i < 900; i++)); do
		[ -n "$(ranks)" ] || break
		sleep 0.1
	done
	[ -z "$(ranks)" ] || fail "$1: a rank is still there"
	kill -9 "$launcher" 2>/dev/null || true
	launcher=
	for n in $a $b; do ip netns pids $n 2>/dev/null | grep -vx "${line:-0}" | xargs -r kill -9 2>/dev/null || true; done
	"$NORMA" inspect "$tmp/$1/last.safetensors" >/dev/null || fail "$1: the checkpoint is damaged"
}
if ip netns exec $a tc qdisc add dev ${a}0 root netem delay 5ms loss 0.5% 2>/dev/null; then
	over "latency and loss (netem)"
	ip netns exec $a tc qdisc del dev ${a}0 root
fi
wire=${NORMA_LINK:-build/test/crash-link}
if [ -x "$wire" ] && [ -e /dev/net/tun ]; then          # 10 ms there and back, one packet of 200 lost
	"$wire" $a 10.231.78.1/24 $b 10.231.78.2/24 5 5 >"$tmp/line" 2>&1 &
	line=$!
	for ((i = 0; i < 600; i++)); do ! grep -q up "$tmp/line" || break; sleep 0.1; done
	net 10.231.78
	over "latency and loss (a line of our own)"
	endless cut-line --rank-timeout 5
	kill -STOP "$line"                              # nobody is told: packets just do not arrive
	silence cut-line 5
	kill -9 "$line"
	line=
	net 10.231.77
else
	echo "latency and loss by a line of our own: not tried, no $wire (cmake --build build --target crash) or no /dev/net/tun" >&2
	failed=1
fi
endless killed-rank
rank=
for p in $(ip netns pids $b); do
	[ "$(readlink "/proc/$p/exe")" != "$NORMA" ] || rank=$p
done
[ -n "$rank" ] || fail "killed-rank: no rank on host-b among $(ip netns pids $b | tr '\n' ' ')"
kill -9 "${rank:-$launcher}"
ended killed-rank 60
grep -qE "rank 1 with PID [0-9]+ on node|rank 1 on host-b|process rank 1" "$tmp/err" || fail "killed-rank: nobody names it"
echo "killed rank: $(grep -hE "rank 1" "$tmp/err" | sed -n 1p)"
endless cut-link --rank-timeout 3
ip -n $a link set ${a}0 down
silence cut-link 3
exit $failed
