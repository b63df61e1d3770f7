/* RandAugment (Cubuk et al. 2020) as timm's rand-mM-nN-mstdS-inc1: n of fifteen operations, drawn with replacement, each done
 * with probability p at a magnitude drawn around m and kept inside 0..10. Warps fill with the mean colour. */
#include "picture/augment.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum op {
	AUTO_CONTRAST, EQUALIZE, INVERT, ROTATE, POSTERIZE, SOLARIZE, SOLARIZE_ADD, COLOR, CONTRAST, BRIGHTNESS, SHARPNESS,
	SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, OPS
};

static const struct nr_option options[] = {
	NR_OPT_INT(struct nr_randaugment, n, 2, 0, 16, "operations per picture"),
	NR_OPT_FLOAT(struct nr_randaugment, m, 9, 0, 10, "magnitude"),
	NR_OPT_FLOAT(struct nr_randaugment, std, 0.5, 0, 1000, "spread of the magnitude; above 100: uniform from 0 to m"),
	NR_OPT_FLOAT(struct nr_randaugment, prob, 0.5, 0, 1, "probability of each operation"),
	NR_OPT_BOOL(struct nr_randaugment, inc, "true", "make every operation stronger with m"),
	NR_OPT_END
};

/* "rand-m9-n2-mstd0.5-inc1": each part is a name and a number. timm's own defaults hold for what is not said. */
static int parse_timm(struct nr_randaugment *r, const char *text, struct nr_error *err)
{
	static const struct { const char *timm, *ours; } names[] = { { "mstd", "std" }, { "inc", "inc" }, { "m", "m" }, { "n", "n" },
		{ "p", "prob" } };
	*r = (struct nr_randaugment){ .n = 2, .m = 10, .std = 0, .prob = 0.5, .inc = false };
	for (const char *at = strchr(text, '-'); at; at = strchr(at, '-')) {
		at++;
		const size_t letters = strcspn(at, "0123456789-"), digits = strcspn(at + letters, "-");
		char value[32];
		const char *ours = NULL;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strlen(names[i].timm) == letters && strncmp(at, names[i].timm, letters) == 0) ours = names[i].ours;
		if (!ours || digits == 0 || digits >= sizeof value) {
			nr_fail(err, NR_EVALUE, "bad value for", "randaugment",
				"'%s' has a part other than m, n, p, mstd or inc with a number", text);
			return nr_hint(err, "for example rand-m9-mstd0.5-inc1, or n=2,m=9,std=0.5");
		}
		memcpy(value, at + letters, digits);
		value[digits] = 0;
		const int code = nr_option_set(options, r, ours, value, NULL, err);
		if (code) return code;
	}
	return NR_OK;
}

int nr_randaugment_parse(struct nr_randaugment *r, const char *text, struct nr_error *err)
{
	if (strncmp(text, "rand-", 5) == 0 || strcmp(text, "rand") == 0) return parse_timm(r, text, err);
	nr_option_defaults(options, r);
	struct nr_arena *arena = nr_arena_make();
	if (!arena) return nr_fail(err, NR_EMEMORY, "cannot read", "randaugment", "out of memory");
	const int code = nr_option_parse(options, r, text, arena, err);
	nr_arena_free(arena);
	return code;
}

static double magnitude(const struct nr_randaugment *r, struct nr_draws *d)
{
	double m = r->m;
	if (r->std > 100)
		m *= nr_draw(d);
	else if (r->std > 0)
		m += r->std * nr_draw_normal(d);
	return m < 0 ? 0 : m > 10 ? 10 : m;
}

static double either(double v, struct nr_draws *d) { return nr_draw(d) > 0.5 ? -v : v; }

/* How strong an enhancement is: away from 1 on either side, or timm's older scale from .1 to 1.9. */
static float strength(const struct nr_randaugment *r, double level, struct nr_draws *d)
{
	if (!r->inc) return (float)(level * 1.8 + 0.1);
	const double f = 1 + either(level * 0.9, d);
	return (float)(f < 0.1 ? 0.1 : f);
}

struct job { const struct nr_randaugment *r; enum nr_filter filter; const uint8_t *fill; };

/* The four operations that need a second buffer, and rotation; level is 0..1. */
static void warp(const struct job *j, enum op op, double level, struct nr_picture *a, struct nr_picture *b, struct nr_draws *d)
{
	double m[6] = { 1, 0, 0, 0, 1, 0 };
	if (op == ROTATE)
		nr_rotation(a->h, a->w, either(level * 30, d), m);
	else if (op == SHEAR_X || op == SHEAR_Y)
		m[op == SHEAR_X ? 1 : 3] = either(level * 0.3, d);
	else
		m[op == TRANSLATE_X ? 2 : 5] = either(level * 0.45, d) * (op == TRANSLATE_X ? a->w : a->h);
	nr_warp(a, m, j->filter, j->fill, b);
}

static void apply(const struct job *j, enum op op, double level, struct nr_picture *a, struct nr_picture *b, struct nr_draws *d)
{
	const struct nr_randaugment *r = j->r;
	const int bits = (int)(level * 4), threshold = (int)(level * 256);
	struct nr_picture swap;
	switch (op) {
	case AUTO_CONTRAST: nr_autocontrast(a); return;
	case EQUALIZE: nr_equalize(a); return;
	case INVERT: nr_invert(a); return;
	case POSTERIZE: nr_posterize(a, r->inc ? 4 - bits : bits); return;
	case SOLARIZE: nr_solarize(a, r->inc ? 256 - threshold : threshold); return;
	case SOLARIZE_ADD: nr_solarize_add(a, (int)(level * 110)); return;
	case COLOR: nr_saturate(a, strength(r, level, d)); return;
	case CONTRAST: nr_contrast(a, strength(r, level, d)); return;
	case BRIGHTNESS: nr_brighten(a, strength(r, level, d)); return;
	case SHARPNESS: nr_sharpen(a, strength(r, level, d), b); break;
	default: warp(j, op, level, a, b, d);
	}
	swap = *a, *a = *b, *b = swap;
}

int nr_randaugment_run(const struct nr_randaugment *r, enum nr_filter filter, const uint8_t fill[3], struct nr_picture *a,
	struct nr_picture *b, struct nr_draws *d, struct nr_error *err)
{
	const int code = nr_picture_resize(b, a->h, a->w, a->channels, err);
	if (code) return code;
	const struct job j = { r, filter == NR_FILTER_BILINEAR ? filter : NR_FILTER_BICUBIC, fill };
	for (int64_t i = 0; i < r->n; i++) {
		const enum op op = (enum op)nr_draw_below(d, OPS);
		if (nr_draw(d) < r->prob) apply(&j, op, magnitude(r, d) / 10, a, b, d);
	}
	return NR_OK;
}
