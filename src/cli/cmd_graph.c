/* norma graph: properties of molecules. */
#include "training.h"

static const struct nr_option *table(void) { return nr_train_options_of("graph"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_training_run(c, &cli_graph, conf, args); }

const struct cli_command cli_graph = {
	.name = "graph",
	.title = "train a graph model on properties of molecules (Graphormer)",
	.usage = "[RECIPE.yaml] --data zinc12k | --data molecules:path=FILE.csv | --resume DIRECTORY",
	.about = "Learns values (absolute or squared error) or yes-or-no answers (binary cross entropy) of molecules that are given as\n"
		 "SMILES; several targets and missing ones are fine. Molecules of like sizes share a batch, and norms see no padding.\n"
		 "Evaluations are the mean absolute error in the targets' own units, or the area under the ROC curve, on the validation\n"
		 "and the test split. Settings, records, checkpoints, Ctrl-C and resuming are those of `norma train`.",
	.conf_size = sizeof(struct cli_training),
	.table = table,
	.options = cli_training_options,
	.run = run,
};
