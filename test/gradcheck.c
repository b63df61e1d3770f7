/* Tests that come for free: every op of every registry, over its cases.
 *
 * Built twice. In double: finite differences agree for each input. In both: a second use of an input adds; memory reuse,
 * rebuilding and poisoned memory change no bit; 1, 2 and 3 threads give equal bits; gaps between samples change no bit;
 * padding never leaks. The float program then compares itself with the double one, which it runs with --dump. */
#include <libgen.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "norma/graph.h"
#include "norma/nn.h"
#include "norma/norm.h"

enum { MAXVALUES = 1 << 16, MAXLEAF = 24 };

static int failures, checks;
static const char *current = "";

__attribute__((format(printf, 2, 3))) static void expect(int ok, const char *fmt, ...)
{
	checks++;
	if (ok) return;
	failures++;
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "FAIL %s: ", current);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
}

/* ---- the scalar that is differentiated: sum of y times fixed weights --------------------------------------------- */

static real weight_of(int64_t i) { return (real)(nr_rng_uniform(nr_rng_make(7, 1, 0), (uint64_t)i) - 0.5f); }

static int dot_shape(struct nr_node *k)
{
	nr_out(k, 0, NR_REAL, 0, NULL, NULL);
	return 0;
}
static void dot_forward(const struct nr_call *k)
{
	double sum = 0;
	for (int64_t i = 0; i < k->x[0].rows * k->x[0].c; i++) sum += (double)weight_of(i) * ((const real *)k->x[0].p)[i];
	*(real *)k->y[0].p = (real)sum;
}
static void dot_backward(const struct nr_call *k)
{
	const real g = *(const real *)k->dy[0].p;
	for (int64_t i = 0; i < k->x[0].rows * k->x[0].c; i++) {
		real *d = (real *)k->dx[0].p + i;
		*d = (k->add[0] ? *d : 0) + g * weight_of(i);
	}
}
static const struct nr_op op_dot = { .name = "dot", .shape = dot_shape, .forward = dot_forward, .backward = dot_backward };

/* ---- cases -------------------------------------------------------------------------------------------------------- */

struct spec { int nd; int64_t d[NR_MAXD]; int is_int, unique; long lo, hi; };

/* "2x5x7", "2:i5" (0..4), "2x5:i5u" (rows of distinct values), "2:i1-5" (1..5) */
static const char *parse(const char *s, struct spec *out)
{
	*out = (struct spec){ 0 };
	while (*s == ' ') s++;
	for (char *end;; s = end + 1) {
		out->d[out->nd++] = strtol(s, &end, 10);
		if (*end != 'x') {
			s = end;
			break;
		}
	}
	if (*s == ':') {
		char *end;
		out->is_int = 1;
		out->hi = strtol(s + 2, &end, 10) - 1;
		if (*end == '-') out->lo = out->hi + 1, out->hi = strtol(end + 1, &end, 10);
		if (*end == 'u') out->unique = 1, end++;
		s = end;
	}
	return s;
}

struct bench {                                  /* one built graph */
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *leaf[MAXLEAF], *y, *loss, *in[NR_MAXIN];
	int n_leaf, n_in;
	struct spec spec[NR_MAXIN];
};

enum { GAPS = 1 << 16, TWICE = 1 << 17 };

static void fill_ints(int32_t *v, const struct spec *s)
{
	int64_t n = 1;
	for (int i = 0; i < s->nd; i++) n *= s->d[i];
	const int64_t row = s->d[s->nd - 1];
	const struct nr_rng r = nr_rng_make(11, 2, 0);
	for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(s->lo + (long)nr_rng_below(r, (uint64_t)i, (uint64_t)(s->hi - s->lo + 1)));
	for (int64_t b = 0; s->unique && b < n / row; b++) {
		int32_t *all = calloc((size_t)(s->hi + 1), sizeof *all);
		nr_rng_shuffle(r, (uint64_t)(b * 1000), all, (int32_t)s->hi + 1);
		memcpy(v + b * row, all, (size_t)row * sizeof *v);
		free(all);
	}
}

/* Values of a real leaf: the same whatever else is in the graph; params are drawn, too, so that no gradient hides behind
 * a zero. */
static void fill_reals(real *v, int64_t n, int place)
{
	const struct nr_rng r = nr_rng_make(13, 3, (uint32_t)place);
	for (int64_t i = 0; i < n; i++) v[i] = (real)nr_rng_normal(r, (uint64_t)i);
}

