/* See affine.h. */
#include "surgery/affine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "graph/net.h"
#include "norms/norms.h"

int nr_affine_parse(const struct nr_net *n, const char *text, struct nr_affine_norm *p, struct nr_error *err)
{
	return nr_norm_parse(text, nr_norms_eps(n), n->arena, &p->norm, &p->conf, err);
}

bool nr_affine_is(const struct nr_affine_norm *p, const char *name) { return !strcmp(p->norm->name, name); }

double nr_affine_number(const struct nr_affine_norm *p, const char *option, double otherwise)
{
	char text[32];
	const struct nr_option *o = nr_option_find(p->norm->options, option);
	if (!o) return otherwise;
	nr_option_text(o, p->conf, text, sizeof text);
	return o->type == NR_TBOOL ? !strcmp(text, "true") : strtod(text, NULL);
}

bool nr_affine_has(const struct nr_affine_norm *p, const char *option, const char *choice)
{
	char text[32];
	const struct nr_option *o = nr_option_find(p->norm->options, option);
	return o && !strcmp(nr_option_text(o, p->conf, text, sizeof text), choice);
}

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

void nr_affine_before(const struct nr_affine *a, const struct nr_affine_layer *from, const struct nr_affine_layer *to)
{
	const int64_t rows = from->weight->d[0], cols = from->weight->count / rows;
	for (int64_t r = 0; r < rows; r++) {
		double b = nr_affine_value(from->bias, r, 0);
		for (int64_t c = 0; c < cols; c++) {
			const double x = (double)nr_value(from->weight)[r * cols + c];
			nr_value(to->weight)[r * cols + c] = (real)(x * a->s[c]);
			b += x * a->t[c];
		}
		if (to->bias) nr_value(to->bias)[r] = (real)b;
	}
}

void nr_affine_behind(const struct nr_affine *a, const struct nr_affine_layer *from, const struct nr_affine_layer *to)
{
	const int64_t rows = from->weight->d[0], cols = from->weight->count / rows;
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t c = 0; c < cols; c++)
			nr_value(to->weight)[r * cols + c] = (real)((double)nr_value(from->weight)[r * cols + c] * a->s[r]);
		if (to->bias) nr_value(to->bias)[r] = (real)(a->s[r] * nr_affine_value(from->bias, r, 0) + a->t[r]);
	}
}
