/* norma train: from settings (flags, a recipe, or both) to a trained model and its record. */
#include "training.h"

static const struct nr_option *table(void) { return nr_train_options_of("classify"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_training_run(c, &cli_train, conf, args); }

const struct cli_command cli_train = {
	.name = "train",
	.title = "train a classifier of pictures",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Trains a model on a data set and leaves a run directory: checkpoints, metrics as CSV, JSON lines and\n"
		 "TensorBoard events, every setting, and a row in the run store. Settings come from flags, from a recipe\n"
		 "(YAML with the flags' names as keys), or from both: flags count more.\n\n"
		 "Ctrl-C finishes the step, writes a checkpoint and says how to go on; --resume continues with the same\n"
		 "bits as if nothing had happened, also after a kill. A loss that is not finite stops the run with exit\n"
		 "code 3, names the first bad site and leaves the last checkpoint whole.",
	.conf_size = sizeof(struct cli_training),
	.table = table,
	.options = cli_training_options,
	.run = run,
};
