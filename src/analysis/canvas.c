/* Drawings as PNG. See canvas.h. */
#include "analysis/canvas.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ZOOM = 2, MARGIN = 12, TILE = 144 };

int nr_canvas_open(struct nr_picture *p, int64_t w, int64_t h, struct nr_error *err)
{
	*p = (struct nr_picture){ 0 };
	if (nr_picture_resize(p, (int32_t)h, (int32_t)w, 3, err)) return err->code;
	memset(p->pixels, 255, (size_t)(w * h * 3));
	return NR_OK;
}

void nr_canvas_fill(struct nr_picture *p, int64_t x, int64_t y, int64_t w, int64_t h, uint32_t rgb, double share)
{
	for (int64_t i = y < 0 ? 0 : y; i < y + h && i < p->h; i++)
		for (int64_t j = x < 0 ? 0 : x; j < x + w && j < p->w; j++)
			for (int k = 0; k < 3; k++) {
				uint8_t *v = p->pixels + (i * p->w + j) * 3 + k;
				*v = (uint8_t)(share * (rgb >> (16 - 8 * k) & 255) + (1 - share) * *v + .5);
			}
}

void nr_canvas_line(struct nr_picture *p, double x0, double y0, double x1, double y1, uint32_t rgb)
{
	const double far = fmax(fabs(x1 - x0), fabs(y1 - y0));
	if (!(far < 1e6)) return;
	const int64_t steps = (int64_t)far + 1;
	for (int64_t i = 0; i <= steps; i++) {
		const double s = (double)i / (double)steps;
		nr_canvas_fill(p, (int64_t)(x0 + s * (x1 - x0) - .5), (int64_t)(y0 + s * (y1 - y0) - .5), 2, 2, rgb, 1);
	}
}

/* Five rows of three dots, one octal digit a row. */
static unsigned letter(char c)
{
	static const char signs[] = ".-+:[]/%_=";
	static const unsigned digit[] = { 075557, 026227, 071747, 071717, 055711, 074717, 074757, 071111, 075757, 075717 };
	static const unsigned capital[] = { 025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227, 011152, 055655, 044447,
		057755, 065555, 025552, 065644, 025563, 065655, 034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247 };
	static const unsigned sign[] = { 000002, 000700, 002720, 002020, 064446, 031113, 011244, 051245, 000007, 007070 };
	if (isdigit((unsigned char)c)) return digit[c - '0'];
	if (isalpha((unsigned char)c)) return capital[toupper((unsigned char)c) - 'A'];
	const char *at = c ? strchr(signs, c) : NULL;
	return at ? sign[at - signs] : 0;
}

void nr_canvas_text(struct nr_picture *p, int64_t x, int64_t y, uint32_t rgb, const char *fmt, ...)
{
	char text[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	for (const char *s = text; *s; s++, x += NR_LETTER_W) {
		const unsigned dots = letter(*s);
		for (int i = 0; i < 15; i++)
			if (dots >> (14 - i) & 1) nr_canvas_fill(p, x + i % 3 * ZOOM, y + i / 3 * ZOOM, ZOOM, ZOOM, rgb, 1);
	}
}


/* ---- tiles ----------------------------------------------------------------------------------------------------------------- */

static void range_of(int64_t n, const double *v, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(v[i])) continue;
		*low = fmin(*low, v[i]);
		*high = fmax(*high, v[i]);
	}
}

static int64_t widest(const char *const *label, int64_t n)
{
	size_t most = 0;
	for (int64_t i = 0; label && i < n; i++) most = strlen(label[i]) > most ? strlen(label[i]) : most;
	return (int64_t)most * NR_LETTER_W;
}

