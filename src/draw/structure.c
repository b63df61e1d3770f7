/* Structural formulas: see structure.h. */
#include "draw/structure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/html.h"

static const double BOND = 26;                  /* pixels */
enum { MARGIN = 4 };

struct point { double x, y; };
struct box { double left, right, top, bottom; };        /* about the middle of an atom; y down, as on a screen */
enum side { RIGHT, LEFT, ABOVE, BELOW };

struct drawing {
	const struct nr_structure *of;
	struct nr_str *s;
	double scale, x, y, type;               /* pixels of a bond; of the origin; of a letter's height */
};

/* The colour of the palette for an element; -1: that of the text. */
static int colour_of(const char *symbol)
{
	static const struct { const char *symbol; int colour; } known[] = { { "N", 0 }, { "O", 7 }, { "S", 4 }, { "F", 2 }, { "Cl", 2 },
		{ "Br", 1 }, { "I", 3 }, { "P", 1 }, { "B", 1 }, { "Se", 4 }, { "Si", 6 } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(symbol, known[i].symbol)) return known[i].colour;
	return -1;
}

static struct point on_paper(const struct drawing *d, int32_t atom)
{
	return (struct point){ d->x + d->scale * d->of->atom[atom].x, d->y - d->scale * d->of->atom[atom].y };
}

/* Widths of letters, in parts of their height: those of the common fonts without serifs, rounded up. */
static double width_of(const char *text)
{
	double w = 0;
	for (; *text; text++) w += strchr("Il", *text) ? .3 : *text >= 'a' && *text <= 'z' ? .56 : *text >= '0' && *text <= '9' ? .57 : .72;
	return w;
}

/* ---- letters ------------------------------------------------------------------------------------------------------------ */

/* H2O and HCl, but NH3. */
static bool after_hydrogen(const char *symbol)
{
	static const char *const all[] = { "O", "S", "Se", "F", "Cl", "Br", "I" };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(symbol, all[i])) return true;
	return false;
}

/* Where there is room for hydrogens: the side that is farthest from all bonds. At the end of a chain it is the left or the right. */
static enum side free_side(const struct nr_structure *m, int32_t atom)
{
	static const struct point way[] = { [RIGHT] = { 1, 0 }, [LEFT] = { -1, 0 }, [ABOVE] = { 0, 1 }, [BELOW] = { 0, -1 } };
	double most[4] = { -1, -1, -1, -1 };            /* the largest cosine with a bond */
	int32_t n = 0;
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_structure_bond *b = &m->bond[i];
		if (b->from != atom && b->to != atom) continue;
		const int32_t other = b->from == atom ? b->to : b->from;
		const double dx = m->atom[other].x - m->atom[atom].x, dy = m->atom[other].y - m->atom[atom].y;
		for (int k = RIGHT; k <= BELOW; k++) most[k] = fmax(most[k],
			(way[k].x * dx + way[k].y * dy) / fmax(sqrt(dx * dx + dy * dy), 1e-9));
		n++;
	}
	enum side best = RIGHT;
	if (!n) return m->atom[atom].symbol && after_hydrogen(m->atom[atom].symbol) ? LEFT : RIGHT;
	for (enum side k = LEFT; k <= (n > 1 ? BELOW : LEFT); k++)
		if (most[k] < most[best] - 1e-3) best = k;
	return best;
}

struct label { const char *symbol; char hydrogen[4], count[12], charge[24], isotope[12]; enum side side; bool shown; };

