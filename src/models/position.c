/* See position.h. */
#include "models/position.h"

#include <stdio.h>

#include "graph/net.h"
#include "math/sincos.h"
#include "norma/nn.h"

const char *const nr_position_names[] = { "learned", "sincos", "sincos_bv", "none", NULL };

static void fill_sincos(const struct nr_entry *e, const void *conf, real *values)
{
	const struct nr_position_table *t = conf;
	(void)e;
	memset(values, 0, (size_t)(t->special * t->dim) * sizeof *values);
	if (t->kind == NR_POSITION_SINCOS) nr_sincos_mae(t->h, t->w, t->dim, t->special, values);
	else nr_sincos_bigvision(t->h, t->w, t->dim, values + t->special * t->dim);
}

/* Is the table of the present scope there, for side x side? */
static bool made_for_side(struct nr_net *n, const struct nr_position_table *t)
{
	char name[sizeof n->scope + sizeof ".pos_embed"];
	snprintf(name, sizeof name, "%s%spos_embed", n->scope, *n->scope ? "." : "");
	const struct nr_entry *e = nr_store_find(n->store, name);
	return e && t->side && (t->h != t->side || t->w != t->side) && e->count == (t->special + t->side * t->side) * t->dim;
}

static nr_t *resized(struct nr_net *n, const struct nr_position_table *t)
{
	struct nr_position_table own = *t;
	own.h = own.w = t->side;
	nr_t *table = nr_position_table(n, &own), *grid = nr_pack(n, nr_span(n, table, t->special, NR_END));
	grid = nr_resample_dino(n, nr_reshape(n, grid, NR_SHAPE(1, t->side, t->side, t->dim)), t->h, t->w);
	grid = nr_reshape(n, grid, NR_SHAPE(1, t->h * t->w, t->dim));
	return t->special ? nr_join(n, nr_span(n, table, 0, t->special), grid) : grid;
}

nr_t *nr_position_table(struct nr_net *n, const struct nr_position_table *t)
{
	if (made_for_side(n, t)) return resized(n, t);
	nr_t *pos = nr_param(n, "pos_embed", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, t->special + t->h * t->w, t->dim));
	if (!pos || t->kind == NR_POSITION_LEARNED) return pos;
	if (t->dim % 4) return nr_net_fail(n, NR_ESHAPE, "pos_embed",
		"sin-cos positions need a width divisible by 4");
	pos->entry->frozen = 1;
	nr_entry_fill(pos->entry, fill_sincos, t, sizeof *t, NULL);
	return pos;
}
