/* Layer-wise learning-rate decay (Clark et al. 2020; the grouping of BEiT and MAE's fine-tuning): the lower
 * the layer, the smaller its rate. */
#include <stdlib.h>
#include <string.h>

#include "norma/optim.h"

static bool starts(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

int nr_layer_id(const char *name, int depth)
{
	if (!strcmp(name, "cls_token") || !strcmp(name, "pos_embed")) return 0;
	if (starts(name, "patch_embed")) return 0;
	if (starts(name, "blocks.")) {
		char *end;
		const long i = strtol(name + 7, &end, 10);
		if (end != name + 7 && *end == '.' && i >= 0 && i < depth) return (int)i + 1;
	}
	return depth + 1;
}

double nr_layer_scale(int id, int depth, double decay) { return pow(decay, depth + 1 - id); }
