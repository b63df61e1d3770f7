/* What the commands that train share: train, pretrain, finetune. */
#ifndef NR_CLI_TRAINING_H
#define NR_CLI_TRAINING_H

#include "cli.h"
#include "norma/trainer.h"

struct cli_training { struct nr_train train; bool resume, json; };      /* train first: its table has its offsets */
extern const struct nr_option cli_training_options[];           /* resume, json */

/* A command whose table is nr_train_options_of its task and whose conf is the struct above. */
int cli_training_run(struct cli *, const struct cli_command *, const void *conf, const struct nr_list *args);
/* Trains with settings of the command's table. */
int cli_train_with(struct cli *, const struct cli_command *, const struct nr_train *, bool json);

#endif
