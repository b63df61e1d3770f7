/* Intervals of 95 %: over a few runs by Student's t, over test samples by Wilson's score. */
#ifndef NR_INTERVAL_H
#define NR_INTERVAL_H

#include <stdint.h>

enum nr_interval { NR_NO_INTERVAL, NR_OVER_RUNS, NR_OVER_SAMPLES };
struct nr_estimate { double mean, lo, hi; int64_t n; enum nr_interval over; };       /* n: runs or samples; lo, hi: NAN without */

/* Of values that are all finite; no interval for a single one, mean NAN for none. */
struct nr_estimate nr_estimate_runs(const double *, int64_t n);
/* Of a share of successes among so many samples. */
struct nr_estimate nr_estimate_share(double share, int64_t samples);

#endif
