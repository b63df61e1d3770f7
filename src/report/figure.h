/* Figures of lines over arms: what was recorded of each run becomes one line of its arm in bold, with a band from the least to the
 * largest seed. In the page they are drawn twice: as SVG, for paper and without scripts, and from their numbers by the script,
 * which zooms. A caption says who ends where. */
#ifndef NR_FIGURE_H
#define NR_FIGURE_H

#include "draw/svg.h"
#include "report/arms.h"

struct nr_points { double *x, *y, *lo, *hi; int64_t n; };       /* by rising x; lo, hi NULL: no band */

enum nr_told { NR_AT_END, NR_IN_THE_MIDDLE };                   /* where a caption compares the arms */

struct nr_lines {
	const char *title, *unit, *x_label;
	enum nr_y_scale scale;
	double factor, floor;                   /* of y; below floor, on a log axis, is rounding. floor 0: nothing is */
	bool noisy;                             /* it is smoothed if it is long */
	bool x_whole;
	enum nr_told told;
	const char *says;                       /* what to see, after the numbers; NULL: nothing more */
	/* The line of one run; n 0: it has none. */
	struct nr_points (*of)(const struct nr_lines *, const struct nr_runfolder *, struct nr_arena *);
	const char *unless;                     /* a column of metrics.csv that shows the same better; NULL: none */
	const char *key;                        /* for of: a column, ... */
	int kind;                               /* likewise */
	const void *more;                       /* likewise */
};

/* 1 if any run has something to draw. */
int nr_figure(struct nr_str *, const struct nr_arms *, const struct nr_lines *, struct nr_arena *);
/* x and y have room for so many; NULL pointers when out of memory. */
struct nr_points nr_points_make(int64_t room, struct nr_arena *);

#endif
