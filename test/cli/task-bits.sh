#!/bin/bash
# A short seeded run of every task ends with recorded bits: weights, moments and averages of its last checkpoint, and the numbers of its
# record, with plain kernels, on 1 and on 2 threads. Plain code is baseline x86-64, so that two things alone may change its last bits
# from one machine to another: the mathematical functions of the C library, and the order in which the compiler adds in `omp simd`.
# A probe of both names what was recorded (task-bits.txt); where its answer is another, the test compares the threads and is skipped.
# `test/cli/task-bits.sh --record TEXT` records anew, for a commit that says why the numbers changed; TEXT names library and compiler.
set -euo pipefail
# shellcheck source=test/cli/check.inc
. "$(dirname "$0")/check.inc"
[ -z "${NORMA_SANITIZE:-}" ] || exit 77
# shellcheck source=test/cli/made_up.inc
. test/cli/made_up.inc
# shellcheck source=test/cli/words.inc
. test/cli/words.inc
# shellcheck source=test/cli/molecules.inc
. test/cli/molecules.inc
kept=test/cli/task-bits.txt
built=${NORMA_BUILD:-build}
export NORMA_ISA=plain NORMA_DATA=$tmp/data
unset NORMA_FUSE NORMA_NARROW

# ---- the probe
cat >"$tmp/probe.c" <<'PROBE'
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t hash = 14695981039346656037u;
static void take(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)p)[i]) * 1099511628211u;
}
static void take_float(float v) { take(&v, sizeof v); }
static void take_double(double v) { take(&v, sizeof v); }

int main(void)
{
	static volatile float f[4099];
	static float x[4099], y[4099];
	for (int i = 0; i < 4099; i++) x[i] = f[i] = (float)(i - 2000) / 211 + (float)i * 1e-6f;
	for (int i = 0; i < 4099; i++) {
		const float v = f[i], a = fabsf(v) + 1e-3f;
		const double w = (double)v * 1.1, b = (double)a * 1.1;
		take_float(expf(v)), take_float(tanhf(v)), take_float(erff(v)), take_float(sinf(v)), take_float(cosf(v));
		take_float(logf(a)), take_float(powf(a, v)), take_double(exp(w)), take_double(erf(w)), take_double(sin(w));
		take_double(cos(w)), take_double(log(b)), take_double(log1p(b)), take_double(pow(b, w)), take_double(cbrt(w));
		y[i] = expf(v / 9);
	}
	for (int n = 1; n < 4099; n += 97) {
		float s = 0;
		double d = 0;
#pragma omp simd reduction(+ : s)
		for (int i = 0; i < n; i++) s += x[i] * y[i];
#pragma omp simd reduction(+ : d)
		for (int i = 0; i < n; i++) d += (double)x[i] * (double)y[i];
		take_float(s), take_double(d);
	}
	printf("%016llx\n", (unsigned long long)hash);
	return 0;
}
PROBE
cached() { sed -n "s/^$1:[A-Z]*=//p" "$built/CMakeCache.txt" 2>/dev/null; }
cc=$(cached CMAKE_C_COMPILER) level=-O3
case $(cached CMAKE_BUILD_TYPE) in Debug) level=-O0 ;; RelWithDebInfo) level=-O2 ;; esac
"${cc:-cc}" -std=c17 $level -fopenmp-simd -ffp-contract=fast -fno-math-errno -fno-trapping-math "$tmp/probe.c" -o "$tmp/probe" -lm
probe=$("$tmp/probe")

# ---- the runs
made_up "$tmp/data/mnist" train 80
made_up "$tmp/data/mnist" t10k 20
sentences 1 60 | awk '{ print } NR % 9 == 0 { print "" }' >"$tmp/lines.txt"
{ echo "sent0,sent1,hard_neg"; paste -d, <(sentences 2 40) <(sentences 3 40) <(sentences 4 40); } >"$tmp/triplets.csv"
mkdir -p "$tmp/data/sts/tokenized/STSB"
for ((i = 0; i < 12; i++)); do echo $((i % 6)); done >"$tmp/scores"
paste "$tmp/scores" <(sentences 5 12) <(sentences 6 12) >"$tmp/data/sts/tokenized/STSB/dev.tsv"
made_up_values >"$tmp/values.csv"

