/* Drawings as a file of its own: a title, panels from left to right and from top to bottom, and a caption that says what to see.
 *
 *   struct nr_sheet s = { 0 };
 *   nr_sheet_put(&s, "uniformity", nr_svg_chart(&s.panel, &chart)); nr_sheet_row(&s); ...
 *   nr_sheet_save(&s, dir, "layers.svg", "Layers", "What to see.", &err);
 *
 * The file brings its own style, for light and for dark. */
#ifndef NR_SHEET_H
#define NR_SHEET_H

#include "draw/svg.h"
#include "norma/err.h"

struct nr_sheet {
	struct nr_str panel;                    /* the drawing that is being made */
	struct nr_str body;
	double x, y, tall, wide;
	bool bare;                              /* title and caption are not drawn, for papers, which set them */
};
/* The drawing in panel, of this size, goes to the right of the last one; title NULL: none. */
void nr_sheet_put(struct nr_sheet *, const char *title, struct nr_size);
void nr_sheet_row(struct nr_sheet *);           /* the next one begins a row */
void nr_sheet_add(struct nr_sheet *, const char *title, const char *caption, struct nr_str *);   /* the text of the file */
/* Writes dir/name and releases the sheet, also after a failure. */
int nr_sheet_save(struct nr_sheet *, const char *dir, const char *name, const char *title, const char *caption, struct nr_error *);
void nr_sheet_release(struct nr_sheet *);

#endif
