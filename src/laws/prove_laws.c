/* Laws that are not an equation of two norms: invariances, padding, and the limit of uniformity. See prove.h. */
#include <stdio.h>

#include "analysis/uniformity.h"
#include "base/mem.h"
#include "base/rng.h"
#include "laws/norm_trial.h"
#include "laws/prove.h"

enum { STREAM_X = 31, STREAM_DY, STREAM_GAIN, STREAM_SHIFT, STREAM_PADDING, STREAM_DIRECTIONS };

static struct nr_trial_shape shape_of(const struct nr_prove_options *o)
{
	return (struct nr_trial_shape){ .batch = o->batch, .tokens = o->tokens, .channels = o->channels,
		.special = o->special > 0 ? o->special : 0, .heads = o->heads };
}

static void copy(real *to, const real *from, int64_t n) { memcpy(to, from, (size_t)n * sizeof *to); }

/* Two norms on inputs of one shape. */
struct pair { struct nr_trial a, b; };

static int open_pair(struct pair *q, const char *a, const char *b, const struct nr_prove_options *o, double eps,
	struct nr_error *err)
{
	struct nr_trial_shape s = shape_of(o);
	s.eps = eps;
	if (nr_trial_open(&q->a, a, &s, err)) return err->code;
	if (nr_trial_open(&q->b, b, &s, err)) nr_trial_close(&q->a);
	return err->code;
}

static void close_pair(struct pair *q)
{
	nr_trial_close(&q->a);
	nr_trial_close(&q->b);
}

/* The same random x and dy on both sides. */
static void fill_pair(const struct pair *q, uint64_t seed)
{
	const int64_t n = nr_len(q->a.x);
	nr_prove_random(n, nr_trial_x(&q->a), .5, 1.5, seed, STREAM_X);
	nr_prove_random(n, nr_trial_dy(&q->a), 0, 1, seed, STREAM_DY);
	copy(nr_trial_x(&q->b), nr_trial_x(&q->a), n);
	copy(nr_trial_dy(&q->b), nr_trial_dy(&q->a), n);
}

/* ---- f(a x + b) = f(x) -------------------------------------------------------------------------------------------- */

/* a > 0 and b are the same for all values that share an index: one per token, or one per channel of a sample. */
enum over { TOKEN, CHANNEL };
struct change { const char *norm; enum over over; double gain, shift; };

static int64_t index_of(const nr_t *x, enum over over, int64_t i)
{
	const int64_t T = x->d[1], C = x->d[2];
	return over == TOKEN ? i / C : i / (T * C) * C + i % C;
}

/* y' = f(a x + b) and its gradient, which the chain rule multiplies by a. Without eps, which no scaling leaves alone. */
static int invariant(const struct change *c, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct pair q;
	if (open_pair(&q, c->norm, c->norm, o, 0, err)) return err->code;
	const int64_t n = nr_len(q.a.x);
	real *x = nr_trial_x(&q.b);
	for (uint64_t seed = 1; seed <= (uint64_t)o->seeds; seed++) {
		const struct nr_rng gain = nr_rng_make(seed, STREAM_GAIN, 0), shift = nr_rng_make(seed, STREAM_SHIFT, 0);
		fill_pair(&q, seed);
		for (int64_t i = 0; i < n; i++) {
			const uint64_t at = (uint64_t)index_of(q.a.x, c->over, i);
			x[i] = (real)(exp(c->gain * nr_rng_normal(gain, at)) * x[i] + c->shift * nr_rng_normal(shift, at));
		}
		nr_trial_run(&q.a);
		nr_trial_run(&q.b);
		nr_proof_compare(p, "y", n, nr_trial_y(&q.b), nr_trial_y(&q.a));
		for (int64_t i = 0; i < n; i++) {
			const uint64_t at = (uint64_t)index_of(q.a.x, c->over, i);
			x[i] = (real)(exp(c->gain * nr_rng_normal(gain, at)) * nr_trial_dx(&q.b)[i]);
		}
		nr_proof_compare(p, "dx", n, x, nr_trial_dx(&q.a));
	}
	close_pair(&q);
	nr_proof_close(p, o->tolerance);
	return NR_OK;
}

static int layer_token(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return invariant(&(struct change){ "layer:eps=0", TOKEN, 1, 1 }, o, p, err);
}
static int rms_token(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return invariant(&(struct change){ "rms:eps=0", TOKEN, 1, 0 }, o, p, err);
}
static int instance_contrast(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return invariant(&(struct change){ "instance:eps=0", CHANNEL, 1, 1 }, o, p, err);
}

/* The opposite is to hold: a shift of a token is seen. */
static int rms_shift(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	const int code = invariant(&(struct change){ "rms:eps=0", TOKEN, 0, 1 }, o, p, err);
	p->holds = p->values > .01;
	snprintf(p->note, sizeof p->note, "a shift changes y by %.2f", p->values);
	return code;
}

/* ---- f(x) = g(x - mean) --------------------------------------------------------------------------------------------- */

