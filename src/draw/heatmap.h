/* Numbers as colours, from dark blue over green to yellow: one labelled matrix, or many small maps and pictures beside each other. */
#ifndef NR_HEATMAP_H
#define NR_HEATMAP_H

#include "draw/svg.h"

/* The colour of a share of the range, 0xRRGGBB. */
uint32_t nr_heat(double share);

struct nr_heatmap {
	const char *name;                       /* for readers who do not see it */
	const char *x_label, *y_label;          /* what columns and rows are; NULL: nothing */
	int64_t rows, cols;
	const double *value;                    /* (rows,cols); one that is not finite is left blank */
	const char *const *row_label, *const *col_label;        /* NULL: numbers from 0 */
	double low, high;                       /* of the colours; both 0: the range of the values */
};
/* With the values in the cells where there is room, and a bar that tells the colours. */
struct nr_size nr_svg_heatmap(struct nr_str *, const struct nr_heatmap *);

/* One small map: numbers, or the pixels of a picture; both NULL: the place stays empty. */
struct nr_tile {
	int64_t h, w;
	const double *value;                    /* (h,w) */
	const uint8_t *rgb;                     /* (h,w,3) */
};
struct nr_tiles {
	const char *name;
	int64_t rows, cols;
	const struct nr_tile *tile;             /* (rows,cols) */
	const char *const *row_label, *const *col_label;        /* NULL: none */
	bool one_range;                         /* all maps share their colours; else each has its own range, told below it */
};
struct nr_size nr_svg_tiles(struct nr_str *, const struct nr_tiles *);

#endif
