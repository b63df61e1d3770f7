/* Drawings as SVG, in a page or a file. Each arm has a colour (paint.h), a dash and a marker of its own, so that nothing is told by
 * colour alone. */
#ifndef NR_SVG_H
#define NR_SVG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "draw/paint.h"

/* What a drawing measures in its own pixels; in a page the style may give it another width. */
struct nr_size { double w, h; };

enum nr_y_scale { NR_LINEAR, NR_LOG, NR_LOG_IF_WIDE };    /* wide: all positive and over more than a decade */
enum nr_weight { NR_THIN, NR_BOLD, NR_DOTS };             /* dots: markers without a line, large where it has a label */

/* Points by rising x; one that has no place on its axis is left out and breaks the line. */
struct nr_series {
	const char *label;                      /* at its end, if bold; NULL: none */
	const double *x, *y;
	const double *lo, *hi;                  /* NULL, or what y may be: a band behind a line, a bar through a dot */
	int64_t n;
	int arm;                                /* from 0: colour, dash and marker */
	enum nr_weight weight;
};

struct nr_chart {
	const char *name;                       /* for readers who do not see it */
	const char *x_label, *y_label;
	enum nr_y_scale scale;                  /* of y */
	double floor;                           /* log: values below it are not drawn; 0: no limit */
	bool x_log;                             /* x too, if all are positive */
	bool x_whole;                           /* x counts things: ticks at whole numbers only */
	const struct nr_series *series;
	int count;
};

/* The beginning of a drawing, "<svg ..." with its name, for attributes and ">" of the caller's. */
void nr_svg_open(struct nr_str *, const char *name, struct nr_size);
/* A text at x, y; its class and colour as for nr_paint; anchor: start, middle or end. NULL is empty. */
void nr_svg_text_in(struct nr_str *, const char *class_, int colour, const char *anchor, double x, double y, const char *text);
void nr_svg_text(struct nr_str *, const char *class_, const char *anchor, double x, double y, const char *text);
/* The beginning of a path, up to its points, which the caller writes and ends with "/>. */
void nr_svg_path(struct nr_str *, const char *class_, int colour);
/* What every drawing says where there is nothing to draw. */
void nr_svg_nothing(struct nr_str *, struct nr_size);

/* A line chart that fills the width it is given; says so if there is nothing to draw. */
struct nr_size nr_svg_chart(struct nr_str *, const struct nr_chart *);
/* Whether its y axis is a log one. */
bool nr_chart_is_log(const struct nr_chart *);
/* The marker of an arm about a point. */
void nr_svg_marker(struct nr_str *, int arm, double x, double y);
/* A short piece of an arm's line with its marker, for legends. */
void nr_svg_sample(struct nr_str *, int arm);

#endif
