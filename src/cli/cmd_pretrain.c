/* norma pretrain: self-supervision on pictures: MAE, U-MAE. */
#include "training.h"

static const struct nr_option *table(void) { return nr_train_options_of("mae"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_training_run(c, &cli_pretrain, conf, args); }

const struct cli_command cli_pretrain = {
	.name = "pretrain",
	.title = "pre-train an encoder of pictures without labels (MAE, U-MAE)",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Masks most patches of each picture, encodes the rest and learns to reconstruct what was masked; --uniform adds\n"
		 "U-MAE's term, which spreads the embeddings. A norm plan covers encoder and decoder (sites decoder.*), so that\n"
		 "\"sep(bn,ln) decoder.*=ln\" is SepNorm in the encoder alone. Settings, records, checkpoints, Ctrl-C and resuming\n"
		 "are those of `norma train`.\n\n"
		 "Each evaluation measures the reconstruction of held-out pictures, draws some of them (pictures/mae-STEP.png: original,\n"
		 "masked, reconstructed), and how far the embeddings have collapsed: uniformity (0 is total collapse, about -4 is\n"
		 "evenly spread) and effective rank of [CLS] and of patch tokens. `norma probe` then tells what they are worth.",
	.conf_size = sizeof(struct cli_training),
	.table = table,
	.options = cli_training_options,
	.run = run,
};
