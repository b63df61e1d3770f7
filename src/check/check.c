/* The checks: see check.h. */
#include "check/check.h"

#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "check/rig.h"

const char *const nr_check_names[NR_CHECKS] = {
	[NR_CHECK_BUILDS] = "builds",
	[NR_CHECK_FINITE] = "finite values",
	[NR_CHECK_GRADIENT] = "gradient in double against finite differences",
	[NR_CHECK_PRECISION] = "float against double",
	[NR_CHECK_ADDS] = "gradients add where they should",
	[NR_CHECK_POISON] = "NaN in memory that backward did not declare",
	[NR_CHECK_THREADS] = "equal bits at 1, 2 and 3 threads",
	[NR_CHECK_MEMORY] = "equal bits with memory of its own and rebuilt values",
	[NR_CHECK_FUSING] = "fusing and narrowing change nothing",
	[NR_CHECK_GAPS] = "views with gaps",
	[NR_CHECK_PADDING] = "padding does not leak",
	[NR_CHECK_RESUME] = "equal bits when stopped and resumed",
};

/* The larger of worst and |a - b|; what is not finite counts as infinite. */
static double apart(double worst, double a, double b)
{
	const double d = fabs(a - b);
	return d <= worst ? worst : isfinite(d) ? d : INFINITY;
}

enum { TRIED = 8 };

/* Two results to compare: of the plain graph, and of one that is made otherwise. */
struct results { real *first, *second; int64_t n; };

void nr_check_tell(struct nr_checker *k, enum nr_check_kind kind, bool ok, const char *fmt, ...)
{
	char detail[256] = "";
	va_list ap;
	va_start(ap, fmt);
	if (!ok) vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	k->checks++;
	k->failed += !ok;
	if (k->dump) fprintf(k->dump, "result %d %d %s\n", (int)kind, ok, detail);
	else k->tell(k->context, k->subject, k->at, kind, ok, detail);
}

static bool make(struct nr_checker *k, struct nr_rig *b, unsigned flags)
{
	struct nr_error err = { 0 };
	char text[1024];
	if (!nr_rig_make(b, k->subject, k->at, flags, &err)) return true;
	nr_check_tell(k, NR_CHECK_BUILDS, false, "%.240s", nr_error_text(&err, text, sizeof text));
	return false;
}

/* Runs the case; *out is made large enough. -1: it cannot be built. */
static int64_t result(struct nr_checker *k, unsigned flags, int threads, real **out)
{
	struct nr_rig b;
	int64_t n = -1;
	omp_set_num_threads(threads);
	if (make(k, &b, flags)) {
		nr_rig_run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		n = nr_rig_collect(&b, NULL);
		real *grown = realloc(*out, (size_t)(n + 1) * sizeof **out);
		if (grown) nr_rig_collect(&b, *out = grown);
		else n = -1;
	}
	nr_rig_release(&b);
	omp_set_num_threads(2);
	return n;
}

/* Fused and apart the arithmetic is the same, but a compiler may contract a product and a sum in one of them. */
static void same_result(struct nr_checker *k, struct results *r, unsigned flags, const char *what)
{
	const int64_t m = result(k, flags, 2, &r->second);
	const double one = sizeof(real) == 8 ? 1e-15 : 3e-7, deep = sizeof(real) == 8 ? 1e-13 : 2e-5;
	double worst = 0, scale = 1;
	for (int64_t i = 0; m == r->n && i < m; i++) {
		worst = apart(worst, (double)r->first[i], (double)r->second[i]);
		scale = fmax(scale, fabs((double)r->first[i]));
	}
	nr_check_tell(k, NR_CHECK_FUSING, m == r->n && worst <= (k->subject->deep ? deep : one) * scale,
		"%s changes results by %.2e", what, worst);
}

static void same_bits(struct nr_checker *k, struct results *r, enum nr_check_kind kind, unsigned flags, int threads, const char *what)
{
	const int64_t m = result(k, flags, threads, &r->second);
	nr_check_tell(k, kind, m == r->n && !memcmp(r->first, r->second, (size_t)m * sizeof(real)), "%s changes bits", what);
}

/* ---- finite differences ------------------------------------------------------------------------------------------------ */