static int build(struct bench *b, const struct nr_op *op, const struct nr_case *c, unsigned flags)
{
	struct nr_error err = { 0 };
	*b = (struct bench){ 0 };
	nr_store_make(&b->store, 5, &err);
	b->net = nr_net_make(b->store);
	nr_t *x[NR_MAXIN] = { NULL }, *base0 = NULL;
	for (const char *s = c->shapes; *s; b->n_in++) {
		struct spec *p = &b->spec[b->n_in];
		s = parse(s, p);
		int64_t d[NR_MAXD];
		memcpy(d, p->d, sizeof d);
		const int gaps = flags & GAPS && b->n_in == 0;
		if (gaps) d[1] += 2;
		nr_t *t = nr_input(b->net, "x", p->is_int ? NR_I32 : NR_REAL, p->nd, d[0], d[1], d[2], d[3], d[4], d[5]);
		if (!p->is_int) t->flags |= NR_GRAD, b->leaf[b->n_leaf++] = t;
		b->in[b->n_in] = t;
		x[b->n_in] = gaps ? nr_span(b->net, t, 1, 1 + p->d[1]) : t;
		if (b->n_in == 0) base0 = x[0];
	}
	b->y = op->try_case(b->net, x, c->options);
	b->y = nr_tap(b->net, "y", b->y);
	b->loss = nr_apply(b->net, &op_dot, NULL, 0, b->y);
	if (flags & TWICE) b->loss = nr_add(b->net, b->loss, nr_apply(b->net, &op_dot, NULL, 0, base0));
	if (!nr_plan_make(&b->plan, b->net, b->loss, (op->backward ? NR_PLAN_TRAIN : 0) | (flags & 0xffff), &err)) {
		for (int i = 0; i < b->n_in; i++) {
			void *data = nr_plan_data(b->plan, b->in[i]);
			if (b->spec[i].is_int) fill_ints(data, &b->spec[i]);
			else if (!(flags & GAPS) || i) fill_reals(data, nr_len(b->in[i]), i);
			else { /* the same values, with a NaN-free but different token before and after */
				const int64_t C = b->spec[0].d[2], T = b->spec[0].d[1], B = b->spec[0].d[0];
				real *packed = calloc((size_t)(B * T * C), sizeof *packed);
				fill_reals(packed, B * T * C, i);
				for (int64_t s = 0; s < B; s++)
					memcpy((real *)data + (s * (T + 2) + 1) * C, packed + s * T * C, (size_t)(T * C) * sizeof(real));
				free(packed);
			}
		}
		for (int64_t i = 0; i < nr_store_count(b->store); i++) {
			struct nr_entry *e = nr_store_at(b->store, i);
			real *v = nr_value(e);
			for (int64_t j = 0; !e->buffer && j < e->count; j++) v[j] += weight_of(j + i * 1000);
		}
		return 0;
	}
	char text[1024];
	expect(0, "cannot build: %s", nr_error_text(&err, text, sizeof text));
	return -1;
}

static void release(struct bench *b)
{
	nr_plan_free(b->plan);
	nr_net_free(b->net);
	nr_store_free(b->store);
}

static void run(struct bench *b, unsigned phases)
{
	nr_plan_run(b->plan, &(struct nr_exec){ .train = 1, .seed = 3, .step = 1 }, phases);
}

/* Output and all gradients one after the other. */
static int64_t collect(struct bench *b, real *out)
{
	int64_t n = 0;
	memcpy(out, nr_plan_data(b->plan, b->y), (size_t)nr_len(b->y) * sizeof(real));
	n += nr_len(b->y);
	for (int i = 0; i < b->n_leaf; i++) {
		const real *g = nr_plan_grad(b->plan, b->leaf[i]);
		if (!g) continue;
		memcpy(out + n, g, (size_t)nr_len(b->leaf[i]) * sizeof(real));
		n += nr_len(b->leaf[i]);
	}
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		if (e->buffer) continue;
		memcpy(out + n, nr_grad(e), (size_t)e->count * sizeof(real));
		n += e->count;
	}
	return n;
}

static real first[MAXVALUES], second[MAXVALUES];

static int64_t result(const struct nr_op *op, const struct nr_case *c, unsigned flags, int threads, real *out)
{
	struct bench b;
	omp_set_num_threads(threads);
	int64_t n = -1;
	if (!build(&b, op, c, flags)) {
		run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		n = collect(&b, out);
	}
	release(&b);
	omp_set_num_threads(2);
	return n;
}

