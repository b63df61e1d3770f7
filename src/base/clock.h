/* Time: a clock that never goes back, and times as people write them. */
#ifndef NR_CLOCK_H
#define NR_CLOCK_H

#include <stddef.h>
#include <time.h>

/* Seconds since some fixed moment. */
double nr_clock(void);
/* "850 ms", "12.3 s", "2 min 05 s", "3 h 07 min"; returns buf. */
const char *nr_duration_text(double seconds, char *buf, size_t size);
/* "2025-01-31T12:00:00Z"; returns buf. */
const char *nr_time_text(time_t, char *buf, size_t size);

#endif
