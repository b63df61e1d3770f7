/* The command as a process: its descriptors and signals. */
#ifndef NR_CLI_PROCESS_H
#define NR_CLI_PROCESS_H

#include <stdbool.h>

/* Before anything is opened. false: /dev/null cannot be opened in the place of a closed standard stream. */
bool cli_process_open(void);
/* Calls the handler for Ctrl-C, SIGTERM and the terminal's end (SIGHUP). */
void cli_on_stop(void (*handler)(int));

#endif
