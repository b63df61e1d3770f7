/* See affine.h. */
#include "surgery/affine.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

int nr_affine_make(struct nr_affine *a, int64_t C, struct nr_arena *arena, struct nr_error *err)
{
	a->s = nr_arena_alloc(arena, (size_t)C * sizeof(double));
	a->t = nr_arena_alloc(arena, (size_t)C * sizeof(double));
	return a->s && a->t ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot fold the norms", NULL, "out of memory");
}

const struct nr_entry *nr_affine_part(const struct nr_store *store, const char *site, const char *what)
{
	char name[512];
	snprintf(name, sizeof name, "%s.%s", site, what);
	return nr_store_find(store, name);
}

double nr_affine_value(const struct nr_entry *e, int64_t i, double otherwise)
{
	return e ? (double)nr_value(e)[e->count == 1 ? 0 : i] : otherwise;
}

void nr_affine_running(const struct nr_store *store, const char *site, double eps, int64_t C, struct nr_affine *a)
{
	const struct nr_entry *mean = nr_affine_part(store, site, "running_mean"), *var = nr_affine_part(store, site, "running_var");
	const struct nr_entry *gain = nr_affine_part(store, site, "weight"), *bias = nr_affine_part(store, site, "bias");
	const struct nr_entry *eta = nr_affine_part(store, site, "eta");
	for (int64_t i = 0; i < C; i++) {
		const double s = nr_affine_value(gain, i, 1) / sqrt(nr_affine_value(var, i, 1) + eps);
		a->s[i] = s + nr_affine_value(eta, 0, 0);
		a->t[i] = nr_affine_value(bias, i, 0) - nr_affine_value(mean, i, 0) * s;
	}
}
