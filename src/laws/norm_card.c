/* Parameters, first values and cost of a normalization. See norm_card.h. */
#include "laws/norm_card.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "laws/norm_trial.h"

int nr_norm_composite(const struct nr_norm *norm)
{
	for (const struct nr_option *o = norm->options; o->name; o++)
		if (!o->text) return 1;
	return 0;
}

const char *nr_norm_example(const struct nr_norm *norm, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s", norm->name);
	int parts = 0;
	for (const struct nr_option *o = norm->options; o->name; o++) {
		if (o->text || used >= size) continue;
		const char *part = !parts && nr_norm_find("batch", NULL) ? "batch" : "layer";
		used += (size_t)snprintf(buf + used, size - used, "%c%s", parts++ ? ',' : '(', part);
	}
	if (parts && used < size) snprintf(buf + used, size - used, ")");
	return buf;
}

const struct nr_norm *nr_norm_of_text(const char *text, struct nr_error *err)
{
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":( "), text);
	return nr_norm_find(name, err);
}

/* ---- parameters ----------------------------------------------------------------------------------------------------- */

/* Sizes that nothing else has, so that a size tells its letter. */
enum { CHANNELS = 28, HEADS = 7, TOKENS = 11, SHOWN = 6 };

static const char *letter(int64_t size)
{
	return size == CHANNELS ? "C" : size == HEADS ? "H" : size == TOKENS ? "T" : NULL;
}

static const char *shape_text(const struct nr_entry *e, struct nr_arena *arena)
{
	const char *s = "";
	for (int i = 0; i < e->nd && s; i++) {
		const char *l = letter(e->d[i]), *between = i ? " x " : "";
		s = l ? nr_arena_printf(arena, "%s%s%s", s, between, l)
		      : nr_arena_printf(arena, "%s%s%lld", s, between, (long long)e->d[i]);
	}
	return s;
}

static const char *number(double v, struct nr_arena *arena)
{
	char text[32];
	if (fabs(v - sqrt(CHANNELS)) < 1e-5) return "sqrt(C)";
	return nr_arena_strdup(arena, nr_double_text(v, true, text, sizeof text));
}

/* One number if all are the same, else the first few. */
static const char *first_values(const struct nr_entry *e, struct nr_arena *arena)
{
	const real *v = nr_value(e);
	int64_t same = 1;
	while (same < e->count && !(v[same] < v[0]) && !(v[same] > v[0])) same++;
	const char *s = number((double)v[0], arena);
	for (int64_t i = 1; same < e->count && i < SHOWN && i < e->count && s; i++)
		s = nr_arena_printf(arena, "%s, %s", s, number((double)v[i], arena));
	return same < e->count && e->count > SHOWN && s ? nr_arena_printf(arena, "%s, ...", s) : s;
}

/* "2 C + 5 H": sizes multiplied, equal letters added. */
struct terms { const char *letters[8]; int64_t factor[8]; int count; };

static void add_term(struct terms *t, const struct nr_entry *e, struct nr_arena *arena)
{
	const char *letters = "";
	int64_t factor = 1;
	for (int i = 0; i < e->nd && letters; i++) {
		const char *l = letter(e->d[i]);
		if (l) letters = nr_arena_printf(arena, "%s%s%s", letters, *letters ? " " : "", l);
		else factor *= e->d[i];
	}
	int k = 0;
	while (k < t->count && strcmp(t->letters[k], letters ? letters : "")) k++;
	if (k == 8) return;
	if (k == t->count) t->letters[t->count++] = letters ? letters : "";
	t->factor[k] += factor;
}

static const char *terms_text(const struct terms *t, struct nr_arena *arena)
{
	const char *s = t->count ? "" : "0";
	for (int k = 0; k < t->count && s; k++) {
		const char *plus = k ? " + " : "", *l = t->letters[k];
		if (*l && t->factor[k] == 1) s = nr_arena_printf(arena, "%s%s%s", s, plus, l);
		else s = nr_arena_printf(arena, "%s%s%lld%s%s", s, plus, (long long)t->factor[k], *l ? " " : "", l);
	}
	return s;
}

static int read_entries(struct nr_norm_card *c, struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_trial_shape s = { .batch = 2, .tokens = TOKENS, .channels = CHANNELS, .heads = HEADS,
		.special = nr_norm_composite(c->norm) };
	struct nr_trial t;
	struct terms sum = { .count = 0 };
	if (nr_trial_open(&t, c->text, &s, err)) return err->code;
	c->entries = nr_store_count(t.store);
	c->entry = nr_arena_alloc(arena, (size_t)(c->entries + 1) * sizeof *c->entry);
	for (int64_t i = 0; c->entry && i < c->entries; i++) {
		const struct nr_entry *e = nr_store_at(t.store, i);
		c->entry[i] = (struct nr_norm_entry){ nr_arena_strdup(arena, e->name), shape_text(e, arena),
			first_values(e, arena), e->buffer };
		if (!e->buffer) add_term(&sum, e, arena);
	}
	c->count = terms_text(&sum, arena);
	nr_trial_close(&t);
	return c->entry && c->count ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot describe", c->text, "out of memory");
}

/* ---- cost ------------------------------------------------------------------------------------------------------------ */

static int flops(const char *text, int32_t special, double *forward, double *backward, struct nr_error *err)
{
	const struct nr_trial_shape s = { .batch = 8, .tokens = 196, .channels = 384, .heads = 6, .special = special };
	struct nr_trial t;
	if (nr_trial_open(&t, text, &s, err)) return err->code;
	const struct nr_plan_stats stats = nr_plan_stats(t.plan);
	*forward = stats.forward_flops / (double)nr_len(t.x);
	*backward = stats.backward_flops / (double)nr_len(t.x);
	nr_trial_close(&t);
	return NR_OK;
}

int nr_norm_card(struct nr_norm_card *c, const struct nr_norm *norm, struct nr_arena *arena, struct nr_error *err)
{
	char example[128];
	*c = (struct nr_norm_card){ .norm = norm,
		.text = nr_arena_strdup(arena, nr_norm_example(norm, example, sizeof example)) };
	if (!c->text) return nr_fail(err, NR_EMEMORY, "cannot describe", norm->name, "out of memory");
	const int32_t special = nr_norm_composite(norm);
	double sum_forward = 0, sum_backward = 0;   /* of the product with dy, which every trial has */
	if (read_entries(c, arena, err) || flops("none", special, &sum_forward, &sum_backward, err) ||
		flops(c->text, special, &c->forward, &c->backward, err))
		return err->code;
	c->forward -= sum_forward;
	c->backward -= sum_backward;
	return NR_OK;
}
