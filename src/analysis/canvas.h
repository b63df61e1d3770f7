/* Small drawings as PNG: tiles of numbers as colours, bands and lines. Colours are told apart by the colour-blind too. */
#ifndef NR_CANVAS_H
#define NR_CANVAS_H

#include "norma/data.h"

enum { NR_BLUE = 0x0072b2, NR_RED = 0xd55e00, NR_GREY = 0x999999, NR_PALE = 0xdddddd, NR_BLACK = 0x222222 };
enum { NR_LETTER_W = 8, NR_LETTER_H = 10 };

int nr_canvas_open(struct nr_picture *, int64_t w, int64_t h, struct nr_error *);  /* white; release as any picture */
/* What lies outside of the picture is cut off. share: 1 covers, less lets what is below shine through. */
void nr_canvas_fill(struct nr_picture *, int64_t x, int64_t y, int64_t w, int64_t h, uint32_t rgb, double share);
void nr_canvas_line(struct nr_picture *, double x0, double y0, double x1, double y1, uint32_t rgb);
/* Digits, capitals and a few signs; other letters are blank, small ones become capitals. */
void nr_canvas_text(struct nr_picture *, int64_t x, int64_t y, uint32_t rgb, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* From dark blue (0) over green to yellow (1). */
uint32_t nr_heat(double share);

/* rows x cols tiles of h x w numbers each, value (rows,cols,h,w); every tile has its own range, which is
 * written below it. Labels may be NULL. */
struct nr_tiles {
	int64_t rows, cols, h, w;
	const double *value;
	const char *const *row_label, *const *col_label;
};
int nr_tiles_draw(const struct nr_tiles *, const char *title, const char *path, struct nr_error *);

/* A frame with its range of y written beside it. */
struct nr_frame { int64_t x, y, w, h; double low, high; };
void nr_frame_draw(struct nr_picture *, const struct nr_frame *, const char *title);
double nr_frame_y(const struct nr_frame *, double value);
/* n values over the width of the frame; those that are not finite break the line. */
void nr_frame_curve(struct nr_picture *, const struct nr_frame *, int64_t n, const double *y, uint32_t rgb);
/* Widens the range so that it holds the finite ones of the values. Begin with low = INFINITY, high = -INFINITY. */
void nr_frame_hold(struct nr_frame *, int64_t n, const double *y);

#endif