/* Fused and apart the arithmetic is the same, but a compiler may contract a product and a sum in one of them. */
static void same_result(const struct nr_op *op, const struct nr_case *c, int64_t n, unsigned flags, const char *what)
{
	const int64_t m = result(op, c, flags, 2, second);
	double worst = 0, scale = 1;
	for (int64_t i = 0; m == n && i < n; i++) {
		worst = fmax(worst, fabs((double)first[i] - (double)second[i]));
		scale = fmax(scale, fabs((double)first[i]));
	}
	expect(m == n && worst <= (sizeof(real) == 8 ? 1e-15 : 3e-7) * scale, "%s changes results by %.2e", what, worst);
}

static void same_bits(const struct nr_op *op, const struct nr_case *c, int64_t n, unsigned flags, int threads, const char *what)
{
	const int64_t m = result(op, c, flags, threads, second);
	expect(m == n && !memcmp(first, second, (size_t)n * sizeof(real)), "%s changes bits", what);
}

/* ---- the checks --------------------------------------------------------------------------------------------------- */

#ifdef NR_DOUBLE
static real loss_at(struct bench *b)
{
	run(b, NR_RUN_FORWARD);
	return *(const real *)nr_plan_data(b->plan, b->loss);
}

static void differences(struct bench *b, real *value, const real *grad, int64_t n, const char *what)
{
	const real h = 1e-5;
	double worst = 0, scale = 1e-2;
	real *analytic = malloc((size_t)n * sizeof *analytic);
	memcpy(analytic, grad, (size_t)n * sizeof *analytic);
	for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(analytic[i]));
	for (int64_t i = 0; i < n; i++) {
		const real keep = value[i];
		value[i] = keep + h;
		const real up = loss_at(b);
		value[i] = keep - h;
		const real down = loss_at(b);
		value[i] = keep;
		worst = fmax(worst, fabs((up - down) / (2 * h) - analytic[i]));
	}
	expect(worst <= 1e-6 * scale || worst <= 1e-8, "gradient of %s is off by %.2e of %.2e", what, worst, scale);
	free(analytic);
}

static void finite_differences(const struct nr_op *op, const struct nr_case *c)
{
	struct bench b;
	if (build(&b, op, c, 0)) return;
	run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	for (int i = 0; i < b.n_leaf; i++) {
		char what[32];
		snprintf(what, sizeof what, "input %d", i);
		const real *g = nr_plan_grad(b.plan, b.leaf[i]);
		if (g) differences(&b, nr_plan_data(b.plan, b.leaf[i]), g, nr_len(b.leaf[i]), what);
	}
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		if (!e->buffer) differences(&b, nr_value(e), nr_grad(e), e->count, e->name);
	}
	release(&b);
}
#endif

