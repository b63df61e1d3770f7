/* norma simcse: sentence embeddings by contrast. */
#include "training.h"

static const struct nr_option *table(void) { return nr_train_options_of("simcse"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_training_run(c, &cli_simcse, conf, args); }

const struct cli_command cli_simcse = {
	.name = "simcse",
	.title = "train sentence embeddings by contrast (SimCSE)",
	.usage = "[RECIPE.yaml] --data text:path=FILE --init MODEL | --resume DIRECTORY",
	.about = "With one sentence a line, a sentence passes twice under other dropout masks and finds itself among the others of its\n"
		 "batch. A CSV of pairs gives positives, one of triplets hard negatives too (sent0,sent1,hard_neg). --init takes a\n"
		 "model of Hugging Face's or one of `norma mlm`. STS-B's development pairs choose the best checkpoint if they are there\n"
		 "(--sts). Settings, records, checkpoints, Ctrl-C and resuming are those of `norma train`.",
	.conf_size = sizeof(struct cli_training),
	.table = table,
	.options = cli_training_options,
	.run = run,
};
