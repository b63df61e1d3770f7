/* metrics/layer_decay: layer number, rate factor and weight decay of each parameter of a ViT, by name. */
#include <string.h>

#include "golden/check.h"
#include "norma/optim.h"

/* Only matrices decay: not biases, norms, tokens, position tables. Names stand for dimensions here. */
static bool decays(const char *name)
{
	const size_t n = strlen(name);
	return n > 7 && !strcmp(name + n - 7, ".weight") && !strstr(name, "norm");
}

int golden_metric_layer_decay(struct golden_case *c)
{
	const double decay = golden_number(c, "layer_decay"), wd = golden_number_or(c, "weight_decay", .05);
	const int depth = (int)golden_number(c, "depth");
	const json_t *names = json_object_get(c->config, "names");
	const int64_t n = (int64_t)json_array_size(names);
	int32_t *id = golden_alloc(c, n, sizeof *id);
	real *scale = golden_reals(c, n), *rate = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(names, (size_t)i));
		if (!name) golden_stop(c, NULL, "config 'names' holds something else than names");
		id[i] = nr_layer_id(name, depth);
		scale[i] = (real)nr_layer_scale(id[i], depth, decay);
		rate[i] = (real)(decays(name) ? wd : 0);
	}
	golden_check_ints(c, id, n, "layer_id");
	golden_check(c, "out", scale, n, "lr_scale");
	golden_check(c, "out", rate, n, "weight_decay");
	return GOLDEN_RAN;
}