/* Means over the channels of each token, or over all tokens of each channel. */
static void take_off_means(int64_t rows, int64_t C, enum over over, real *x)
{
	const int64_t n = over == TOKEN ? rows : C, count = over == TOKEN ? C : rows;
	const int64_t apart = over == TOKEN ? C : 1, step = over == TOKEN ? 1 : C;
	for (int64_t r = 0; r < n; r++) {
		double sum = 0;
		for (int64_t i = 0; i < count; i++) sum += x[r * apart + i * step];
		for (int64_t i = 0; i < count; i++) x[r * apart + i * step] -= (real)(sum / (double)count);
	}
}

static int centred(const char *whole, const char *plain, enum over over, const struct nr_prove_options *o,
	struct nr_proof *p, struct nr_error *err)
{
	struct pair q;
	if (open_pair(&q, whole, plain, o, 1e-5, err)) return err->code;
	const int64_t n = nr_len(q.a.x), C = nr_cols(q.a.x);
	for (uint64_t seed = 1; seed <= (uint64_t)o->seeds; seed++) {
		fill_pair(&q, seed);
		take_off_means(n / C, C, over, nr_trial_x(&q.b));
		nr_trial_run(&q.a);
		nr_trial_run(&q.b);
		nr_proof_compare(p, "y", n, nr_trial_y(&q.a), nr_trial_y(&q.b));
		real *through = nr_trial_x(&q.b);          /* the gradient goes back through x - mean in the same way */
		copy(through, nr_trial_dx(&q.b), n);
		take_off_means(n / C, C, over, through);
		nr_proof_compare(p, "dx", n, nr_trial_dx(&q.a), through);
	}
	close_pair(&q);
	nr_proof_close(p, o->tolerance);
	return NR_OK;
}

static int layer_is_centred_rms(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return centred("layer", "rms", TOKEN, o, p, err);
}
static int batch_is_centred_power(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return centred("batch", "power:variant=pnv", CHANNEL, o, p, err);
}

/* ---- switch with all weight on one of its three -------------------------------------------------------------------- */

static void point_at(const struct nr_trial *t, const char *name, int64_t k)
{
	const struct nr_entry *e = nr_store_find(t->store, name);
	for (int64_t i = 0; e && i < e->count; i++) nr_value(e)[i] = i == k ? 100 : -100;
}

static int switch_points(int64_t k, const char *norm, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct pair q;
	if (open_pair(&q, "switch", norm, o, 1e-5, err)) return err->code;
	const int64_t n = nr_len(q.a.x);
	point_at(&q.a, "mean_weight", k);
	point_at(&q.a, "var_weight", k);
	for (uint64_t seed = 1; seed <= (uint64_t)o->seeds; seed++) {
		fill_pair(&q, seed);
		nr_trial_run(&q.a);
		nr_trial_run(&q.b);
		nr_proof_compare(p, "y", n, nr_trial_y(&q.a), nr_trial_y(&q.b));
		nr_proof_compare(p, "dx", n, nr_trial_dx(&q.a), nr_trial_dx(&q.b));
	}
	close_pair(&q);
	nr_proof_close(p, o->tolerance);
	return NR_OK;
}

static int switch_to_instance(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return switch_points(0, "instance", o, p, err);
}
static int switch_to_layer(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return switch_points(1, "layer", o, p, err);
}
static int switch_to_batch(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return switch_points(2, "batch", o, p, err);
}

/* ---- padding ------------------------------------------------------------------------------------------------------- */

static int32_t length_of(int64_t T, int64_t b) { return (int32_t)(T > b ? T - b * (T / 4) % T : 1); }

/* The real tokens of (B,T,C), one after the other. */
static int64_t gather(const nr_t *x, const int32_t *length, const real *from, real *to)
{
	const int64_t T = x->d[1], C = x->d[2];
	int64_t n = 0;
	for (int64_t b = 0; b < x->d[0]; b++) {
		copy(to + n, from + b * T * C, length[b] * C);
		n += length[b] * C;
	}
	return n;
}

static void compare_padded(struct nr_proof *p, const struct nr_trial *padded, const struct nr_trial *packed, real *part)
{
	const int32_t *length = nr_trial_lengths(padded);
	const int64_t n = gather(padded->x, length, nr_trial_y(padded), part);
	nr_proof_compare(p, "y", n, part, nr_trial_y(packed));
	gather(padded->x, length, nr_trial_dx(padded), part);
	nr_proof_compare(p, "dx", n, part, nr_trial_dx(packed));
	for (int64_t i = 0; i < nr_store_count(packed->store); i++) {
		const struct nr_entry *e = nr_store_at(packed->store, i), *q = nr_store_at(padded->store, i);
		if (!e->buffer) nr_proof_compare(p, e->name, e->count, nr_grad(q), nr_grad(e));
	}
}