static struct label label_of(const struct nr_structure *m, int32_t atom)
{
	const struct nr_structure_atom *a = &m->atom[atom];
	struct label l = { .symbol = a->symbol, .shown = a->symbol != NULL, .side = free_side(m, atom) };
	if (!l.shown) return l;
	if (a->hydrogens) snprintf(l.hydrogen, sizeof l.hydrogen, "H");
	if (a->hydrogens > 1) snprintf(l.count, sizeof l.count, "%d", a->hydrogens);
	if (a->isotope) snprintf(l.isotope, sizeof l.isotope, "%d", a->isotope);
	const int32_t charge = a->charge < 0 ? -a->charge : a->charge;
	char number[12] = "";
	if (charge > 1) snprintf(number, sizeof number, "%d", charge);
	snprintf(l.charge, sizeof l.charge, "%s%s%s", number, a->charge > 0 ? "+" : a->charge < 0 ? "\xe2\x88\x92" : "",
		a->radicals == 1 ? "\xe2\x80\xa2" : a->radicals > 1 ? "\xe2\x80\xa2\xe2\x80\xa2" : "");
	return l;
}

static const double SMALL = .72;                /* of numbers beside a letter */

static double charge_width(const struct label *l) { return *l->charge ? SMALL * .62 * (double)nr_utf8_width(l->charge) : 0; }

static struct box box_of(const struct label *l, double type)
{
	if (!l->shown) return (struct box){ 0 };
	const double half = width_of(l->symbol) / 2, hydrogen = width_of(l->hydrogen) + SMALL * width_of(l->count);
	struct box b = { -half - SMALL * width_of(l->isotope), half + charge_width(l), -.5, .5 };
	if (l->side == LEFT) b.left -= hydrogen;
	if (l->side == RIGHT) b.right += hydrogen;
	if (l->side == ABOVE && *l->hydrogen) b.top -= .9;
	if (l->side == BELOW && *l->hydrogen) b.bottom += .9;
	return (struct box){ type * b.left, type * b.right, type * b.top, type * b.bottom };
}

/* A piece of a label, raised (negative: lowered) by a part of the height of a letter; *now: where the one before it was. */
static void add_piece(const struct drawing *d, const char *text, double raised, double *now)
{
	if (!*text) return;
	nr_str_add(d->s, "<tspan");
	if (raised != *now) nr_str_printf(d->s, " dy=\"%.1f\"", (*now - raised) * d->type);
	if (raised != 0) nr_str_printf(d->s, " font-size=\"%.1f\"", SMALL * d->type);
	nr_str_add(d->s, ">");
	nr_html_text(d->s, text);
	nr_str_add(d->s, "</tspan>");
	*now = raised;
}

static void open_text(const struct drawing *d, int colour, double x, double y)
{
	nr_str_add(d->s, "<text");
	nr_paint(d->s, "atom", colour);
	nr_str_printf(d->s, " x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\">", x, y + .36 * d->type, d->type);
}

static void add_hydrogens(const struct drawing *d, const struct label *l, double *now)
{
	add_piece(d, l->hydrogen, 0, now);
	add_piece(d, l->count, -.22, now);
}

static void add_label(const struct drawing *d, int32_t atom)
{
	const struct label l = label_of(d->of, atom);
	const struct point p = on_paper(d, atom);
	double now = 0;
	if (!l.shown) return;
	const double half = d->type * width_of(l.symbol) / 2, isotope = d->type * SMALL * width_of(l.isotope);
	const double hydrogen = d->type * (width_of(l.hydrogen) + SMALL * width_of(l.count));
	const int colour = colour_of(l.symbol);
	open_text(d, colour, p.x - half - isotope - (l.side == LEFT ? hydrogen : 0), p.y);
	if (l.side == LEFT) add_hydrogens(d, &l, &now);
	add_piece(d, l.isotope, .36, &now);
	add_piece(d, l.symbol, 0, &now);
	if (l.side == RIGHT) add_hydrogens(d, &l, &now);
	add_piece(d, l.charge, .36, &now);
	nr_str_add(d->s, "</text>");
	if (*l.hydrogen && (l.side == ABOVE || l.side == BELOW)) {
		now = 0;
		open_text(d, colour, p.x - d->type * width_of(l.hydrogen) / 2, p.y + (l.side == ABOVE ? -.88 : .88) * d->type);
		add_hydrogens(d, &l, &now);
		nr_str_add(d->s, "</text>");
	}
	nr_str_add(d->s, "\n");
}

/* ---- bonds -------------------------------------------------------------------------------------------------------------- */

