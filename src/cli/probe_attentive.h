/* norma probe --attentive: a head that pools all tokens by attention. */
#ifndef NR_CLI_PROBE_ATTENTIVE_H
#define NR_CLI_PROBE_ATTENTIVE_H

#include "analysis/attentive.h"
#include "base/json.h"
#include "model_flags.h"

struct probed_attentive { bool there; struct nr_probe_result found; int64_t samples; };
int probe_attentive(struct cli *, struct cli_opened *, struct probed_attentive *, const struct nr_attentive *, int64_t batch,
	int64_t train_limit, int64_t limit);
json_t *probe_attentive_json(const struct probed_attentive *);
void probe_attentive_print(const struct probed_attentive *);

#endif
