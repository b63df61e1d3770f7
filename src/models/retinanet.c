/* See retinanet.h. */
#include "models/retinanet.h"

#include "base/mem.h"
#include "graph/net.h"
#include "models/stages.h"
#include "norma/nn.h"

bool nr_anchor_grid_of(struct nr_net *n, const struct nr_anchor_plan *p, nr_t *const *map, int levels, int64_t h, int64_t w,
	struct nr_anchor_grid *g)
{
	*g = (struct nr_anchor_grid){ .levels = levels, .shapes = p->ratios * p->sizes };
	if (levels < 1 || levels > NR_ANCHOR_LEVELS || g->shapes < 1 || g->shapes > NR_ANCHOR_SHAPES) {
		nr_net_fail(n, NR_EVALUE, "anchors", "%d of %d levels: at most %d of %d", g->shapes, levels, NR_ANCHOR_SHAPES,
			NR_ANCHOR_LEVELS);
		return false;
	}
	for (int l = 0; l < levels; l++) {
		struct nr_anchor_level *own = &g->level[l];
		if (!map[l]) return false;
		own->h = map[l]->tok->h, own->w = map[l]->tok->w;
		own->dx = p->stride[l] > 0 ? p->stride[l] : (double)(w / own->w);
		own->dy = p->stride[l] > 0 ? p->stride[l] : (double)(h / own->h);
		nr_anchor_shapes(own, p->ratios, p->ratio, p->sizes, p->size[l], p->rounded);
	}
	return true;
}

static struct nr_entry *entry_of(struct nr_net *n, const char *name, const char *part)
{
	const char *full = nr_arena_printf(n->arena, "%s%s%s.%s", n->scope, *n->scope ? "." : "", name, part);
	return full ? nr_store_find(n->store, full) : NULL;
}

void nr_small_start(struct nr_net *n, const char *name, double bias)
{
	struct nr_entry *weight = entry_of(n, name, "weight"), *b = entry_of(n, name, "bias");
	if (weight) weight->init = NR_NORMAL_02 | (weight->init & ~NR_INIT_KIND), weight->gain = .5, weight->gain_from = 0;
	if (b && bias != 0) b->init = NR_ONES | NR_NO_DECAY, b->value = bias;
}

nr_t *nr_tower(struct nr_net *n, const char *site, nr_t *map, int64_t dim, int64_t convs)
{
	for (int64_t i = 0; i < convs; i++) {
		nr_push_nth(n, "tower", i, convs);
		map = nr_map_conv(n, site, map, (struct nr_map_conv){ .out = dim, .k = 3, .stride = 1, .relu = true });
		nr_pop(n, map);
	}
	return map;
}

nr_t *nr_anchor_head(struct nr_net *n, const char *name, nr_t *map, int64_t shapes, int64_t each, int64_t k)
{
	nr_t *y = nr_conv(n, name, nr_as_grid(n, map), shapes * each, k, 1, k / 2, 1, 1);
	return y ? nr_reshape(n, y, NR_SHAPE(y->d[0], y->d[1] * y->d[2] * shapes, each)) : NULL;
}

nr_t *nr_join_levels(struct nr_net *n, nr_t *const *x, int count)
{
	nr_t *all = x[0];
	for (int i = 1; i < count; i++) all = nr_join(n, all, x[i]);
	return all;
}

void nr_retinanet(struct nr_net *n, const struct nr_retinanet *o, nr_t *const *level, int count, int64_t h, int64_t w,
	struct nr_retinanet_graph *g)
{
	nr_t *logit[NR_MAXLEVELS] = { NULL }, *offset[NR_MAXLEVELS] = { NULL };
	*g = (struct nr_retinanet_graph){ 0 };
	g->levels = nr_fpn(n, &o->neck, level, count, g->map);
	if (!g->levels || !nr_anchor_grid_of(n, &o->anchors, g->map, g->levels, h, w, &g->grid)) return;
	for (int l = 0; l < g->levels; l++) {
		nr_t *c = nr_tower(n, "head.class", g->map[l], o->neck.dim, o->convs);
		logit[l] = nr_anchor_head(n, "head.class.out", c, g->grid.shapes, o->classes, 3);
		nr_t *b = nr_tower(n, "head.box", g->map[l], o->neck.dim, o->convs);
		offset[l] = nr_anchor_head(n, "head.box.out", b, g->grid.shapes, 4, 3);
	}
	g->logit = nr_join_levels(n, logit, g->levels);
	g->offset = nr_join_levels(n, offset, g->levels);
	nr_small_start(n, "head.class.out", -log((1 - o->prior) / o->prior));
	nr_small_start(n, "head.box.out", 0);
}

nr_t *nr_retinanet_loss(struct nr_net *n, const struct nr_retinanet *o, struct nr_retinanet_graph *g, nr_t *truth, nr_t *classes)
{
	const struct nr_anchor_rule rule = { .grid = g->grid, .match = o->match, .mean = o->mean, .every = 1 };
	g->weight = nr_anchor_match(n, truth, classes, &rule, &g->match);
	g->class_loss = nr_tap(n, "class_loss", nr_focal_loss(n, g->logit, g->match, g->weight, classes, o->focal));
	g->box_loss = nr_tap(n, "box_loss", nr_anchor_box_loss(n, g->offset, g->match, g->weight, truth, &g->grid, o->cost));
	return nr_add(n, g->class_loss, g->box_loss);
}

nr_t *nr_retinanet_detections(struct nr_net *n, const struct nr_retinanet *o, struct nr_retinanet_graph *g, nr_t *size, nr_t **score,
	nr_t **label)
{
	return nr_anchor_detections(n, g->logit, g->offset, size, &g->grid, o->rule, score, label);
}