/* A second use of input 0, recorded later, so that the op's gradient is added to what is there. */
static void second_use_adds(const struct nr_op *op, const struct nr_case *c, int64_t n)
{
	struct bench b;
	if (build(&b, op, c, TWICE)) return;
	run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	const int64_t y = nr_len(b.y);
	expect(collect(&b, second) == n, "another number of gradients");
	double worst = 0, scale = 1;
	for (int64_t i = 0; i < n; i++) {
		const double want = (double)first[i] + (i >= y && i < y + nr_len(b.leaf[0]) ? (double)weight_of(i - y) : 0);
		worst = fmax(worst, fabs((double)second[i] - want));
		scale = fmax(scale, fabs(want));
	}
	expect(worst <= (sizeof(real) == 8 ? 1e-13 : 1e-6) * scale, "a second use is off by %.2e", worst);
	/* once more, accumulating: parameter gradients double */
	nr_plan_run(b.plan, &(struct nr_exec){ .train = 1, .seed = 3, .step = 1, .accumulate = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	for (int64_t i = 0; i < nr_store_count(b.store); i++) {
		const struct nr_entry *e = nr_store_at(b.store, i);
		const real *g = e->buffer ? NULL : nr_grad(e);
		if (!g) continue;
		worst = 0, scale = 1;
		for (int64_t j = 0; j < e->count; j++) scale = fmax(scale, fabs((double)g[j]));
		int64_t from = y;
		for (int q = 0; q < b.n_leaf; q++) from += nr_plan_grad(b.plan, b.leaf[q]) ? nr_len(b.leaf[q]) : 0;
		for (int64_t q = 0; q < i; q++) from += nr_store_at(b.store, q)->buffer ? 0 : nr_store_at(b.store, q)->count;
		for (int64_t j = 0; j < e->count; j++) worst = fmax(worst, fabs((double)g[j] - 2 * (double)first[from + j]));
		expect(worst <= (sizeof(real) == 8 ? 1e-13 : 1e-5) * scale, "accumulating '%s' is off by %.2e", e->name, worst);
	}
	release(&b);
}

static void gaps_change_nothing(const struct nr_op *op, const struct nr_case *c, int64_t n)
{
	struct spec s;
	parse(c->shapes, &s);
	if (!(op->flags & NR_STRIDED) || s.nd != 3 || s.is_int || !op->backward) return;
	if (strstr(c->options, "drop")) return; /* draws belong to a node's number, which the view before it changes */
	struct bench b;
	if (build(&b, op, c, GAPS)) return;
	run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	const int64_t y = nr_len(b.y), T = s.d[1], C = s.d[2];
	double worst = 0, scale = 1;
	const real *got = nr_plan_data(b.plan, b.y), *dx = nr_plan_grad(b.plan, b.leaf[0]);
	for (int64_t i = 0; i < y; i++) worst = fmax(worst, fabs((double)got[i] - (double)first[i]));
	for (int64_t i = 0; i < s.d[0] * (T + 2) * C; i++) {
		const int64_t t = i / C % (T + 2), sample = i / C / (T + 2);
		const double want = t == 0 || t == T + 1 ? 0 : (double)first[y + (sample * T + t - 1) * C + i % C];
		worst = fmax(worst, fabs((double)dx[i] - want));
		scale = fmax(scale, fabs(want));
	}
	expect(worst <= (sizeof(real) == 8 ? 1e-14 : 1e-6) * scale && n > 0, "gaps between samples change results by %.2e", worst);
	release(&b);
}

/* A lengths input ("2:i1-5"): what stands in padded tokens of input 0 changes no valid token. */
static void padding_does_not_leak(const struct nr_op *op, const struct nr_case *c)
{
	struct bench b;
	int lengths = -1;
	if (build(&b, op, c, 0)) return;
	for (int i = 0; i < b.n_in; i++)
		if (b.spec[i].is_int && b.spec[i].lo == 1) lengths = i;
	const struct spec *s = &b.spec[0];
	if (lengths >= 0 && s->nd == 3 && b.y->nd == 3 && b.y->d[1] == s->d[1]) {
		run(&b, NR_RUN_FORWARD);
		memcpy(second, nr_plan_data(b.plan, b.y), (size_t)nr_len(b.y) * sizeof(real));
		const int32_t *len = nr_plan_data(b.plan, b.in[lengths]);
		real *x = nr_plan_data(b.plan, b.in[0]);
		for (int64_t i = 0; i < nr_len(b.in[0]); i++)
			if (i / s->d[2] % s->d[1] >= len[i / s->d[2] / s->d[1]]) x[i] = x[i] * 3 + 1;
		run(&b, NR_RUN_FORWARD);
		const real *y = nr_plan_data(b.plan, b.y);
		int same = 1;
		for (int64_t i = 0; i < nr_len(b.y); i++)
			if (i / b.y->d[2] % s->d[1] < len[i / b.y->d[2] / s->d[1]]) same &= !memcmp(&y[i], &second[i], sizeof(real));
		expect(same, "padding leaks");
	}
	release(&b);
}

static int all_finite(const real *v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!isfinite(v[i])) return 0;
	return 1;
}

/* The double program's numbers for this case come down the pipe in text. */
static void compare_with_double(FILE *pipe, int64_t n)
{
	char name[256];
	long long m;
	if (fscanf(pipe, " case %255[^\n]\n%lld", name, &m) != 2 || strcmp(name, current) || m != n) {
		expect(0, "the double program is out of step");
		return;
	}
	double worst = 0, scale = 1, v;
	for (long long i = 0; i < m; i++) {
		if (fscanf(pipe, "%la", &v) != 1) v = NAN;
		worst = fmax(worst, fabs(v - (double)first[i]));
		scale = fmax(scale, fabs(v));
	}
	/* float rounding of the inputs alone gives some 1e-6; statistics over few values amplify it */
	expect(worst <= 2e-5 * scale, "float and double differ by %.2e of %.2e", worst, scale);
}

static void check_op(const struct nr_op *op, const char *owner, FILE *pipe, int dump)
{
	for (const struct nr_case *c = op->cases; c && c->shapes; c++) {
		static char name[256];
		snprintf(name, sizeof name, "%s%s%s [%s] (%s)", owner, *owner ? "." : "", op->name, c->shapes, c->options);
		current = name;
		const int64_t n = result(op, c, 0, 2, first);
		if (n < 0) continue;
		if (dump) {
			printf("case %s\n%lld\n", name, (long long)n);
			for (int64_t i = 0; i < n; i++) printf("%a\n", (double)first[i]);
			continue;
		}
		expect(all_finite(first, n), "not finite");
		if (pipe) compare_with_double(pipe, n);
		same_bits(op, c, n, 0, 1, "1 thread");
		same_bits(op, c, n, 0, 3, "3 threads");
		same_bits(op, c, n, NR_PLAN_NO_REUSE, 2, "memory of its own");
		same_bits(op, c, n, NR_PLAN_REBUILD, 2, "rebuilding");
		same_bits(op, c, n, NR_PLAN_POISON, 2, "poisoned memory");
		same_bits(op, c, n, NR_PLAN_POISON | NR_PLAN_REBUILD, 2, "poisoned memory and rebuilding");
		same_result(op, c, n, NR_PLAN_NO_FUSE, "fusing");
		same_result(op, c, n, NR_PLAN_NO_NARROW, "narrowing");
		if (op->backward) second_use_adds(op, c, n);
		gaps_change_nothing(op, c, n);
		padding_does_not_leak(op, c);
#ifdef NR_DOUBLE
		if (op->backward && !(op->flags & NR_APPROX_GRAD)) finite_differences(op, c);
#endif
	}
}

/* ---- small graphs that give the planner something to alias, fuse and rebuild ---------------------------------------- */

/* A large eps: of two channels some token has nearly equal ones, and finite differences fail where the norm is that steep. */
static nr_t *ln(struct nr_net *n, const char *name, nr_t *x) { return nr_norm_make(n, name, "layer:eps=0.1", x); }

static nr_t *pre_norm(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = x[0];
	for (int i = 0; i < 2; i++) { /* two blocks: skips of skips share one gradient */
		nr_push(n, "b.%d", i);
		t = nr_add(n, t, nr_linear(n, "fc2", nr_linear_gelu(n, "fc1", ln(n, "norm", t), 5), t->d[2]));
		nr_pop(n, t);
	}
	return ln(n, "final", t);
}
static nr_t *post_norm(struct nr_net *n, nr_t **x, const char *o)
{
	return ln(n, "norm", nr_add(n, nr_linear(n, "fc", x[0], x[0]->d[2]), x[0]));
}
static nr_t *twice(struct nr_net *n, nr_t **x, const char *o)
{
	return nr_add(n, ln(n, "norm", nr_add(n, x[0], x[0])), x[0]);
}
/* The skip is used again after the sum, so its gradient begins before the sum's backward. */
static nr_t *late_skip(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *s = ln(n, "a", x[0]), *z = nr_add(n, s, nr_linear(n, "fc", s, x[0]->d[2]));
	return nr_add(n, nr_linear(n, "fc2", z, x[0]->d[2]), s);
}
/* Both inputs of the sum have other users, recorded between. */
static nr_t *crossed(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = ln(n, "a", x[0]), *b = nr_linear(n, "b", x[0], x[0]->d[2]);
	nr_t *c = nr_linear(n, "c", a, x[0]->d[2]), *d = nr_linear(n, "d", b, x[0]->d[2]);
	return nr_add(n, nr_add(n, a, b), nr_add(n, d, c));
}
static nr_t *sums_of_views(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = nr_linear(n, "a", x[0], x[0]->d[2]);
	nr_t *r = nr_reshape(n, a, 3, x[0]->d[0], x[0]->d[1], x[0]->d[2]);
	nr_t *b = ln(n, "b", x[0]);
	return nr_add(n, b, nr_add(n, r, nr_linear(n, "c", b, x[0]->d[2])));
}
static nr_t *separate(struct nr_net *n, nr_t **x, const char *o)     /* SepNorm */
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	nr_t *y = nr_join(n, ln(n, "cls", nr_span(n, t, 0, 1)), ln(n, "tok", nr_span(n, t, 1, NR_END)));
	return nr_linear(n, "out", y, 3);
}
static nr_t *separate_residual(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_add(n, x[0], nr_linear(n, "fc", x[0], x[0]->d[2]));
	nr_t *y = nr_join(n, ln(n, "cls", nr_span(n, t, 0, 1)), ln(n, "tok", nr_span(n, t, 1, NR_END)));
	return nr_add(n, t, nr_linear(n, "out", y, t->d[2]));
}
static nr_t *class_head(struct nr_net *n, nr_t **x, const char *o)   /* only one token gets a gradient */
{
	nr_t *t = ln(n, "norm", nr_linear(n, "fc", x[0], x[0]->d[2]));
	return nr_linear(n, "head", nr_span(n, t, 0, 1), 2);
}
static nr_t *overlapping(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return nr_join(n, nr_span(n, t, 0, 2), ln(n, "norm", nr_span(n, t, 1, NR_END)));
}
static nr_t *nested_join(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = ln(n, "a", x[0]), *b = ln(n, "b", nr_linear(n, "fc", x[0], x[0]->d[2]));
	nr_t *j = nr_join(n, nr_join(n, a, b), ln(n, "c", a));
	return nr_add(n, j, ln(n, "d", j));
}
static nr_t *joined_with_itself(struct nr_net *n, nr_t **x, const char *o)   /* the copy is written into the join */
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return ln(n, "norm", nr_join(n, t, t));
}
static nr_t *tied(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return nr_linear(n, "fc", ln(n, "norm", t), x[0]->d[2]);
}
static nr_t *both_outputs(struct nr_net *n, nr_t **x, const char *o) /* of fused pairs are used */
{
	nr_t *h = nr_linear(n, "fc", x[0], x[0]->d[2]), *g = nr_activate(n, "gelu", h);
	nr_t *s = nr_add(n, h, g);
	return nr_add(n, ln(n, "norm", s), s);
}

