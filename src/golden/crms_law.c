/* metrics/crms_law: a stack of pre-LN blocks is one of pre-RMS on the centred stream and one of pre-CRMS on a channel less. Jiang et al.
 * 2023, arXiv:2305.14858.
 *
 * Centred: wo, bo, w2, b2 lose their mean over the output channels. A channel less: the last row of these goes, and the columns of wq, wk,
 * wv, w1 lose the last column. CRMS(z) is rms of z with -sum(z) as a channel more, without that channel. */
#include <string.h>

#include "golden/check.h"
#include "norma/nn.h"
#include "norma/norm.h"

enum form { LN, RMS, CRMS };
struct law { struct golden_case *c; int64_t B, T, C, heads, hidden, blocks; double eps; };
struct graph { struct nr_store *store; struct nr_net *net; nr_t *x, *y; };

/* ---- weights ---------------------------------------------------------------------------------------------------------- */

/* (rows,columns) of output channels by inputs, without the mean of each column; a vector has one column. */
static void centre(real *w, int64_t rows, int64_t columns)
{
	for (int64_t j = 0; j < columns; j++) {
		double mean = 0;
		for (int64_t i = 0; i < rows; i++) mean += (double)w[i * columns + j] / (double)rows;
		for (int64_t i = 0; i < rows; i++) w[i * columns + j] -= (real)mean;
	}
}

/* Column minus last column, of the columns that stay. */
static void drop_column(real *w, int64_t rows, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j + 1 < columns; j++) w[i * (columns - 1) + j] = w[i * columns + j] - w[i * columns + columns - 1];
}

static bool writes(const char *name) { return !strcmp(name, "wo") || !strcmp(name, "bo") || !strcmp(name, "w2") || !strcmp(name, "b2"); }
static bool reads(const char *name) { return !strcmp(name, "wq") || !strcmp(name, "wk") || !strcmp(name, "wv") || !strcmp(name, "w1"); }

/* A tensor of a block in one of the forms; what the file has of it is compared. */
static real *weight(const struct law *l, enum form f, int64_t block, const char *name, int64_t *n)
{
	const struct golden_tensor t = golden_tensor(l->c, -1, "in.blocks.%d.%s", (int)block, name);
	const int64_t columns = t.nd == 2 ? t.d[1] : 1;
	real *w = golden_reals(l->c, t.n);
	memcpy(w, t.x, (size_t)t.n * sizeof(real));
	*n = t.n;
	if (f != LN && writes(name)) centre(w, t.d[0], columns);
	if (f == CRMS && writes(name)) *n -= columns;
	if (f == CRMS && reads(name)) drop_column(w, t.d[0], columns), *n -= t.d[0];
	if (f != LN && (writes(name) || (f == CRMS && reads(name))))
		golden_check(l->c, "out", w, *n, "%s.blocks.%d.%s", f == RMS ? "rms" : "crms", (int)block, name);
	return w;
}

/* ---- graphs ----------------------------------------------------------------------------------------------------------- */

static nr_t *norm(const struct law *l, struct nr_net *n, enum form f, nr_t *x)
{
	const char *text = nr_arena_printf(l->c->arena, "%s:affine=0,eps=%.17g", f == LN ? "layer" : "rms", l->eps);
	if (f != CRMS) return nr_norm_make(n, "", text, x);
	const int64_t C = l->C - 1;
	nr_t *z = nr_linear_tied_no_bias(n, x, nr_param(n, "widen", NR_ZEROS, NR_SHAPE(l->C, C)));
	return nr_channels(n, nr_norm_make(n, "", text, z), 0, C);
}

static nr_t *layer(struct nr_net *n, const char *w, const char *b, nr_t *x, int64_t outputs)
{
	return nr_linear_tied(n, x, nr_param(n, w, NR_ZEROS, NR_SHAPE(outputs, nr_cols(x))), nr_param(n, b, NR_ZEROS, NR_SHAPE(outputs)));
}

