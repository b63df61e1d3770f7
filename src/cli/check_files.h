/* Files of `norma check`. */
#ifndef NR_CLI_CHECK_FILES_H
#define NR_CLI_CHECK_FILES_H

#include <stdio.h>
#include <sys/types.h>

#include "cli.h"

/* A folder of its own for what is compiled and trained. */
int check_folder_make(struct cli *, char **dir);
void check_folder_remove(const char *dir);
/* Compiles a source for both precisions into dir and loads the plug-in. */
int check_compile(struct cli *, const char *source, const char *dir);

struct check_twin { FILE *out; pid_t pid; };
/* Starts the program in double on these names, with the twins of all plug-ins that are loaded. */
int check_twin_start(struct cli *, const struct nr_list *names, struct check_twin *);
void check_twin_end(struct check_twin *);

#endif
