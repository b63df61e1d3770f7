/* Curves of text: see plot.h. Unicode's Braille patterns begin at U+2800, a bit for each dot. */
#include "base/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { MAX_COLUMNS = 400, MAX_ROWS = 100, ACROSS = 2, DOWN = 4 };      /* dots of a character */

struct canvas { unsigned char *cell; int columns, rows; };

static void dot(struct canvas *c, int x, int y)
{
	static const unsigned char bit[DOWN][ACROSS] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
	c->cell[y / DOWN * c->columns + x / ACROSS] |= bit[y % DOWN][x % ACROSS];
}

static void line(struct canvas *c, int x0, int y0, int x1, int y1)
{
	const int across = abs(x1 - x0), down = abs(y1 - y0), steps = across > down ? across : down;
	for (int i = 0; i <= steps; i++) {
		const double share = steps ? (double)i / steps : 0;
		dot(c, x0 + (int)lround(share * (x1 - x0)), y0 + (int)lround(share * (y1 - y0)));
	}
}

struct range { double low, high; int64_t first, last; };

static int measure(const struct nr_plot *p, struct range *r)
{
	int found = 0;
	for (int64_t i = 0; i < p->n; i++) {
		if (!isfinite(p->y[i])) continue;
		if (!found) *r = (struct range){ .low = p->y[i], .high = p->y[i], .first = p->x[i] };
		found = 1;
		r->low = fmin(r->low, p->y[i]);
		r->high = fmax(r->high, p->y[i]);
		r->last = p->x[i];
	}
	return found;
}

/* Share of the way from low to high; the middle if they are one. Halves, so that the difference is finite. */
static double share_of(double v, double low, double high)
{
	const double share = high > low ? (v / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void draw(const struct nr_plot *p, const struct range *r, struct canvas *c)
{
	const int width = ACROSS * c->columns - 1, height = DOWN * c->rows - 1;
	int x0 = -1, y0 = 0;
	for (int64_t i = 0; i < p->n; i++) {
		if (!isfinite(p->y[i])) {
			x0 = -1;
			continue;
		}
		const int x = (int)lround(width * share_of((double)p->x[i], (double)r->first, (double)r->last));
		const int y = height - (int)lround(height * share_of(p->y[i], r->low, r->high));
		line(c, x0 < 0 ? x : x0, x0 < 0 ? y : y0, x, y);
		x0 = x;
		y0 = y;
	}
}

static void print(const struct canvas *c, const struct range *r, struct nr_str *s)
{
	char low[32], high[32], first[32], last[32];
	snprintf(low, sizeof low, "%.4g", r->low);
	snprintf(high, sizeof high, "%.4g", r->high);
	const int margin = (int)(strlen(low) > strlen(high) ? strlen(low) : strlen(high));
	for (int y = 0; y < c->rows; y++) {
		const char *label = y == 0 ? high : y == c->rows - 1 ? low : "";
		nr_str_printf(s, "%*s %s", margin, label, *label ? "\xE2\x94\xA4" : "\xE2\x94\x82");
		int end = c->columns;
		while (end > 0 && !c->cell[y * c->columns + end - 1]) end--;
		for (int x = 0; x < end; x++) {
			const unsigned v = c->cell[y * c->columns + x];
			if (v) nr_str_printf(s, "\xE2%c%c", 0xA0 + (v >> 6), 0x80 + (v & 0x3F));
			else nr_str_add(s, " ");
		}
		nr_str_add(s, "\n");
	}
	snprintf(first, sizeof first, "%lld", (long long)r->first);
	snprintf(last, sizeof last, "%lld", (long long)r->last);
	const int gap = c->columns - (int)strlen(first);
	nr_str_printf(s, "%*s%s%*s\n", margin + 2, "", first, gap > (int)strlen(last) ? gap : (int)strlen(last) + 1,
		r->last > r->first ? last : "");
}

void nr_plot_text(const struct nr_plot *p, struct nr_str *s)
{
	struct range r = { 0 };
	struct canvas c = { .columns = p->columns < 1 ? 1 : p->columns > MAX_COLUMNS ? MAX_COLUMNS : p->columns,
		.rows = p->rows < 2 ? 2 : p->rows > MAX_ROWS ? MAX_ROWS : p->rows };
	if (!measure(p, &r)) return;
	c.cell = calloc((size_t)c.columns * (size_t)c.rows, 1);
	if (!c.cell) {
		s->failed = true;
		return;
	}
	draw(p, &r, &c);
	print(&c, &r, s);
	free(c.cell);
}
