/* See shapes.h. No sine or cosine: their last bits differ between C libraries, and pixels would. */
#include "data/shapes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/draws.h"

enum { TRIES = 40, FINE = 3 };                  /* places that are tried for a shape; points of a pixel along each side */
#define SEEN 0.6                                /* share of a shape that others leave to be seen, at least */

const char *const nr_shape_names[NR_SHAPE_KINDS + 1] = { "circle", "cross", "ring", "square", "star", "triangle", NULL };
enum { CIRCLE, CROSS, RING, SQUARE, STAR, TRIANGLE };

struct placed { double x, y, radius, turn[2], colour[3]; int32_t kind; };
struct canvas {
	int32_t size;
	struct nr_draws draws;
	struct placed shape[NR_SHAPES_MOST];
	int32_t count;
	uint8_t *top;                           /* (size,size): 1 + the uppermost shape, 0: background */
	uint8_t *next;                          /* the same with a shape more */
	int32_t whole[NR_SHAPES_MOST];          /* pixels of each, were it alone */
	double base[3], slope[3][2], stripe[3], direction[2], period, grain;
};

static void draw_direction(struct nr_draws *d, double to[2])
{
	double r = 0;
	while (r > 1 || r < .01) {
		to[0] = nr_draw_between(d, -1, 1);
		to[1] = nr_draw_between(d, -1, 1);
		r = to[0] * to[0] + to[1] * to[1];
	}
	to[0] /= sqrt(r);
	to[1] /= sqrt(r);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------------------ */

/* In a circle of radius 1. A star is where at most one of the five lines through its points leaves one outside. */
static bool is_inside(int32_t kind, double u, double v)
{
	static const double lines[5][2] = { { 0, 1 }, { .95105651629515357, .30901699437494742 },
		{ .58778525229247313, -.80901699437494742 },
		{ -.58778525229247313, -.80901699437494742 }, { -.95105651629515357, .30901699437494742 } };
	const double r = u * u + v * v;
	int outside = 0;
	switch (kind) {
	case CIRCLE: return r <= 1;
	case RING: return r <= 1 && r >= .3;
	case SQUARE: return fabs(u) <= .75 && fabs(v) <= .75;
	case CROSS: return (fabs(u) <= .32 && fabs(v) <= .94) || (fabs(v) <= .32 && fabs(u) <= .94);
	case TRIANGLE: return v >= -.5 && v + 1.7320508075688772 * fabs(u) <= 1;
	default:
		for (int i = 0; i < 5; i++) outside += u * lines[i][0] + v * lines[i][1] > .30901699437494742;
		return outside <= 1;
	}
}

static bool covers(const struct placed *s, double x, double y)
{
	const double dx = (x - s->x) / s->radius, dy = (y - s->y) / s->radius;
	return dx * dx + dy * dy <= 1 && is_inside(s->kind, s->turn[0] * dx + s->turn[1] * dy, s->turn[0] * dy - s->turn[1] * dx);
}

/* Sizes are even on a logarithmic scale: from an eighth to a half of the picture. */
static struct placed draw_shape(struct canvas *c)
{
	struct nr_draws *d = &c->draws;
	struct placed s = { .kind = nr_draw_below(d, NR_SHAPE_KINDS) };
	double far = 0;
	s.radius = c->size / 16.0 * exp2(nr_draw_between(d, 0, 2));
	if (s.radius < 4) s.radius = 4;
	s.x = nr_draw_between(d, s.radius, c->size - s.radius);
	s.y = nr_draw_between(d, s.radius, c->size - s.radius);
	draw_direction(d, s.turn);
	while (far < 90 * 90) {                         /* unlike the background */
		far = 0;
		for (int k = 0; k < 3; k++) {
			s.colour[k] = nr_draw_between(d, 0, 255);
			far += (s.colour[k] - c->base[k]) * (s.colour[k] - c->base[k]);
		}
	}
	return s;
}

/* Puts a shape on top unless too little of another were left. */
static bool place(struct canvas *c)
{
	const size_t pixels = (size_t)c->size * (size_t)c->size;
	int32_t left[NR_SHAPES_MOST + 1] = { 0 }, whole = 0;
	const struct placed s = draw_shape(c);
	memcpy(c->next, c->top, pixels);
	for (int32_t y = 0; y < c->size; y++)
		for (int32_t x = 0; x < c->size; x++) {
			uint8_t *p = &c->next[(size_t)y * (size_t)c->size + (size_t)x];
			if (covers(&s, x + .5, y + .5)) *p = (uint8_t)(c->count + 1), whole++;
			left[*p]++;
		}
	for (int32_t i = 0; i < c->count; i++)
		if (left[i + 1] < SEEN * c->whole[i]) return false;
	uint8_t *swap = c->top;
	c->top = c->next, c->next = swap;
	c->whole[c->count] = whole;
	c->shape[c->count++] = s;
	return true;
}

/* ---- pixels ------------------------------------------------------------------------------------------------------------------- */

static void draw_background(struct canvas *c)
{
	struct nr_draws *d = &c->draws;
	for (int k = 0; k < 3; k++) {
		c->base[k] = nr_draw_between(d, 60, 196);
		c->slope[k][0] = nr_draw_between(d, -40, 40);
		c->slope[k][1] = nr_draw_between(d, -40, 40);
		c->stripe[k] = nr_draw_between(d, -30, 30);
	}
	draw_direction(d, c->direction);
	c->period = nr_draw_between(d, 4, 20);
	c->grain = nr_draw_between(d, 5, 25);
}

/* A triangle wave from -1 to 1. */
static double wave(double x) { return 4 * fabs(x - floor(x) - .5) - 1; }

static void paint(const struct canvas *c, const struct nr_rng *grain, struct nr_picture *p)
{
	for (int32_t y = 0; y < c->size; y++)
		for (int32_t x = 0; x < c->size; x++) {
			double sum[3] = { 0 };
			for (int i = 0; i < FINE * FINE; i++) {
				const double px = x + (i % FINE + .5) / FINE, py = y + (double)(2 * (i / FINE) + 1) / (2 * FINE);
				int32_t top = c->count;
				while (top > 0 && !covers(&c->shape[top - 1], px, py)) top--;
				const double along = wave((c->direction[0] * px + c->direction[1] * py) / c->period);
				for (int k = 0; k < 3; k++)
					sum[k] += top > 0 ? c->shape[top - 1].colour[k] : c->base[k] + c->stripe[k] * along +
						c->slope[k][0] * (px / c->size - .5) + c->slope[k][1] * (py / c->size - .5);
			}
			const size_t at = (size_t)y * (size_t)c->size + (size_t)x;
			uint32_t word[4];
			nr_rng_block(*grain, at, word);
			for (int k = 0; k < 3; k++) {
				const double v = sum[k] / (FINE * FINE) + c->grain * (2 * (double)nr_rng_unit(word[k]) - 1);
				p->pixels[3 * at + (size_t)k] = (uint8_t)fmin(fmax(v + .5, 0), 255);
			}
		}
}

void nr_shapes_release(struct nr_shapes *s)
{
	for (int32_t i = 0; i < s->count; i++) nr_rle_free(s->shape[i].mask);
	s->count = 0;
}

int nr_shapes_draw(const struct nr_shapes_how *how, int64_t number, struct nr_picture *p, struct nr_shapes *out, struct nr_error *err)
{
	const int32_t size = (int32_t)how->size;
	const size_t pixels = (size_t)size * (size_t)size;
	struct canvas c = { .size = size, .draws = nr_draws_of(how->seed, NR_STREAM_SHAPES, number, 0), .top = calloc(pixels, 1),
		.next = calloc(pixels, 1) };
	const struct nr_rng grain = nr_rng_make(how->seed, NR_STREAM_SHAPES + 1, (uint32_t)number);
	out->count = 0;
	int code = nr_picture_resize(p, size, size, 3, err);
	if (!code && (!c.top || !c.next)) code = nr_fail(err, NR_EMEMORY, "cannot draw shapes", NULL, "out of memory");
	if (!code) {
		draw_background(&c);
		const int32_t want = (int32_t)how->fewest + nr_draw_below(&c.draws, (int32_t)(how->most - how->fewest) + 1);
		for (int tries = 0; c.count < want && tries < TRIES * want; tries++) place(&c);
		paint(&c, &grain, p);
	}
	for (int32_t i = 0; i < c.count && !code; i++) {
		for (size_t k = 0; k < pixels; k++) c.next[k] = c.top[k] == i + 1;
		out->shape[i].kind = c.shape[i].kind;
		if ((out->shape[i].mask = nr_rle_of_mask(size, size, c.next, err))) out->count++;
		else code = err ? (int)err->code : NR_EMEMORY;
	}
	if (code) nr_shapes_release(out);
	free(c.top);
	free(c.next);
	return code;
}
