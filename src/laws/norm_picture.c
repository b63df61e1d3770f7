/* What an output value of a normalization sees, measured by changing inputs. See norm_card.h. */
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/str.h"
#include "laws/norm_card.h"
#include "laws/norm_trial.h"
#include "laws/prove.h"

enum { B = 2, TOKENS = 6, CHANNELS = 6, HEADS = 2, CHANNEL = 1, STREAM_X = 41 };
static const double change = 1, least = 1e-6;

const char *const nr_norm_cells[4] = { "□", "▨", "▣", "■" };

/* The trial with a saved start: buffers go back to it before every measurement. */
struct look { struct nr_trial trial; real *base, *buffers; int64_t at; };

static void buffers(const struct look *l, bool save)
{
	real *p = l->buffers;
	for (int64_t i = 0; i < nr_store_count(l->trial.store); i++) {
		const struct nr_entry *e = nr_store_at(l->trial.store, i);
		if (!e->buffer) continue;
		if (save) memcpy(p, nr_value(e), (size_t)e->count * sizeof *p);
		else memcpy(nr_value(e), p, (size_t)e->count * sizeof *p);
		p += e->count;
	}
}

static int64_t buffer_count(const struct nr_store *s)
{
	int64_t n = 0;
	for (int64_t i = 0; i < nr_store_count(s); i++)
		if (nr_store_at(s, i)->buffer) n += nr_store_at(s, i)->count;
	return n;
}

/* The output value now, and in the next step, when the input is the base again. */
static void measure(struct look *l, int64_t changed, double out[2])
{
	real *x = nr_trial_x(&l->trial);
	memcpy(x, l->base, (size_t)nr_len(l->trial.x) * sizeof *x);
	if (changed >= 0) x[changed] += (real)change;
	buffers(l, false);
	const struct nr_exec ex = { .train = 1, .step = 1, .seed = 1 };
	nr_plan_run(l->trial.plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	out[0] = (double)nr_trial_y(&l->trial)[l->at];
	memcpy(x, l->base, (size_t)nr_len(l->trial.x) * sizeof *x);
	nr_trial_forward(&l->trial);
	out[1] = (double)nr_trial_y(&l->trial)[l->at];
	buffers(l, false);
}

static void look_at_all(struct look *l, struct nr_norm_picture *p)
{
	double before[2], after[2];
	buffers(l, true);
	measure(l, -1, before);
	for (int64_t i = 0; i < p->B * p->T * p->C; i++) {
		measure(l, i, after);
		const double scale = fmax(1, fabs(before[0]));
		const bool now = fabs(after[0] - before[0]) > least * scale, next = fabs(after[1] - before[1]) > least * scale;
		p->cell[i] = i == l->at ? NR_SELF : now ? NR_SEEN : next ? NR_SEEN_LATER : NR_UNSEEN;
	}
}

int nr_norm_look(struct nr_norm_picture *p, const char *text, int32_t special, int64_t token, struct nr_arena *arena,
	struct nr_error *err)
{
	const struct nr_trial_shape s = { .batch = B, .tokens = TOKENS, .channels = CHANNELS, .heads = HEADS, .special = special };
	struct look l = { .at = token * CHANNELS + CHANNEL };
	*p = (struct nr_norm_picture){ .B = B, .T = special + TOKENS, .C = CHANNELS, .token = token, .channel = CHANNEL,
		.special = special };
	if (nr_trial_open(&l.trial, text, &s, err)) return err->code;
	const int64_t n = nr_len(l.trial.x);
	p->cell = nr_arena_alloc(arena, (size_t)n);
	l.base = nr_arena_alloc(arena, (size_t)n * sizeof(real));
	l.buffers = nr_arena_alloc(arena, (size_t)(buffer_count(l.trial.store) + 1) * sizeof(real));
	if (p->cell && l.base && l.buffers) {
		nr_prove_random(n, l.base, 0, 1, 1, STREAM_X);
		nr_prove_random(n, nr_trial_dy(&l.trial), 0, 1, 2, STREAM_X);
		look_at_all(&l, p);
	} else {
		nr_fail(err, NR_EMEMORY, "cannot look at", text, "out of memory");
	}
	nr_trial_close(&l.trial);
	return err ? err->code : NR_OK;
}

/* ---- words and drawing ---------------------------------------------------------------------------------------------- */

/* Which axes the cells of at least this kind reach along. */
struct reach { bool channels, tokens, samples, all_channels; };

static struct reach reach_of(const struct nr_norm_picture *p)
{
	struct reach r = { .all_channels = true };
	for (int64_t i = 0; i < p->B * p->T * p->C; i++) {
		const int64_t c = i % p->C, t = i / p->C % p->T, b = i / p->C / p->T;
		const bool seen = p->cell[i] != NR_UNSEEN;
		r.channels |= seen && c != p->channel;
		r.tokens |= seen && t != p->token && b == 0;
		r.samples |= seen && b != 0;
		if (b == 0 && t == p->token && !seen) r.all_channels = false;
	}
	return r;
}

void nr_norm_over(const struct nr_norm_picture *p, struct nr_str *s)
{
	const struct reach r = reach_of(p);
	bool now = false, later = false;
	for (int64_t i = 0; i < p->B * p->T * p->C; i++) now |= p->cell[i] == NR_SEEN, later |= p->cell[i] == NR_SEEN_LATER;
	const char *const word[] = { r.channels ? r.all_channels ? "channels" : "a group of channels" : NULL,
		r.tokens ? "tokens" : NULL, r.samples ? "samples" : NULL };
	int n = 0;
	for (int i = 0; i < 3; i++)
		if (word[i]) nr_str_printf(s, "%s%s", n++ ? ", " : "", word[i]);
	if (!n) nr_str_add(s, "nothing");
	if (later) nr_str_add(s, now ? ", earlier steps" : " of earlier steps");
}

static void draw_tokens(const struct nr_norm_picture *p, int64_t t, struct nr_str *s)
{
	for (int64_t b = 0; b < p->B; b++) {
		nr_str_add(s, b ? "   " : " ");
		for (int64_t c = 0; c < p->C; c++) nr_str_printf(s, " %s", nr_norm_cells[p->cell[(b * p->T + t) * p->C + c]]);
	}
}

void nr_norm_draw(const struct nr_norm_picture *p, const char *indent, struct nr_str *s)
{
	nr_str_printf(s, "%s%-9s  %-*s %s\n", indent, "", (int)(2 * p->C + 2), "sample 0", "sample 1");
	for (int64_t t = 0; t < p->T; t++) {
		if (t < p->special) nr_str_printf(s, "%s%-9s", indent, "special");
		else nr_str_printf(s, "%stoken %-3d", indent, (int)(t - p->special));
		draw_tokens(p, t, s);
		nr_str_add(s, "\n");
	}
}
