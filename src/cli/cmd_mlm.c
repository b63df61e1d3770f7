/* norma mlm: BERT's and RoBERTa's pre-training on a text file. */
#include "training.h"

static const struct nr_option *table(void) { return nr_train_options_of("mlm"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_training_run(c, &cli_mlm, conf, args); }

const struct cli_command cli_mlm = {
	.name = "mlm",
	.title = "pre-train a text model on masked words (BERT, RoBERTa)",
	.usage = "[RECIPE.yaml] --data text:path=FILE --tokenizer VOCAB | --resume DIRECTORY",
	.about = "Masks some words of every line and learns to predict them; --nsp adds BERT's question whether a sentence follows\n"
		 "another. Lines are sorted by length within windows of batches, so that little is padded; a norm sees no padding.\n"
		 "Settings, records, checkpoints, Ctrl-C and resuming are those of `norma train`. The run's folder gets the tokenizer's\n"
		 "files, so that `norma embed` and `norma simcse --init` need nothing else.",
	.conf_size = sizeof(struct cli_training),
	.table = table,
	.options = cli_training_options,
	.run = run,
};
