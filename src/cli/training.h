/* The commands of the tasks: train, pretrain and their like; and what finetune shares with them. */
#ifndef NR_CLI_TRAINING_H
#define NR_CLI_TRAINING_H

#include "cli.h"
#include "norma/trainer.h"

struct cli_training { struct nr_train train; bool resume, force, json; };      /* train first: its table has its offsets */

struct cli_command cli_training_command(const struct nr_task *);
/* Trains with settings of the command's table. */
int cli_train_with(struct cli *, const struct cli_command *, const struct nr_train *, bool json);

#endif
