/* See ragged.h. */
#include "analysis/ragged.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

struct one { struct nr_net *net; struct nr_plan *plan; nr_t *x, *valid, *y; };

int64_t nr_ragged_length(int64_t T, int64_t special, int64_t b, int64_t B, double least)
{
	const double share = B > 1 ? 1 - (1 - least) * (double)b / (double)(B - 1) : least;
	const int64_t kept = (int64_t)llround(share * (double)(T - special));
	return special + (kept < 1 ? 1 : kept);
}

/* Parameters are those of the model: the store has them under the site's name. */
static int open_norm(struct one *o, const struct nr_weights *w, const char *site, const char *norm, struct nr_tokens tok,
	const int64_t d[3], struct nr_error *err)
{
	if (!(o->net = nr_net_make(w->store))) return nr_fail(err, NR_EMEMORY, "cannot try the norm", site, "out of memory");
	if (nr_norms_use(o->net, w->norms, &w->model.norms, err)) return err->code;
	o->x = nr_input(o->net, "x", NR_REAL, NR_SHAPE(d[0], d[1], d[2]));
	o->valid = nr_input(o->net, "valid", NR_I32, NR_SHAPE(d[0]));
	tok.valid = o->valid;
	tok.pos = NULL;
	o->y = nr_norm_make(o->net, site, norm, nr_with_tokens(o->net, o->x, tok));
	return nr_plan_make(&o->plan, o->net, o->y, 0, err);
}

static double length(int64_t C, const real *x, const real *from)
{
	double s = 0;
	for (int64_t c = 0; c < C; c++) {
		const double d = (double)x[c] - (from ? (double)from[c] : 0);
		s += d * d;
	}
	return sqrt(s);
}

static double compare(const struct one *o, const real *whole, int64_t B, int64_t T, int64_t C, const int32_t *valid)
{
	const real *y = nr_plan_data(o->plan, o->y);
	double sum = 0;
	int64_t count = 0;
	for (int64_t i = 0; i < B * T; i++) {
		if (i % T >= valid[i / T]) continue;
		const double size = length(C, whole + i * C, NULL);
		sum += size > 0 ? length(C, y + i * C, whole + i * C) / size : 0;
		count++;
	}
	return sum / (double)count;
}

int nr_ragged_change(const struct nr_weights *w, const char *site, const char *norm, const struct nr_tokens *tok, int64_t B, int64_t T,
	int64_t C, const real *x, double least, double *change, struct nr_error *err)
{
	struct one o = { 0 };
	const struct nr_exec ex = { .train = 1 };
	real *whole = malloc((size_t)(B * T * C) * sizeof *whole);
	int code = whole ? open_norm(&o, w, site, norm, *tok, (const int64_t[]){ B, T, C }, err)
			 : nr_fail(err, NR_EMEMORY, "cannot try the norm", site, "out of memory");
	if (!code) {
		int32_t *valid = nr_plan_data(o.plan, o.valid);
		memcpy(nr_plan_data(o.plan, o.x), x, (size_t)(B * T * C) * sizeof *x);
		for (int64_t b = 0; b < B; b++) valid[b] = (int32_t)T;
		nr_plan_run(o.plan, &ex, NR_RUN_FORWARD);
		memcpy(whole, nr_plan_data(o.plan, o.y), (size_t)(B * T * C) * sizeof *whole);
		for (int64_t b = 0; b < B; b++) valid[b] = (int32_t)nr_ragged_length(T, tok->special, b, B, least);
		memcpy(nr_plan_data(o.plan, o.x), x, (size_t)(B * T * C) * sizeof *x);
		nr_plan_run(o.plan, &ex, NR_RUN_FORWARD);
		*change = compare(&o, whole, B, T, C, valid);
	}
	nr_plan_free(o.plan);
	nr_net_free(o.net);
	free(whole);
	return code;
}