/* The point where a line from the middle of an atom leaves its letters, with a little room. */
static struct point leave(const struct drawing *d, int32_t atom, struct point from, struct point to)
{
	const struct label l = label_of(d->of, atom);
	struct box b = box_of(&l, d->type);
	const struct point p = on_paper(d, atom);
	const double dx = to.x - from.x, dy = to.y - from.y, pad = .12 * d->type;
	double share = 0;
	if (!l.shown) return from;
	b = (struct box){ p.x + b.left - pad, p.x + b.right + pad, p.y + b.top - pad, p.y + b.bottom + pad };
	if (from.x < b.left || from.x > b.right || from.y < b.top || from.y > b.bottom) return from;
	const double by_x = dx > 0 ? (b.right - from.x) / dx : dx < 0 ? (b.left - from.x) / dx : INFINITY;
	const double by_y = dy > 0 ? (b.bottom - from.y) / dy : dy < 0 ? (b.top - from.y) / dy : INFINITY;
	share = fmin(by_x, by_y);
	if (share > .45) share = .45;
	return (struct point){ from.x + share * dx, from.y + share * dy };
}

struct line { struct point a, b; };

static struct line between(const struct drawing *d, const struct nr_structure_bond *b, struct line l)
{
	return (struct line){ leave(d, b->from, l.a, l.b), leave(d, b->to, l.b, l.a) };
}

/* Parallel to l, by so many pixels to its left on the screen, shorter by a share at each end. */
static struct line beside(struct line l, double by, double shorter)
{
	const double dx = l.b.x - l.a.x, dy = l.b.y - l.a.y, n = fmax(sqrt(dx * dx + dy * dy), 1e-9);
	const struct point off = { by * dy / n, -by * dx / n };
	return (struct line){ { l.a.x + off.x + shorter * dx, l.a.y + off.y + shorter * dy },
		{ l.b.x + off.x - shorter * dx, l.b.y + off.y - shorter * dy } };
}

static void add_line(const struct drawing *d, struct line l)
{
	nr_str_printf(d->s, "M%.1f,%.1fL%.1f,%.1f", l.a.x, l.a.y, l.b.x, l.b.y);
}

static bool is_corner(const struct drawing *d, int32_t atom) { return !d->of->atom[atom].symbol; }

/* All that is drawn with a pen: lines, and the rungs of wedges that go away. */
static void add_strokes(const struct drawing *d, const struct nr_structure_bond *b)
{
	const struct line whole = { on_paper(d, b->from), on_paper(d, b->to) };
	const double apart = .17 * d->scale;
	const struct line l = between(d, b, whole);
	if (b->kind == NR_DRAW_DOUBLE && !b->side) {
		add_line(d, between(d, b, beside(whole, apart / 2, 0)));
		add_line(d, between(d, b, beside(whole, -apart / 2, 0)));
	} else if (b->kind == NR_DRAW_DOUBLE) {
		add_line(d, l);
		struct line second = beside(whole, b->side * apart, 0);
		const double dx = second.b.x - second.a.x, dy = second.b.y - second.a.y, cut = .13;
		if (is_corner(d, b->from)) second.a.x += cut * dx, second.a.y += cut * dy;
		if (is_corner(d, b->to)) second.b.x -= cut * dx, second.b.y -= cut * dy;
		add_line(d, between(d, b, second));
	} else if (b->kind == NR_DRAW_TRIPLE) {
		add_line(d, l);
		add_line(d, between(d, b, beside(whole, apart, 0)));
		add_line(d, between(d, b, beside(whole, -apart, 0)));
	} else if (b->kind == NR_DRAW_DOWN) {
		enum { RUNGS = 6 };
		for (int i = 0; i < RUNGS; i++) {
			const double t = (i + .7) / RUNGS, half = .12 * d->scale * t;
			const struct point p = { l.a.x + t * (l.b.x - l.a.x), l.a.y + t * (l.b.y - l.a.y) };
			const struct line rung = beside((struct line){ l.a, l.b }, half, 0);
			const struct point off = { rung.a.x - l.a.x, rung.a.y - l.a.y };
			add_line(d, (struct line){ { p.x - off.x, p.y - off.y }, { p.x + off.x, p.y + off.y } });
		}
	} else if (b->kind == NR_DRAW_SINGLE || b->kind == NR_DRAW_DATIVE) {
		add_line(d, l);
	}
}

