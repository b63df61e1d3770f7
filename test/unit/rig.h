/* A small graph for the tests of builders: inputs with values, one plan, runs with and without backward. */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include <math.h>
#include <stdio.h>

#include "base/real.h"
#include "unit/values.h"

#include "norma/nn.h"

enum { MAXLEAF = 12 };

struct rig {
	struct nr_store *store;
	struct nr_net *n;
	struct nr_plan *plan;
	struct nr_error err;
	nr_t *leaf[MAXLEAF];
	void *data[MAXLEAF];
	int count;
};

static inline struct rig rig(void)
{
	struct rig r = { 0 };
	assert_int_equal(nr_store_make(&r.store, 1, &r.err), 0);
	r.n = nr_net_make(r.store);
	assert_non_null(r.n);
	return r;
}

/* An input whose values (of any, made here when NULL) are copied when the graph is run. */
static inline nr_t *leaf(struct rig *r, enum nr_dtype type, const void *from, int nd, int64_t a, int64_t b,
	int64_t c, int64_t d)
{
	nr_t *t = nr_input(r->n, "x", type, (struct nr_shape){ nd, { a, b, c, d } });
	assert_non_null(t);
	const size_t bytes = (size_t)nr_len(t) * nr_dtype_size(type);
	if (type == NR_REAL) t->flags |= NR_GRAD;
	r->data[r->count] = malloc(bytes);
	if (from) memcpy(r->data[r->count], from, bytes);
	for (int64_t i = 0; !from && i < nr_len(t); i++) ((real *)r->data[r->count])[i] = value();
	r->leaf[r->count++] = t;
	return t;
}
static inline nr_t *reals(struct rig *r, int nd, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return leaf(r, NR_REAL, NULL, nd, a, b, c, d);
}
static inline nr_t *ints(struct rig *r, const int32_t *v, int nd, int64_t a, int64_t b)
{
	return leaf(r, NR_I32, v, nd, a, b, 1, 1);
}
static inline const real *data(const struct rig *r, int i) { return r->data[i]; }

static inline const real *run_with(struct rig *r, nr_t *y, struct nr_exec ex, unsigned phases)
{
	char text[1200];
	if (!r->plan && nr_plan_make(&r->plan, r->n, y,
		phases & NR_RUN_BACKWARD ? NR_PLAN_TRAIN | NR_PLAN_POISON : 0, &r->err))
		fail_msg("%s", nr_error_text(&r->err, text, sizeof text));
	for (int i = 0; i < r->count; i++)
		memcpy(nr_plan_data(r->plan, r->leaf[i]), r->data[i],
			(size_t)nr_len(r->leaf[i]) * nr_dtype_size(r->leaf[i]->dtype));
	nr_plan_run(r->plan, &ex, phases);
	return nr_plan_data(r->plan, y);
}
static inline const real *run(struct rig *r, nr_t *y)
{
	return run_with(r, y, (struct nr_exec){ .seed = 3 }, NR_RUN_FORWARD);
}
static inline const real *step(struct rig *r, nr_t *y)
{
	return run_with(r, y, (struct nr_exec){ .train = 1, .seed = 3, .step = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
}

static inline void release(struct rig *r)
{
	nr_plan_free(r->plan);
	nr_net_free(r->n);
	nr_store_free(r->store);
	for (int i = 0; i < r->count; i++) free(r->data[i]);
}

static inline void close_to(const real *got, const double *want, int64_t n, double bound)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs((double)got[i] - want[i]) <= bound)) fail_msg("at %ld: %.9g, want %.9g", (long)i,
			(double)got[i], want[i]);
}
static inline void shape_is(const nr_t *t, const char *want)
{
	char s[64];
	assert_non_null(t);
	assert_string_equal(nr_shape_text(t, s, sizeof s), want);
}

#endif
