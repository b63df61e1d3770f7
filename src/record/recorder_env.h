/* env.json: where and with what a run was made. */
#ifndef NR_RECORDER_ENV_H
#define NR_RECORDER_ENV_H

#include <time.h>

#include "record/recorder.h"

/* A JSON string; bytes that are no UTF-8 become U+FFFD, for a command line may hold any. NULL is an empty one. */
json_t *nr_record_text(const char *);
/* Command, version, host, CPU, cores, threads, instruction set: what a resumed session may have changed. */
json_t *nr_record_session(const struct nr_run_info *);
/* That, and libraries, compiler, start time and the entries of the caller. */
json_t *nr_record_env(const struct nr_run_info *, time_t started);

#endif
