/* See position.h. */
#include "models/position.h"

#include "math/sincos.h"

const char *const nr_position_names[] = { "learned", "sincos", "sincos_bv", "none", NULL };

static void fill_sincos(const struct nr_entry *e, const void *conf, real *values)
{
	const struct nr_position_table *t = conf;
	(void)e;
	memset(values, 0, (size_t)(t->special * t->dim) * sizeof *values);
	if (t->kind == NR_POSITION_SINCOS) nr_sincos_mae(t->h, t->w, t->dim, t->special, values);
	else nr_sincos_bigvision(t->h, t->w, t->dim, values + t->special * t->dim);
}

nr_t *nr_position_table(struct nr_net *n, const struct nr_position_table *t)
{
	nr_t *pos = nr_param(n, "pos_embed", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, t->special + t->h * t->w, t->dim));
	if (!pos || t->kind == NR_POSITION_LEARNED) return pos;
	if (t->dim % 4) return nr_net_fail(n, NR_ESHAPE, "pos_embed",
		"sin-cos positions need a width divisible by 4");
	pos->entry->frozen = 1;
	nr_entry_fill(pos->entry, fill_sincos, t, sizeof *t, NULL);
	return pos;
}