static const struct nr_case block_cases[] = { { "2x4x3", "" }, { "1x3x6", "" }, { "3x70x2", "" }, { NULL, NULL } };
#define GRAPH(f) { .name = #f, .try_case = f, .cases = block_cases, .backward = dot_backward /* it has one */ }
static const struct nr_op graphs[] = {
	GRAPH(pre_norm), GRAPH(post_norm), GRAPH(twice), GRAPH(late_skip), GRAPH(crossed), GRAPH(sums_of_views), GRAPH(separate),
	GRAPH(separate_residual), GRAPH(class_head), GRAPH(overlapping), GRAPH(nested_join), GRAPH(joined_with_itself), GRAPH(tied),
	GRAPH(both_outputs),
};

int main(int argc, char **argv)
{
	const int dump = argc > 1 && !strcmp(argv[1], "--dump");
	const char *only = argc > 1 + dump ? argv[1 + dump] : NULL;     /* this op or norm alone */
	FILE *pipe = NULL;
	int ops = 0;
#ifndef NR_DOUBLE
	char self[4096], command[4400];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (length > 0) {
		self[length] = 0;
		snprintf(command, sizeof command, "'%s/gradcheck64' --dump '%s'", dirname(self), only ? only : "");
		pipe = popen(command, "r");
	}
	if (!pipe) fprintf(stderr, "FAIL: cannot run gradcheck64\n"), failures++;
#endif
	if (only && !*only) only = NULL;
	for (const struct nr_op *const *op = nr_ops(); *op; op++) {
		current = (*op)->name;
		if (only && strcmp(only, current)) continue;
		ops++;
		if (!dump) expect((*op)->cases && (*op)->cases->shapes && (*op)->try_case, "has no cases");
		check_op(*op, "", pipe, dump);
	}
	for (const struct nr_norm *const *norm = nr_norms(); *norm; norm++)
		for (int i = 0; i < 4 && (*norm)->op[i] && (!only || !strcmp(only, (*norm)->name)); i++, ops++)
			check_op((*norm)->op[i], (*norm)->name, pipe, dump);
	for (size_t i = 0; i < sizeof graphs / sizeof *graphs && !only; i++) check_op(&graphs[i], "graph", pipe, dump);
	if (pipe) pclose(pipe);
	if (!dump) printf("%d ops, %d checks, %d failed\n", ops, checks, failures);
	return failures != 0;
}
