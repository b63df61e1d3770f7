/* The files NAME.c.in of this folder, embedded at build: norm.c.in is cli_new_norm_c_in. */
#ifndef NR_CLI_TEMPLATES_H
#define NR_CLI_TEMPLATES_H

extern const char cli_new_norm_c_in[], cli_new_model_c_in[], cli_new_task_c_in[], cli_new_optimizer_c_in[], cli_new_data_c_in[];

#endif
