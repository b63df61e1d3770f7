/* What the parts of a drawing look like. Each has a class and, as attributes, the colours of a light page: attributes are all that
 * librsvg, Inkscape and LaTeX need, and a style, be it the page's or that of the dark (nr_paint_dark), overrides them. */
#ifndef NR_PAINT_H
#define NR_PAINT_H

#include "base/str.h"

enum { NR_COLOURS = 8 };
enum { NR_NO_COLOUR = -1 };

/* class="l bold s3" and what it looks like; class_: words of the table in paint.c. The colour is one of the palette, or none. */
void nr_paint(struct nr_str *, const char *class_, int colour);
/* The attributes of a whole drawing: its letters. */
void nr_paint_letters(struct nr_str *);
/* The style of a file for readers with a dark screen. */
extern const char nr_paint_dark[];

#endif
