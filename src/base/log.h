/* The log: one line per message to a stream that the command chose. Silent until nr_log_open; a library user
 * hears nothing. */
#ifndef NR_LOG_H
#define NR_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "norma/err.h"

enum nr_level { NR_LOG_ERROR, NR_LOG_WARNING, NR_LOG_INFO, NR_LOG_DEBUG };

/* Messages up to level go to sink (NULL: none). Not while other threads log. */
void nr_log_open(FILE *sink, enum nr_level);
bool nr_log_wants(enum nr_level);
/* "norma: warning: text"; info has no prefix, debug has seconds since nr_log_open. Any thread may call it. */
void nr_log_line(enum nr_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Called before each line: a progress bar clears itself from the terminal. NULL to stop. */
void nr_log_before(void (*fn)(void *), void *arg);

#endif
