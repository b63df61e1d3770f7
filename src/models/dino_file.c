/* The head of DINO in a file, as ours or the released code's: see dino.h. */
#include <stdio.h>

#include "base/safetensors.h"
#include "models/dino.h"
#include "models/names.h"

static const struct nr_st_tensor *find(const struct nr_st_file *f, const struct nr_naming *n, const char *entry, struct nr_arena *arena)
{
	char order;
	const char *name = nr_naming_text(n, entry, &order, arena);
	const struct nr_st_tensor *t = name ? nr_st_find(f, name) : NULL;
	return t && t->nd > 0 ? t : NULL;
}

/* Layers are counted with what lies between them: an activation, or a norm and an activation. */
static bool read_sizes(struct nr_dino *o, const struct nr_st_file *f, const struct nr_naming *n, struct nr_arena *arena)
{
	const struct nr_st_tensor *v = find(f, n, "dino.last_layer.weight_v", arena), *g = find(f, n, "dino.last_layer.weight_g", arena);
	const struct nr_st_tensor *first = find(f, n, "dino.mlp.0.weight", arena), *only = find(f, n, "dino.mlp.weight", arena);
	if (!first) first = only;
	char entry[64];
	if (!v || !g || !first || v->nd != 2 || first->nd != 2) return false;
	o->head_bn = find(f, n, "dino.mlp.1.weight", arena) != NULL;
	for (o->head_layers = 1; o->head_layers < 16; o->head_layers++) {
		snprintf(entry, sizeof entry, "dino.mlp.%lld.weight", (long long)o->head_layers * (o->head_bn ? 3 : 2));
		if (!find(f, n, entry, arena)) break;
	}
	o->prototypes = v->shape[0];
	o->head_bottleneck = v->shape[1];
	o->head_hidden = first->shape[0];
	return true;
}

bool nr_dino_guess(struct nr_dino *o, const struct nr_model *m, const struct nr_st_file *f, struct nr_arena *arena)
{
	nr_option_defaults(nr_dino_options, o);
	if (read_sizes(o, f, &nr_naming_ours, arena)) return true;
	for (const struct nr_naming *n = m->namings; n->name; n++)
		if (read_sizes(o, f, n, arena)) return true;
	return false;
}
