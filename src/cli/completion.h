/* Completion scripts: what they share. */
#ifndef NR_CLI_COMPLETION_H
#define NR_CLI_COMPLETION_H

#include "cli.h"

void cli_completion_fish(struct cli *);         /* prints it */

#endif