static nr_t *block(const struct law *l, struct nr_net *n, enum form f, nr_t *x)
{
	const int64_t C = nr_cols(x);
	nr_t *z = norm(l, n, f, x);
	nr_t *q = layer(n, "wq", "bq", z, l->C), *k = layer(n, "wk", "bk", z, l->C), *v = layer(n, "wv", "bv", z, l->C);
	x = nr_add(n, x, layer(n, "wo", "bo", nr_cross_attention(n, q, k, v, (struct nr_attention_options){ .heads = l->heads }), C));
	z = nr_activate(n, "gelu", layer(n, "w1", "b1", norm(l, n, f, x), l->hidden));
	return nr_add(n, x, layer(n, "w2", "b2", z, C));
}

/* Values of all entries: weights of blocks, and the matrix that adds -sum(z). */
static void fill(const struct law *l, enum form f, const struct graph *g)
{
	for (int64_t i = 0; i < nr_store_count(g->store); i++) {
		const struct nr_entry *e = nr_store_at(g->store, i);
		if (!strcmp(strrchr(e->name, '.') ? strrchr(e->name, '.') + 1 : e->name, "widen")) {
			const int64_t C = e->d[1];
			for (int64_t j = 0; j < C; j++) nr_value(e)[j * C + j] = 1, nr_value(e)[C * C + j] = -1;
			continue;
		}
		int block = 0;
		char name[16];
		int64_t n;
		if (sscanf(e->name, "blocks.%d.%15s", &block, name) != 2) golden_stop(l->c, e->name, "not expected");
		const real *w = weight(l, f, block, name, &n);
		golden_expect(l->c, n == e->count, e->name);
		memcpy(nr_value(e), w, (size_t)n * sizeof(real));
	}
}

/* A single norm or the whole stack, on x (B,T,C) with the form's number of channels. */
static void run(const struct law *l, enum form f, bool stack, const real *x, const char *name)
{
	struct nr_error err = { 0 };
	struct nr_plan *plan;
	struct graph g = { 0 };
	char line[512];
	const int64_t C = l->C - (f == CRMS), n = l->B * l->T * C;
	nr_store_make(&g.store, 0, &err);
	g.net = nr_net_make(g.store);
	g.x = g.y = nr_input(g.net, "x", NR_REAL, NR_SHAPE(l->B, l->T, C));
	for (int64_t i = 0; stack && i < l->blocks; i++) {
		nr_push_nth(g.net, "blocks", i, l->blocks);
		g.y = nr_pop(g.net, block(l, g.net, f, g.y));
	}
	if (!stack) g.y = norm(l, g.net, f, g.x);
	if (nr_plan_make(&plan, g.net, g.y, 0, &err)) golden_stop(l->c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	fill(l, f, &g);
	memcpy(nr_plan_data(plan, g.x), x, (size_t)n * sizeof(real));
	nr_plan_run(plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	golden_check(l->c, "out", nr_plan_data(plan, g.y), n, "%s", name);
	nr_plan_free(plan);
	nr_net_free(g.net);
	nr_store_free(g.store);
}

int golden_metric_crms_law(struct golden_case *c)
{
	const struct golden_tensor x = golden_tensor(c, 3, "in.x");
	const struct law l = { c, x.d[0], x.d[1], x.d[2], (int64_t)golden_number(c, "heads"), (int64_t)golden_number(c, "hidden"),
		(int64_t)golden_number(c, "blocks"), golden_number(c, "eps") };
	real *centred = golden_reals(c, x.n), *less = golden_reals(c, x.n);
	memcpy(centred, x.x, (size_t)x.n * sizeof(real));
	for (int64_t r = 0; r < l.B * l.T; r++) {
		centre(centred + r * l.C, l.C, 1);
		memcpy(less + r * (l.C - 1), centred + r * l.C, (size_t)(l.C - 1) * sizeof(real));
	}
	run(&l, LN, false, x.x, "norm.layer");
	run(&l, RMS, false, centred, "norm.rms_of_centred");
	run(&l, CRMS, false, less, "norm.crms");
	run(&l, LN, true, x.x, "ln.y");
	run(&l, RMS, true, centred, "rms.y");
	run(&l, CRMS, true, less, "crms.y");
	return GOLDEN_RAN;
}
