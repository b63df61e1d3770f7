/* Locks of open files: how a reader learns whether a run or a study is still being written. */
#ifndef NR_LOCK_H
#define NR_LOCK_H

#include <stdbool.h>

/* Whether some process holds the lock of this file. */
bool nr_file_locked(const char *path);

#endif
