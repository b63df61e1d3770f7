#!/bin/bash
# A new normalization is one file and one line (CONTRIBUTING.md): a copy of the tree gets one, and help, completion, norm plan,
# laws, gradient check, golden files and benchmark know it without another edit.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"

# ---- the one line
add_line norms/norms.def 'NORM(centred)'

# ---- the one file
cat >"$dir/tree/src/norms/centred.c" <<'END'
/* centred: y = weight (x - mean) over the channels of one token.
 *
 * Backward: g = dy weight; dx = g - mean(g); dweight = sum dy (x - mean). */
#include "graph/blocks.h"
#include "math/row.h"
#include "norms/norms.h"

static const struct nr_option options[] = { NR_OPT_END };

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	nr_out_like(k, 0, x);
	k->scratch = (size_t)(nr_blocks_most(x) * nr_cols(x)) * sizeof(real);     /* partial dweight */
	return nr_expect(k, nr_len(k->in[1]) == nr_cols(x), "one weight per channel");
}

static void forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const real *weight = k->x[1].p;
#pragma omp parallel for schedule(static)
	for (int64_t r = 0; r < x->rows; r++) {
		const real *v = nr_row(x, r), mean = nr_sum(x->c, v) / (real)x->c;
		real *u = nr_row(y, r);
		for (int64_t i = 0; i < x->c; i++) u[i] = weight[i] * (v[i] - mean);
	}
}

static void backward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *dy = &k->dy[0], *dx = &k->dx[0];
	const int64_t C = x->c;
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const real *weight = k->x[1].p;
	real *part = k->scratch;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		real *dw = part + q * C;
		memset(dw, 0, (size_t)C * sizeof(real));
		for (const int64_t end = r + rows; r < end; r++) {
			const real *v = nr_row(x, r), *g = nr_row(dy, r), mean = nr_sum(C, v) / (real)C;
			const real shared = nr_dot(C, g, weight) / (real)C;
			for (int64_t i = 0; i < C; i++) dw[i] += g[i] * (v[i] - mean);
			for (int64_t i = 0; i < C; i++) nr_put(&nr_row(dx, r)[i], g[i] * weight[i] - shared, k->add[0]);
		}
	}
	if (k->want & 2) nr_fold(b.count, C, part, k->dx[1].p, k->add[1]);
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 3 * (double)nr_len(k->in[0]);
	*back = 6 * (double)nr_len(k->in[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_centred, x, text); }

static const struct nr_case cases[] = { { "2x5x12", "" }, { "3x1x7", "" }, { "1x70x3", "" }, { NULL, NULL } };

static const struct nr_op op = {
	.name = "centred", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_CHEAP | NR_STRIDED, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)conf;
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	return nr_apply(n, &op, NULL, 0, x, weight);
}

static const char *const laws[] = { "sep(centred,centred) = centred", NULL };

const struct nr_norm nr_norm_centred = {
	.name = "centred", .alias = "cn", .title = "mean-free tokens", .cite = "none", .equation = "y = weight (x - mean_C x)",
	.about = "Takes the mean off every token and leaves its length alone.", .laws = laws, .options = options, .build = build,
	.op = { &op },
};
END

build norma norma-golden gradcheck gradcheck64

# ---- who knows it
knows "the list" "centred   cn     mean-free tokens" "$norma" norms
knows "its card" "Statistics are taken over channels." "$norma" norms centred
knows "its cost" "3.0 flops per value forward, 6.0 backward" "$norma" norms cn
mkdir "$dir/pages"
knows "the pages" "" "$norma" norms --markdown "$dir/pages"
[ -s "$dir/pages/centred.md" ] || fail "no page centred.md"
knows "completion" "centred" "$norma" completion bash
knows "prove" "equal within" "$norma" prove "sep(centred,layer) = sep(cn,ln)"
knows "its law" "sep(centred,centred) = centred" "$norma" prove all
knows "a norm plan" "centred" "$norma" plan vit_tiny_bs8 --tiny --sites --norm "*=ln final=centred"
knows "a part of sep" "sep(batch,centred)" "$norma" plan vit_tiny_bs8 --tiny --sites --norm "sep(batch,centred)"
knows "the benchmark" '"norm":"centred"' "$norma" bench norms --tiny --json
misses "a name that is nearly right" "did you mean 'centred'?" "$norma" norms centrd

knows "the gradient check" "1 ops" "$dir/b/test/gradcheck64" centred
knows "the gradient check in float" "1 ops" "$dir/b/test/gradcheck" centred

# ---- a golden file: two tokens of four channels
f32() { # numbers as float32, little-endian
	local v
	for v in "$@"; do
		case $v in
		0) printf '\0\0\0\0' ;; 1) printf '\0\0\x80\x3f' ;; 2) printf '\0\0\0\x40' ;; 3) printf '\0\0\x40\x40' ;;
		4) printf '\0\0\x80\x40' ;; 5) printf '\0\0\xa0\x40' ;; 6) printf '\0\0\xc0\x40' ;; 8) printf '\0\0\0\x41' ;;
		-1) printf '\0\0\x80\xbf' ;; -2) printf '\0\0\0\xc0' ;; -3) printf '\0\0\x40\xc0' ;; -6) printf '\0\0\xc0\xc0' ;;
		.75) printf '\0\0\x40\x3f' ;; -.25) printf '\0\0\x80\xbe' ;; *) echo "no bytes for $v" >&2; exit 1 ;;
		esac
	done
}
header='{"__metadata__":{"format":"norma-golden-1","norm":"centred","case":"tiny","steps":"train","shape":"1,2,4","channels":"4","tol_y":"1e-06","tol_dx":"1e-06","tol_grad":"1e-06"}'
at=0
for t in param.weight:4:4 s0.x:1,2,4:8 s0.dy:1,2,4:8 s0.y:1,2,4:8 s0.dx:1,2,4:8 s0.grad.weight:4:4; do
	IFS=: read -r name sizes count <<<"$t"
	header+=",\"$name\":{\"dtype\":\"F32\",\"shape\":[$sizes],\"data_offsets\":[$at,$((at + 4 * count))]}"
	at=$((at + 4 * count))
done
header+='}'
while ((${#header} % 8)); do header+=' '; done
golden() { # LAST NUMBER OF y
	printf '%b' "$(printf '\\x%02x' $((${#header} & 255)) $((${#header} >> 8)) 0 0 0 0 0 0)"
	printf '%s' "$header"
	f32 1 1 1 1  1 2 3 6 0 4 8 0  1 0 0 0 0 2 0 2  -2 -1 0 3 -3 1 5 "$1"  .75 -.25 -.25 -.25 -1 1 -1 1  -2 2 0 -6
}
mkdir "$dir/golden"
golden -3 >"$dir/golden/centred__tiny.safetensors"
knows "norma-golden" "1 passed, 0 failed, 0 skipped" "$dir/b/bin/norma-golden" "$dir/golden"
golden 3 >"$dir/golden/centred__tiny.safetensors"
"$dir/b/bin/norma-golden" "$dir/golden" >"$dir/out" 2>&1 && fail "norma-golden passes a wrong value"

# ---- a wrong gradient does not get through
sed -i 's/- shared, k->add/+ shared, k->add/' "$dir/tree/src/norms/centred.c"
build gradcheck64
misses "the gradient check of a wrong gradient" "centred" "$dir/b/test/gradcheck64" centred
exit "$failed"
