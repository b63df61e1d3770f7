/* norma probe --layers: how much of the classes each block's features tell. */
#ifndef NR_CLI_PROBE_LAYERS_H
#define NR_CLI_PROBE_LAYERS_H

#include "analysis/probe_result.h"
#include "model_flags.h"

struct probed_layers {
	int64_t layers;
	struct nr_probe_result (*found)[NR_FEATURE_KINDS];      /* (layers); tries 0: that kind is not there */
	int64_t samples;
};
/* limit: training samples, 0 is all. Features are not kept: they are of all blocks. */
int probe_layers(struct cli *, struct cli_opened *, struct probed_layers *, const struct nr_probe *, unsigned want, int64_t batch,
	int64_t train_limit, int64_t limit);
json_t *probe_layers_json(const struct probed_layers *);
void probe_layers_print(const struct probed_layers *);

#endif