# numbers FOLDER: a hash of what a run recorded, but for its clock
numbers() {
	awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) clock[i] = $i == "seconds" || $i ~ /_per_s/ }
		{ for (i = 1; i <= NF; i++) if (!clock[i]) printf "%s,", NR == 1 ? "" : $i; print "" }' "$1/metrics.csv" | sha256sum | cut -c1-16
}
# try NAME COMMAND ARG...
try() {
	local name=$1 threads got
	shift
	for threads in 1 2; do
		run 0 "$@" --seed 3 --threads $threads --store "$tmp/runs.db" --out "$tmp/$name-$threads"
		got="$probe $name $(bits "$tmp/$name-$threads/last.safetensors" | cut -c1-16) $(numbers "$tmp/$name-$threads")"
		[ $threads = 1 ] && echo "$got" >>"$tmp/got"
		[ "$got" = "$(tail -1 "$tmp/got")" ] || fail "$threads threads give other bits: $got, not $(tail -1 "$tmp/got")"
	done
}
picture=vit_nano:dim=24,depth=2,heads=3,patch=7
text=(--tokenizer "$vocab" --model "bert:dim=16,depth=2,heads=2,hidden=24,positions=24" --max-length 16 --batch 8)
try classify train --data mnist --model $picture,dropout=0.1 --norm "sep(bn,ln)" --batch 16 --accumulate 2 --epochs 3 --smoothing 0.1 \
	--mixup 0.3 --cutmix 0.5 --crop pad --pad 2 --flip 0.5 --ema 0.9
try sigmoid train --data mnist --model $picture --batch 16 --epochs 1 --loss sigmoid --zero-head --head-bias -2 --optimizer sgd
try mae pretrain --data mnist --model $picture --norm "sep(bn,ln) decoder.*=ln" --batch 16 --epochs 2 --decoder-depth 1 --uniform both
try dino dino --data mnist --model $picture,drop_path=0.1 --norm "sep(bn,ln)" --batch 16 --accumulate 2 --epochs 2 --local-crops 2 \
	--local-size 14 --prototypes 48 --head-hidden 24 --head-bottleneck 12 --head-bn --freeze-last-layer 0.5 --linear 60 --linear-blocks 2
try mlm mlm --data "text:path=$tmp/lines.txt,val=0.2" "${text[@]}" --nsp --epochs 2
try simcse simcse --data "text:path=$tmp/triplets.csv" "${text[@]}" --hard-weight 0.5 --mlm-weight 0.1 --steps 5
{ echo sentence1,sentence2,label; paste -d, <(sentences 7 40) <(sentences 8 40) | awk '{ print $0 "," NR % 3 }'; } >"$tmp/rows.csv"
try text text --data "labelled:path=$tmp/rows.csv,val=0.2" "${text[@]}" --epochs 2
try lit lit --data captions:of=mnist --tower "$tmp/classify-1/last.safetensors" --model clip_text_nano:dim=16,depth=1,heads=2,hidden=24 --batch 8 \
	--loss sigmoid --epochs 1
try graph graph --data "molecules:path=$tmp/values.csv,features=zinc" --model graphormer-nano:depth=2,attention_dropout=0.1 --batch 8 \
	--standardize no \
	--epochs 1 --flag 2
run 0 data make shapes -o "$tmp/shapes" --size 32 --samples 16:6 --shapes 1:3
detect=(detect --data "coco:path=$tmp/shapes" --model "pvt:image=32,patch=4,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2-2-2-2,sr=2-1-1-1"
	--neck-dim 8 --head-convs 1 --batch 4 --epochs 2)
try retinanet "${detect[@]}" --norm "ln neck.**=bn head.**=group:groups=2" --convention torchvision --box-loss giou --short-sides "24 32"
try mask_rcnn "${detect[@]}" --detector mask_rcnn --anchor 3 --fc 16 --mask-pool 3 --rpn-rows 32 --roi-rows 12 --before 40 --proposals 16

# ---- the bits
if [ "${1:-}" = --record ]; then
	{
		[ ! -f $kept ] || grep -v "^#* *$probe" $kept
		echo "# $probe: ${2:?a text that names the C library and the compiler}"
		cat "$tmp/got"
	} >"$tmp/new"
	cp "$tmp/new" $kept
	exit "$failed"
fi
grep "^$probe" $kept >"$tmp/want" ||
	{ printf "skipped: the C library or the compiler rounds otherwise than where bits were recorded (probe %s):\n%s\n" "$probe" "$(grep '^#' $kept)" >&2
		[ $failed = 0 ] && exit 77; exit 1; }
ran="a run of each task"
cmp -s "$tmp/want" "$tmp/got" || fail "other bits than recorded (probe, task, weights, record):
$(diff "$tmp/want" "$tmp/got")"
exit "$failed"