/* A batch with padding against its real tokens alone, as one long sample. dy is zero at padding. */
static int batch_padding(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct nr_trial_shape s = shape_of(o);
	s.lengths = 1;
	s.special = 0;
	struct nr_trial_shape all = s;
	all.lengths = 0;
	all.batch = 1;
	all.tokens = 0;
	for (int64_t b = 0; b < s.batch; b++) all.tokens += length_of(s.tokens, b);
	struct nr_trial padded, packed;
	if (nr_trial_open(&padded, "batch", &s, err)) return err->code;
	if (nr_trial_open(&packed, "batch", &all, err)) {
		nr_trial_close(&padded);
		return err->code;
	}
	const int64_t n = nr_len(padded.x), per = s.tokens * s.channels;
	int32_t *length = nr_trial_lengths(&padded);
	struct nr_arena *arena = nr_arena_make();
	real *part = arena ? nr_arena_alloc(arena, (size_t)n * sizeof *part) : NULL;
	if (!part) nr_fail(err, NR_EMEMORY, "cannot prove", "padding", "out of memory");
	for (int64_t b = 0; b < s.batch; b++) length[b] = length_of(s.tokens, b);
	for (uint64_t seed = 1; part && seed <= (uint64_t)o->seeds; seed++) {
		real *x = nr_trial_x(&padded), *dy = nr_trial_dy(&padded);
		nr_prove_random(n, x, .5, 1.5, seed, STREAM_X);
		nr_prove_random(n, dy, 0, 1, seed, STREAM_DY);
		for (int64_t b = 0; b < s.batch; b++)
			for (int64_t i = length[b] * s.channels; i < per; i++) x[b * per + i] = 100, dy[b * per + i] = 0;
		gather(padded.x, length, x, nr_trial_x(&packed));
		gather(padded.x, length, dy, nr_trial_dy(&packed));
		nr_trial_run(&padded);
		nr_trial_run(&packed);
		compare_padded(p, &padded, &packed, part);
	}
	nr_arena_free(arena);
	nr_trial_close(&packed);
	nr_trial_close(&padded);
	nr_proof_close(p, o->tolerance);
	return err->code;
}

static int batch_of_one(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct nr_prove_options one = *o;
	one.batch = 1;
	return nr_prove_equation("batch = instance", &one, p, err);
}

/* ---- uniformity ---------------------------------------------------------------------------------------------------- */

/* Two random directions in C dimensions have a cosine of mean 0 and variance 1/C, so log E exp(-2 |u - v|^2) =
 * -4 + log E exp(4 cos) is about -4 + 8/C. The mean over n (n-1) / 2 pairs has an error of about (4 / sqrt C) sqrt(2) / n. */
static int uniformity(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	enum { N = 256, STEPS = 3 };
	static const int64_t dims[STEPS] = { 16, 128, 1024 };
	struct nr_arena *arena = nr_arena_make();
	real *x = arena ? nr_arena_alloc(arena, (size_t)(N * dims[STEPS - 1]) * sizeof *x) : NULL;
	if (!x) nr_fail(err, NR_EMEMORY, "cannot prove", "uniformity", "out of memory");
	size_t used = (size_t)snprintf(p->note, sizeof p->note, "%d directions:", N);
	p->holds = 1;
	for (int i = 0; x && i < STEPS; i++) {
		const double C = (double)dims[i], bound = 8 / C + 4 * (4 / sqrt(C)) * sqrt(2.) / N;
		struct nr_pairs pairs;
		nr_prove_random(N * dims[i], x, 0, 1, 1, STREAM_DIRECTIONS);
		if (nr_uniformity(N, dims[i], x, 2, &pairs, err)) break;
		p->values = fabs(pairs.uniformity + 4);
		if (!(p->values <= bound)) p->holds = 0;
		used += (size_t)snprintf(p->note + used, sizeof p->note - used, "%s %.4f at C = %d (bound %.4f)", i ? "," : "",
			pairs.uniformity, (int)dims[i], -4 + bound);
	}
	nr_arena_free(arena);
	(void)o;
	return err->code;
}

const struct nr_law nr_laws_other[] = {
	{ "layer(a x + b) = layer(x), a > 0 and b per token", "arXiv:1607.06450", layer_token },
	{ "rms(a x) = rms(x), a > 0 per token", "arXiv:1910.07467", rms_token },
	{ "rms(x + b) != rms(x), b per token", "arXiv:1910.07467", rms_shift },
	{ "rms(x - mean_C x) = layer(x)", "arXiv:1910.07467", layer_is_centred_rms },
	{ "power:variant=pnv(x - mean_BT x) = batch(x)", "arXiv:2003.07845", batch_is_centred_power },
	{ "switch -> instance, all weight on its first", "arXiv:1806.10779", switch_to_instance },
	{ "switch -> layer, all weight on its second", "arXiv:1806.10779", switch_to_layer },
	{ "switch -> batch, all weight on its third", "arXiv:1806.10779", switch_to_batch },
	{ "instance(a x + b) = instance(x), per channel: contrast", "arXiv:1607.08022", instance_contrast },
	{ "batch(one sample) = instance", "arXiv:1502.03167", batch_of_one },
	{ "batch(padded) = batch(its real tokens)", "arXiv:1502.03167", batch_padding },
	{ "uniformity(random directions) -> -4 as C grows", "SepNorm, Eq. 4", uniformity },
	{ NULL, NULL, NULL },
};