/* Wedges towards the reader, and the heads of arrows. */
static void add_area(const struct drawing *d, const struct nr_structure_bond *b)
{
	const struct line l = between(d, b, (struct line){ on_paper(d, b->from), on_paper(d, b->to) });
	const bool arrow = b->kind == NR_DRAW_DATIVE;
	if (b->kind != NR_DRAW_UP && !arrow) return;
	const struct point tip = arrow ? l.b : l.a;
	const struct line base = arrow ? (struct line){ l.b, { l.b.x + .3 * (l.a.x - l.b.x), l.b.y + .3 * (l.a.y - l.b.y) } } : l;
	const struct point left = beside(base, .12 * d->scale, 0).b, right = beside(base, -.12 * d->scale, 0).b;
	nr_str_printf(d->s, "M%.1f,%.1fL%.1f,%.1fL%.1f,%.1fZ", tip.x, tip.y, left.x, left.y, right.x, right.y);
}

/* ---- the whole ---------------------------------------------------------------------------------------------------------- */

/* All that has to be seen, with a bond of one pixel for places and letters of `type`. */
static struct box reach(const struct nr_structure *m, double scale, double type)
{
	struct box all = { INFINITY, -INFINITY, INFINITY, -INFINITY };
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct label l = label_of(m, i);
		const struct box b = box_of(&l, type);
		const double x = scale * m->atom[i].x, y = -scale * m->atom[i].y;
		all.left = fmin(all.left, x + b.left), all.right = fmax(all.right, x + b.right);
		all.top = fmin(all.top, y + b.top), all.bottom = fmax(all.bottom, y + b.bottom);
	}
	return m->atoms ? all : (struct box){ 0 };
}

struct nr_size nr_svg_structure(struct nr_str *s, const struct nr_structure *m)
{
	double scale = BOND;
	struct box all = reach(m, scale, .5 * scale);
	const double w = all.right - all.left, h = all.bottom - all.top;
	if (m->most_w > 0 && w > m->most_w - 2 * MARGIN) scale = fmin(scale, BOND * (m->most_w - 2 * MARGIN) / w);
	if (m->most_h > 0 && h > m->most_h - 2 * MARGIN) scale = fmin(scale, BOND * (m->most_h - 2 * MARGIN) / h);
	all = reach(m, scale, .5 * scale);
	const struct drawing d = { m, s, scale, MARGIN - all.left, MARGIN - all.top, .5 * scale };
	const struct nr_size size = { ceil(all.right - all.left + 2 * MARGIN), ceil(all.bottom - all.top + 2 * MARGIN) };
	nr_str_printf(s, "<svg class=\"structure\" width=\"%.0f\" height=\"%.0f\"", size.w, size.h);
	nr_str_printf(s, " viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", size.w, size.h);
	nr_html_text(s, m->name);
	nr_str_add(s, "\"><title>");
	nr_html_text(s, m->name);
	nr_str_add(s, "</title><path");
	nr_paint(s, "bond", NR_NO_COLOUR);
	nr_str_printf(s, " stroke-width=\"%.2f\" d=\"", fmax(.055 * scale, .6));
	for (int32_t i = 0; i < m->bonds; i++) add_strokes(&d, &m->bond[i]);
	nr_str_add(s, "\"/>");
	nr_svg_path(s, "wedge", NR_NO_COLOUR);
	for (int32_t i = 0; i < m->bonds; i++) add_area(&d, &m->bond[i]);
	nr_str_add(s, "\"/>\n");
	for (int32_t i = 0; i < m->atoms; i++) add_label(&d, i);
	nr_str_add(s, "</svg>\n");
	return size;
}
