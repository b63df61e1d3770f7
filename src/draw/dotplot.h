/* Every value of a few groups, such as the seeds of each arm: a row for each group, a dot for each value, and the mean with what it
 * may be. */
#ifndef NR_DOTPLOT_H
#define NR_DOTPLOT_H

#include "draw/svg.h"

struct nr_dot_row {
	const char *label;                      /* to the left */
	const double *value;                    /* (n); one that is not finite is left out */
	int64_t n;
	double mean, lo, hi;                    /* NAN: none */
	int arm;                                /* from 0: colour and marker */
};
struct nr_dotplot { const char *name, *x_label; const struct nr_dot_row *row; int count; };

struct nr_size nr_svg_dotplot(struct nr_str *, const struct nr_dotplot *);

#endif