int nr_tiles_draw(const struct nr_tiles *t, const char *title, const char *path, struct nr_error *err)
{
	const int64_t most = t->h > t->w ? t->h : t->w, zoom = (TILE + most - 1) / most;
	const int64_t tw = t->w * zoom, cell = tw > 15 * NR_LETTER_W ? tw : 15 * NR_LETTER_W;
	const int64_t left = MARGIN + widest(t->row_label, t->rows) + 8;
	const int64_t top = 4 * NR_LETTER_H + MARGIN, row = t->h * zoom + 3 * NR_LETTER_H, each = t->h * t->w;
	const int64_t wide = MARGIN * 2 + (int64_t)strlen(title) * NR_LETTER_W, all = left + t->cols * (cell + MARGIN) + MARGIN;
	struct nr_picture p;
	double low, high;
	if (nr_canvas_open(&p, all > wide ? all : wide, top + t->rows * row, err)) return err->code;
	nr_canvas_text(&p, MARGIN, MARGIN, NR_BLACK, "%s", title);
	for (int64_t i = 0; i < t->rows * t->cols; i++) {
		const int64_t x = left + i % t->cols * (cell + MARGIN), y = top + i / t->cols * row;
		const double *v = t->value + i * each;
		range_of(each, v, &low, &high);
		for (int64_t k = 0; k < each; k++)
			nr_canvas_fill(&p, x + k % t->w * zoom, y + k / t->w * zoom, zoom, zoom,
				nr_heat(high > low ? (v[k] - low) / (high - low) : isfinite(v[k]) ? .5 : NAN), 1);
		if (low <= high) nr_canvas_text(&p, x, y + t->h * zoom + 4, NR_GREY, "%.3g %.3g", low, high);
		if (i < t->cols && t->col_label) nr_canvas_text(&p, x, top - NR_LETTER_H - 4, NR_BLACK, "%s", t->col_label[i]);
		if (i % t->cols == 0 && t->row_label) nr_canvas_text(&p, MARGIN, y, NR_BLACK, "%s", t->row_label[i / t->cols]);
	}
	const int code = nr_picture_write_png(&p, path, err);
	nr_picture_release(&p);
	return code;
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

void nr_frame_hold(struct nr_frame *f, int64_t n, const double *y)
{
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(y[i])) continue;
		f->low = fmin(f->low, y[i]);
		f->high = fmax(f->high, y[i]);
	}
}

double nr_frame_y(const struct nr_frame *f, double value)
{
	const double share = f->high > f->low ? (value - f->low) / (f->high - f->low) : .5;
	return (double)(f->y + f->h) - share * (double)f->h;
}

void nr_frame_draw(struct nr_picture *p, const struct nr_frame *f, const char *title)
{
	nr_canvas_text(p, f->x, f->y - NR_LETTER_H - 6, NR_BLACK, "%s", title);
	nr_canvas_fill(p, f->x - 1, f->y, 1, f->h, NR_GREY, 1);
	for (int i = 0; i <= 2 && f->low <= f->high; i++) {
		double v = f->low + (f->high - f->low) * i / 2;
		if (fabs(v) < 1e-3 * (f->high - f->low)) v = 0;
		const int64_t y = (int64_t)nr_frame_y(f, v);
		char text[32];
		snprintf(text, sizeof text, "%.3g", v);
		nr_canvas_fill(p, f->x, y, f->w, 1, NR_PALE, 1);
		nr_canvas_text(p, f->x - 6 - (int64_t)strlen(text) * NR_LETTER_W, y - NR_LETTER_H / 2, NR_GREY, "%s", text);
		if (f->high == f->low) break;
	}
}

void nr_frame_curve(struct nr_picture *p, const struct nr_frame *f, int64_t n, const double *y, uint32_t rgb)
{
	const double step = (double)f->w / (double)(n > 1 ? n - 1 : 1);
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(y[i])) continue;
		const double x = (double)f->x + step * (double)i, at = nr_frame_y(f, y[i]);
		if (n <= 64) nr_canvas_fill(p, (int64_t)x - 2, (int64_t)at - 2, 5, 5, rgb, 1);
		if (i + 1 < n && isfinite(y[i + 1])) nr_canvas_line(p, x, at, x + step, nr_frame_y(f, y[i + 1]), rgb);
	}
}
