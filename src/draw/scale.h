/* Axes of a drawing: which range to show, where round ticks lie, how a value becomes a pixel, and which of many points to draw. */
#ifndef NR_SCALE_H
#define NR_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NR_MAX_TICKS = 24 };

struct nr_ruler {
	double lo, hi;                          /* what is shown; lo < hi, both finite, both > 0 if log */
	bool log;
	double from, to;                        /* the pixels of lo and hi */
};

/* Whether a value has a place on such an axis: finite, not absurd, and positive if log. */
bool nr_ruler_takes(bool log, double v);
/* The range for values from lo to hi (both taken): one that is constant, or nearly so, is widened about its value. */
void nr_ruler_fit(struct nr_ruler *, double lo, double hi, bool log);
double nr_ruler_at(const struct nr_ruler *, double v);
/* About `about` multiples of 1, 2 or 5 powers of ten inside the range; on a log axis powers of ten, with 2 and 5 if it is short.
 * *step: their distance, 0 on a log axis. Returns how many, at least one. */
int nr_ruler_ticks(const struct nr_ruler *, int about, double tick[NR_MAX_TICKS], double *step);
/* "0.25", "12 000", "2×10⁻³⁰": enough digits for ticks this far apart (0: as few as tell it); returns buf. */
const char *nr_tick_text(double v, double step, char *buf, size_t size);

/* The value with three digits. */
const char *nr_short_text(double v, char *buf, size_t size);

/* Which of n points to draw so that the line looks the same: of each bucket the least, the largest and, as a break, one that is
 * not taken by the axis. keep has room for 3 * buckets + 2; returns how many, in rising order. */
int64_t nr_thin(const double *y, int64_t n, int64_t buckets, bool log, int64_t *keep);

#endif
