/* A progress bar on a terminal; off a terminal nothing is written.
 *   train ━━━━━━━━━━──────────  50% 500/1000  12.3/s  40.7 s left  loss 0.312 */
#ifndef NR_PROGRESS_H
#define NR_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct nr_str;

struct nr_progress {
	FILE *out;             /* NULL: silent */
	const char *label;
	int64_t total, first;  /* first: where a resumed run began, so that its rate is true */
	int64_t done;
	double start, drawn;   /* nr_clock of the start and of the last drawing */
	bool utf8, shown;
	char suffix[160];      /* metrics */
};

/* Caller's storage; label must outlive it. Silent if out is NULL or no terminal. The log clears the bar
 * before its lines. */
void nr_progress_init(struct nr_progress *, FILE *out, const char *label, int64_t total, int64_t first);
/* Draws at most ten times a second, and at the end. fmt gives the metrics, NULL keeps the last ones. */
void nr_progress_update(struct nr_progress *, int64_t done, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void nr_progress_release(struct nr_progress *);  /* clears the bar */
/* The line that would be drawn at this time on a terminal of so many columns. */
void nr_progress_line(const struct nr_progress *, double now, int columns, struct nr_str *);

#endif