#ifdef NR_DOUBLE
static real loss_at(struct nr_rig *b)
{
	nr_rig_run(b, NR_RUN_FORWARD);
	return *(const real *)nr_plan_data(b->plan, b->loss);
}

static void differences(struct nr_checker *k, struct nr_rig *b, real *value, const real *grad, int64_t n, const char *what)
{
	const real h = 1e-5;
	const int64_t stride = k->subject->deep && n > TRIED ? n / TRIED : 1;
	double worst = 0, scale = 1e-2;
	real *analytic = malloc((size_t)(n + 1) * sizeof *analytic);
	if (!analytic) return;
	memcpy(analytic, grad, (size_t)n * sizeof *analytic);
	for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(analytic[i]));
	for (int64_t i = 0; i < n; i += stride) {
		const real keep = value[i];
		value[i] = keep + h;
		const real up = loss_at(b);
		value[i] = keep - h;
		const real down = loss_at(b);
		value[i] = keep;
		worst = apart(worst, (up - down) / (2 * h), analytic[i]);
	}
	nr_check_tell(k, NR_CHECK_GRADIENT, worst <= 1e-6 * scale || worst <= 1e-8,
		"gradient of %s is off by %.2e of %.2e", what, worst, scale);
	free(analytic);
}

static void finite_differences(struct nr_checker *k)
{
	struct nr_rig b;
	if (make(k, &b, 0)) {
		nr_rig_run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		for (int i = 0; i < b.n_leaf; i++) {
			char what[32];
			snprintf(what, sizeof what, "input %d", i);
			const real *g = nr_plan_grad(b.plan, b.leaf[i]);
			if (g) differences(k, &b, nr_plan_data(b.plan, b.leaf[i]), g, nr_len(b.leaf[i]), what);
		}
		for (int64_t i = 0; i < nr_store_count(b.store); i++) {
			const struct nr_entry *e = nr_store_at(b.store, i);
			if (!e->buffer) differences(k, &b, nr_value(e), nr_grad(e), e->count, e->name);
		}
	}
	nr_rig_release(&b);
}
#else
static void finite_differences(struct nr_checker *k) { (void)k; }
#endif

/* ---- gradients that add ------------------------------------------------------------------------------------------------ */

