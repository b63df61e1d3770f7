/* Points in the plane by class, and quantiles as bars. */
#ifndef NR_SCATTER_H
#define NR_SCATTER_H

#include "draw/svg.h"

struct nr_scatter {
	const char *name, *x_label, *y_label;   /* labels NULL: none, e.g. where the axes have no meaning */
	int64_t n;
	const double *at;                       /* (n,2); points that are not finite are left out */
	const int32_t *group;                   /* (n) from 0; less: no group. NULL: all are of group 0 */
	int32_t groups;
	const char *const *group_name;          /* NULL: numbers */
	const double *value;                    /* (n): colours go by its size, from dark to bright, instead of by group; NULL: by group */
	const char *value_name;
	bool legend;
	double side;                            /* pixels of the square; 0: 340 */
	bool diagonal;                          /* the line on which both coordinates are equal, and numbers along the axes */
	double circle;                          /* drawn about the origin, of this radius; 0: none */
	double reach;                           /* both axes go from -reach to reach; 0: as far as the points */
};
/* A square with the same scale on both axes; groups differ in colour and in shape. The legend of values is a bar. */
struct nr_size nr_svg_scatter(struct nr_str *, const struct nr_scatter *);

/* Five rising quantiles of each of n things, such as the dimensions of an embedding, for some groups beside each other. */
struct nr_bands_of { const char *label; const double *q; };     /* (n,5); not finite: no bar */
struct nr_bands {
	const char *name, *x_label, *y_label;
	int64_t n;
	const struct nr_bands_of *of;
	int count;
};
/* The outer two as a pale bar, the middle three as a full one with a gap at the median. */
struct nr_size nr_svg_bands(struct nr_str *, const struct nr_bands *);

#endif