/* Run once more, accumulating: gradients of parameters double. from: where they begin among the results. */
static void accumulating_doubles(struct nr_checker *k, struct nr_rig *b, const real *first, int64_t from)
{
	nr_plan_run(b->plan, &(struct nr_exec){ .train = 1, .seed = 3, .step = 1, .accumulate = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		const real *g = e->buffer ? NULL : nr_grad(e);
		if (!g) continue;
		double worst = 0, scale = 1;
		for (int64_t j = 0; j < e->count; j++) scale = fmax(scale, fabs((double)g[j]));
		for (int64_t j = 0; j < e->count; j++) worst = apart(worst, (double)g[j], 2 * (double)first[from + j]);
		nr_check_tell(k, NR_CHECK_ADDS, worst <= (sizeof(real) == 8 ? 1e-13 : 1e-5) * scale,
			"accumulating '%s' is off by %.2e", e->name, worst);
		from += e->count;
	}
}

/* A second use of input 0, recorded later, so that the op's gradient is added to what is there. */
static void second_use_adds(struct nr_checker *k, struct results *r)
{
	struct nr_rig b;
	if (make(k, &b, NR_RIG_TWICE)) {
		nr_rig_run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		const bool real_input = b.n_leaf && b.leaf[0] == b.in[0];
		const int64_t y = nr_len(b.y), end = real_input ? y + nr_len(b.leaf[0]) : y, n = nr_rig_collect(&b, NULL);
		int64_t parameters = y;
		for (int i = 0; i < b.n_leaf; i++) parameters += nr_plan_grad(b.plan, b.leaf[i]) ? nr_len(b.leaf[i]) : 0;
		double worst = 0, scale = 1;
		if (n == r->n) nr_rig_collect(&b, r->second);
		for (int64_t i = 0; n == r->n && i < n; i++) {
			const double want = (double)r->first[i] + (i >= y && i < end ? (double)nr_rig_weight(i - y) : 0);
			worst = apart(worst, (double)r->second[i], want);
			scale = fmax(scale, fabs(want));
		}
		nr_check_tell(k, NR_CHECK_ADDS, n == r->n && worst <= (sizeof(real) == 8 ? 1e-13 : 1e-6) * scale,
			n == r->n ? "a second use is off by %.2e" : "a second use gives another number of gradients", worst);
		if (n == r->n) accumulating_doubles(k, &b, r->first, parameters);
	}
	nr_rig_release(&b);
}

/* ---- views and padding --------------------------------------------------------------------------------------------------- */

static void gaps_change_nothing(struct nr_checker *k, const struct results *r)
{
	struct nr_case_input s;
	struct nr_rig b;
	nr_case_input(k->at->shapes, &s);
	if (!k->subject->strided || s.nd != 3 || s.is_int || !k->subject->backward) return;
	if (strstr(k->at->options, "drop")) return; /* draws belong to a node's number, which the view before it changes */
	if (make(k, &b, NR_RIG_GAPS)) {
		nr_rig_run(&b, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		const int64_t y = nr_len(b.y), T = s.d[1], C = s.d[2];
		double worst = 0, scale = 1;
		const real *got = nr_plan_data(b.plan, b.y), *dx = nr_plan_grad(b.plan, b.leaf[0]);
		for (int64_t i = 0; i < y; i++) worst = apart(worst, (double)got[i], (double)r->first[i]);
		for (int64_t i = 0; i < s.d[0] * (T + 2) * C; i++) {
			const int64_t t = i / C % (T + 2), sample = i / C / (T + 2);
			const double want = t == 0 || t == T + 1 ? 0 : (double)r->first[y + (sample * T + t - 1) * C + i % C];
			worst = apart(worst, (double)dx[i], want);
			scale = fmax(scale, fabs(want));
		}
		nr_check_tell(k, NR_CHECK_GAPS, worst <= (sizeof(real) == 8 ? 1e-14 : 1e-6) * scale && r->n > 0,
			"gaps between samples change results by %.2e", worst);
	}
	nr_rig_release(&b);
}

/* With a lengths input ("2:i1-5") what stands in padded tokens of input 0 changes no valid token. */
static void change_padding(struct nr_checker *k, struct nr_rig *b, const int32_t *len, real *before)
{
	const struct nr_case_input *s = &b->spec[0];
	nr_rig_run(b, NR_RUN_FORWARD);
	memcpy(before, nr_plan_data(b->plan, b->y), (size_t)nr_len(b->y) * sizeof(real));
	real *x = nr_plan_data(b->plan, b->in[0]);
	for (int64_t i = 0; i < nr_len(b->in[0]); i++)
		if (i / s->d[2] % s->d[1] >= len[i / s->d[2] / s->d[1]]) x[i] = x[i] * 3 + 1;
	nr_rig_run(b, NR_RUN_FORWARD);
	const real *y = nr_plan_data(b->plan, b->y);
	const int64_t C = b->y->d[2];
	bool same = true;
	for (int64_t i = 0; i < nr_len(b->y) / C; i++)
		if (i % s->d[1] < len[i / s->d[1]]) same &= !memcmp(y + i * C, before + i * C, (size_t)C * sizeof *y);
	nr_check_tell(k, NR_CHECK_PADDING, same, "values of padded tokens change others");
}

static void padding_does_not_leak(struct nr_checker *k, struct results *r)
{
	struct nr_rig b;
	int lengths = -1;
	if (make(k, &b, 0)) {
		for (int i = 0; i < b.n_in; i++)
			if (b.spec[i].is_int && b.spec[i].lo >= 1) lengths = i;
		const bool tokens = b.spec[0].nd == 3 && !b.spec[0].is_int && b.y->nd == 3 && b.y->d[1] == b.spec[0].d[1];
		if (lengths >= 0 && tokens) change_padding(k, &b, nr_plan_data(b.plan, b.in[lengths]), r->second);
	}
	nr_rig_release(&b);
}

/* ---- the other precision --------------------------------------------------------------------------------------------------- */

/* A case of the twin: "case NAME", then lines "values N" (with the values after it) and "result KIND OK DETAIL", then "end". */
static void dump_values(FILE *f, const struct results *r)
{
	fprintf(f, "values %lld\n", (long long)r->n);
	for (int64_t i = 0; i < r->n; i++) fprintf(f, "%a\n", (double)r->first[i]);
}

static void compare_values(struct nr_checker *k, const struct results *r, long long n)
{
	double worst = 0, scale = 1, v;
	char line[64];
	for (long long i = 0; i < n && fgets(line, sizeof line, k->twin); i++) {
		v = strtod(line, NULL);
		worst = apart(worst, v, i < r->n ? (double)r->first[i] : NAN);
		scale = fmax(scale, fabs(v));
	}
	/* float rounding of the inputs alone gives some 1e-6; statistics over few values amplify it */
	nr_check_tell(k, NR_CHECK_PRECISION, n == r->n && worst <= 2e-5 * scale, "they differ by %.2e of %.2e", worst, scale);
}

/* What the twin found beside its values is told as ours. */
static void take_result(struct nr_checker *k, char *line)
{
	int kind, ok, at = 0;
	if (sscanf(line, "result %d %d %n", &kind, &ok, &at) < 2 || kind < 0 || kind >= NR_CHECKS || !at) return;
	line[strcspn(line, "\n")] = 0;
	char detail[560];
	snprintf(detail, sizeof detail, kind == NR_CHECK_GRADIENT ? "%s" : "in double: %s", line + at);
	k->checks++;
	k->failed += !ok;
	k->tell(k->context, k->subject, k->at, kind, ok, ok ? "" : detail);
}

static void compare_with_double(struct nr_checker *k, const struct results *r)
{
	char line[512], want[512];
	long long n;
	snprintf(want, sizeof want, "case %s [%s] (%s)\n", k->subject->name, k->at->shapes, k->at->options);
	if (!fgets(line, sizeof line, k->twin) || strcmp(line, want) != 0) {
		nr_check_tell(k, NR_CHECK_PRECISION, false, "the program in double has no values for this");
		return;
	}
	while (fgets(line, sizeof line, k->twin) && strcmp(line, "end\n") != 0) {
		if (sscanf(line, "values %lld", &n) == 1) compare_values(k, r, n);
		else take_result(k, line);
	}
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------ */

static void check_bits(struct nr_checker *k, struct results *r)
{
	same_bits(k, r, NR_CHECK_THREADS, 0, 1, "1 thread");
	same_bits(k, r, NR_CHECK_THREADS, 0, 3, "3 threads");
	same_bits(k, r, NR_CHECK_MEMORY, NR_PLAN_NO_REUSE, 2, "memory of its own");
	same_bits(k, r, NR_CHECK_MEMORY, NR_PLAN_REBUILD, 2, "rebuilding");
	same_bits(k, r, NR_CHECK_POISON, NR_PLAN_POISON, 2, "poisoned memory");
	same_bits(k, r, NR_CHECK_POISON, NR_PLAN_POISON | NR_PLAN_REBUILD, 2, "poisoned memory and rebuilding");
	same_result(k, r, NR_PLAN_NO_FUSE, "fusing");
	same_result(k, r, NR_PLAN_NO_NARROW, "narrowing");
}

static bool all_finite(const struct results *r)
{
	for (int64_t i = 0; i < r->n; i++)
		if (!isfinite(r->first[i])) return false;
	return true;
}

static void check_case(struct nr_checker *k)
{
	const struct nr_subject *of = k->subject;
	struct results r = { 0 };
	if (k->dump) fprintf(k->dump, "case %s [%s] (%s)\n", of->name, k->at->shapes, k->at->options);
	r.n = result(k, 0, 2, &r.first);
	if (r.n >= 0 && k->dump) dump_values(k->dump, &r);
	if (k->twin) compare_with_double(k, &r);
	if (r.n >= 0 && !k->values) {
		nr_check_tell(k, NR_CHECK_BUILDS, true, " ");
		nr_check_tell(k, NR_CHECK_FINITE, all_finite(&r), "a value is not finite");
		check_bits(k, &r);
		if (of->backward) second_use_adds(k, &r);
		gaps_change_nothing(k, &r);
		padding_does_not_leak(k, &r);
		if (of->backward && !of->approximate) finite_differences(k);
	}
	if (k->dump) fprintf(k->dump, "end\n");
	free(r.first);
	free(r.second);
}

void nr_check_run(struct nr_checker *k, const struct nr_subject *of)
{
	k->subject = of;
	for (k->at = of->cases; k->at && k->at->shapes; k->at++) check_case(k);
}
