/* src/models/{mae,position}.c: masks, what the encoder and the decoder see, uniformity terms, plans, names. */
#include <unistd.h>

#include "models/names.h"
#include "unit/rig.h"

#include "base/mem.h"
#include "graph/streams.h"
#include "models/mae.h"
#include "norma/safetensors.h"

#define TINY "vit:image=8,channels=2,patch=2,dim=8,depth=2,heads=2"
#define SMALL "decoder_dim=12,decoder_depth=1,decoder_heads=3"

enum { B = 3, N = 16, C = 8, PIXELS = 8 };

struct mae {
	struct rig r;
	struct nr_arena *arena;
	struct nr_model_spec model;
	struct nr_mae o;
	struct nr_mae_graph g;
};

/* Records; false when that fails. */
static bool record(struct mae *m, const char *model, const char *options, const char *norms, int64_t batch)
{
	*m = (struct mae){ .r = rig(), .arena = nr_arena_make() };
	nr_option_defaults(nr_mae_options, &m->o);
	if (nr_option_parse(nr_mae_options, &m->o, options, m->arena, &m->r.err) ||
	    nr_model_parse(&m->model, model, m->arena, &m->r.err) || nr_mae_encoder(&m->model, &m->o, m->arena, &m->r.err) ||
	    nr_norms_use(m->r.n, norms, &m->model.norms, &m->r.err))
		return false;
	nr_net_keep_hidden(m->r.n, 1);
	nr_mae_record(m->r.n, &m->model, &m->o, batch, &m->g);
	return !nr_norms_done(m->r.n, &m->r.err);
}

static struct mae built(const char *model, const char *options, const char *norms)
{
	struct mae m;
	char text[1200];
	if (!record(&m, model, options, norms, B)) fail_msg("%s %s: %s", options, norms, nr_error_text(&m.r.err, text, sizeof text));
	return m;
}

/* Plans for x, fills pictures and the mask, and gives every parameter a value that is not its first. */
static struct nr_mae_mask ready(struct mae *m, nr_t *x)
{
	char text[1200];
	if (nr_plan_make(&m->r.plan, m->r.n, x, NR_PLAN_TRAIN | NR_PLAN_POISON, &m->r.err))
		fail_msg("%s", nr_error_text(&m->r.err, text, sizeof text));
	real *image = nr_plan_data(m->r.plan, m->g.image);
	for (int64_t i = 0; i < nr_len(m->g.image); i++) image[i] = 2 * value();
	for (int64_t i = 0; i < nr_store_count(m->r.store); i++) {
		const struct nr_entry *e = nr_store_at(m->r.store, i);
		for (int64_t k = 0; !e->buffer && !e->frozen && k < e->count; k++) nr_value(e)[k] += (real).3 * value();
	}
	const struct nr_mae_mask mask = nr_mae_mask(&m->g, m->r.plan);
	nr_mae_mask_draw(&mask, nr_rng_make(1, NR_STREAM_MASK, 1), 0);
	return mask;
}

static void pass(struct mae *m, int train)
{
	const struct nr_exec ex = { .train = train, .seed = 3, .step = 1 };
	nr_plan_run(m->r.plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
}

static const real *kept_data(const struct mae *m, const nr_t *t) { return nr_plan_data(m->r.plan, t); }
static const real *value_of(const struct mae *m, const char *name)
{
	const struct nr_entry *e = nr_store_find(m->r.store, name);
	if (!e) fail_msg("no entry %s", name);
	return nr_value(e);
}

static void discard(struct mae *m)
{
	release(&m->r);
	nr_arena_free(m->arena);
}

/* ---- masks ------------------------------------------------------------------------------------------------------------- */

static void the_share_of_patches_is_rounded_as_in_the_released_code(void **state)
{
	(void)state;
	assert_int_equal(nr_mae_kept(196, 0.75), 49);
	assert_int_equal(nr_mae_kept(64, 0.75), 16);
	assert_int_equal(nr_mae_kept(50, 0.9), 4);      /* int(50 * (1 - 0.9)) in Python: 1 - 0.9 is below 0.1 */
	assert_int_equal(nr_mae_kept(25, 0.6), 10);
	assert_int_equal(nr_mae_kept(9, 0), 9);
	assert_int_equal(nr_mae_kept(9, 1), 0);
}

struct drawn { int32_t kept[8 * 40], restore[8 * 60]; real weight[8 * 50]; };

static struct nr_mae_mask mask_on(struct drawn *d, int64_t batch, int64_t patches, int64_t visible, int64_t special, int64_t places)
{
	*d = (struct drawn){ 0 };
	return (struct nr_mae_mask){ batch, patches, visible, special, places, d->kept, d->restore, d->weight };
}

static void every_mask_is_a_permutation_that_comes_back(void **state)
{
	(void)state;
	static const int64_t sizes[][4] = { { 16, 4, 1, 1 }, { 1, 1, 0, 0 }, { 37, 9, 5, 1 }, { 50, 40, 2, 0 }, { 6, 6, 1, 1 } };
	for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
		const int64_t P = sizes[c][0], K = sizes[c][1], S = sizes[c][2], places = sizes[c][3];
		struct drawn d;
		const struct nr_mae_mask m = mask_on(&d, 8, P, K, S, places);
		nr_mae_mask_draw(&m, nr_rng_make(5, NR_STREAM_MASK, (uint32_t)c), 0);
		for (int64_t b = 0; b < 8; b++) {
			const int32_t *restore = d.restore + b * (places + P), *kept = d.kept + b * K;
			int64_t seen[64] = { 0 }, masked = 0;
			for (int64_t i = 0; i < places; i++) assert_int_equal(restore[i], i);
			for (int64_t i = 0; i < P; i++) {
				const int64_t rank = restore[places + i] - S;
				assert_in_range(rank, 0, P - 1);
				assert_int_equal(seen[rank]++, 0);
				assert_true(d.weight[b * P + i] == (rank >= K));
				masked += rank >= K;
				if (rank < K) assert_int_equal(kept[rank], i);
			}
			assert_int_equal(masked, P - K);
		}
	}
}

static void the_smallest_noise_is_kept_and_ties_go_by_number(void **state)
{
	(void)state;
	static const float noise[] = { .5f, -.1f, .25f, -3, 0, .25f, /**/ 1, 1, 1, 1, 1, 1, /**/ 0.f, -0.f, 0.f, 9, -0.f, 1e-40f };
	static const int32_t want[] = { 3, 1, 4, 2, /**/ 0, 1, 2, 3, /**/ 0, 1, 2, 4 }, ranks[] = { 5, 1, 3, 0, 2, 4 };
	struct drawn d;
	const struct nr_mae_mask m = mask_on(&d, 3, 6, 4, 0, 0);
	nr_mae_mask_noise(&m, noise);
	assert_memory_equal(d.kept, want, sizeof want);
	assert_memory_equal(d.restore, ranks, sizeof ranks);
}

static void masks_are_sorted_at_any_length(void **state)
{
	(void)state;
	const int64_t P = NR_MAE_MAX_PATCHES;
	float *noise = malloc((size_t)P * sizeof *noise);
	int32_t *kept = malloc((size_t)P * sizeof *kept), *restore = malloc((size_t)P * sizeof *restore);
	real *weight = blank(P);
	for (int64_t i = 0; i < P; i++) noise[i] = (float)value();
	const struct nr_mae_mask m = { 1, P, P, 0, 0, kept, restore, weight };
	nr_mae_mask_noise(&m, noise);
	for (int64_t i = 1; i < P; i++)
		assert_true(noise[kept[i - 1]] < noise[kept[i]] || (noise[kept[i - 1]] == noise[kept[i]] && kept[i - 1] < kept[i]));
	free(noise), free(kept), free(restore), free(weight);
}

static void a_draw_depends_on_seed_step_and_sample_alone(void **state)
{
	(void)state;
	struct drawn whole, half, other;
	const struct nr_mae_mask a = mask_on(&whole, 8, 30, 7, 1, 1), b = mask_on(&half, 4, 30, 7, 1, 1);
	const struct nr_mae_mask c = mask_on(&other, 8, 30, 7, 1, 1);
	nr_mae_mask_draw(&a, nr_rng_make(5, NR_STREAM_MASK, 9), 0);
	nr_mae_mask_draw(&b, nr_rng_make(5, NR_STREAM_MASK, 9), 4);             /* the second micro-batch of the same step */
	assert_memory_equal(half.kept, whole.kept + 4 * 7, 4 * 7 * sizeof(int32_t));
	assert_memory_equal(half.restore, whole.restore + 4 * 31, 4 * 31 * sizeof(int32_t));
	nr_mae_mask_draw(&c, nr_rng_make(5, NR_STREAM_MASK, 10), 0);
	assert_memory_not_equal(other.kept, whole.kept, 8 * 7 * sizeof(int32_t));
}

/* ---- what encoder and decoder see ---------------------------------------------------------------------------------------- */

static void gradients_reach_visible_patches_only(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL, "sep(bn,ln) decoder.*=ln");
	m.g.image->flags |= NR_GRAD;
	nr_t *each = nr_input(m.r.n, "each", NR_REAL, NR_SHAPE(m.g.latent->d[0], m.g.latent->d[1], m.g.latent->d[2]));
	const struct nr_mae_mask mask = ready(&m, nr_weighted_sum(m.r.n, m.g.latent, each));
	assert_int_equal(m.g.latent->d[1], 1 + 4);
	assert_ptr_equal(m.g.latent->tok->pos, m.g.kept);
	real *w = nr_plan_data(m.r.plan, each);
	for (int64_t i = 0; i < nr_len(each); i++) w[i] = value();
	pass(&m, 1);
	const real *dx = nr_plan_grad(m.r.plan, m.g.image);
	for (int b = 0; b < B; b++)
		for (int t = 0; t < N; t++) {
			double size = 0;
			for (int i = 0; i < PIXELS; i++)
				size += fabs((double)dx[((b * 2 + i / 4) * 8 + t / 4 * 2 + i / 2 % 2) * 8 + t % 4 * 2 + i % 2]);
			assert_true(mask.weight[b * N + t] > 0 ? size == 0 : size > 0);
		}
	discard(&m);
}

/* Without blocks, norms and positions a place of the decoder holds its own row, or the mask token. */
static void the_decoder_sees_each_token_at_its_place(void **state)
{
	(void)state;
	static const char *const models[] = { TINY, TINY ",registers=3", TINY ",class_token=0", TINY ",class_at=1,registers=1" };
	for (size_t c = 0; c < sizeof models / sizeof *models; c++) {
		struct mae m = built(models[c], "decoder_dim=12,decoder_depth=0,pos=none", "ln decoder.*=none");
		const struct nr_mae_mask mask = ready(&m, m.g.loss);
		const int64_t S = m.g.latent->tok->special, classes = nr_model_int(&m.model, "class_token");
		assert_int_equal(S, classes + nr_model_int(&m.model, "registers"));
		assert_int_equal(m.g.restore->d[1], classes + N);
		pass(&m, 1);
		const real *latent = kept_data(&m, m.g.latent), *pred = kept_data(&m, m.g.pred);
		const real *token = value_of(&m, "decoder.mask_token");
		const real *embed = value_of(&m, "decoder.embed.weight"), *embed_bias = value_of(&m, "decoder.embed.bias");
		const real *out = value_of(&m, "decoder.pred.weight"), *out_bias = value_of(&m, "decoder.pred.bias");
		for (int64_t b = 0; b < B; b++)
			for (int64_t t = 0; t < N; t++) {
				double row[12];
				int64_t at = -1;
				for (int64_t k = 0; k < mask.visible; k++)
					if (mask.kept[b * mask.visible + k] == t) at = k;
				const real *x = latent + (b * (S + mask.visible) + S + at) * C;
				for (int64_t i = 0; i < 12; i++) {
					row[i] = at < 0 ? (double)token[i] : (double)embed_bias[i];
					for (int64_t k = 0; at >= 0 && k < C; k++) row[i] += (double)embed[i * C + k] * (double)x[k];
				}
				for (int64_t i = 0; i < PIXELS; i++) {
					double want = (double)out_bias[i];
					for (int64_t k = 0; k < 12; k++) want += (double)out[i * 12 + k] * row[k];
					close_to(&pred[(b * N + t) * PIXELS + i], &want, 1, 1e-5);
				}
			}
		discard(&m);
	}
}

/* With every patch kept, in any order, the encoder gives each token what it gives it without a mask. */
static void a_subset_of_all_tokens_changes_nothing(void **state)
{
	(void)state;
	static const char *const plans[] = { "ln", "bn", "sep(bn,ln)", "dtn", "sep(bn,dtn)", "dtn:variant=official", "rms" };
	for (size_t c = 0; c < sizeof plans / sizeof *plans; c++) {
		struct mae m = built(TINY, SMALL ",mask_ratio=0", plans[c]);
		const struct nr_inputs in = { .image = m.g.image };
		nr_t *patches = m.model.of->embed(m.r.n, &in, m.model.conf);
		nr_t *all = nr_tap(m.r.n, "all", m.model.of->encode(m.r.n, &in, patches, m.model.conf));
		const struct nr_mae_mask mask = ready(&m, m.g.loss);
		pass(&m, 1);
		const real *x = kept_data(&m, m.g.latent), *y = kept_data(&m, all);
		for (int64_t b = 0; b < B; b++)
			for (int64_t t = 0; t <= N; t++) {
				const int64_t from = t ? 1 + mask.kept[b * N + t - 1] : 0;
				assert_near(x + (b * (N + 1) + t) * C, y + (b * (N + 1) + from) * C, C, 2e-4);
			}
		discard(&m);
	}
}

static void fixed_tables_stay_and_tokens_decay_as_in_the_released_code(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL, "");
	ready(&m, m.g.loss);
	const struct nr_entry *pos = nr_store_find(m.r.store, "pos_embed"), *dec = nr_store_find(m.r.store, "decoder.pos_embed");
	assert_true(pos->frozen && dec->frozen);
	assert_int_equal(dec->count, (1 + N) * 12);
	for (int i = 0; i < 12; i++) assert_true(nr_value(dec)[i] == 0);        /* the row of the class token */
	const double want = sin(1);
	close_to(nr_value(dec) + 2 * 12, &want, 1, 1e-7);                       /* column 1 of the grid, first frequency */
	assert_false(nr_store_find(m.r.store, "cls_token")->init & NR_NO_DECAY);
	assert_false(nr_store_find(m.r.store, "decoder.mask_token")->init & NR_NO_DECAY);
	assert_true(nr_store_find(m.r.store, "decoder.final.weight")->init & NR_NO_DECAY);
	discard(&m);
}

/* ---- the loss ------------------------------------------------------------------------------------------------------------ */

static void the_loss_counts_masked_patches_only(void **state)
{
	(void)state;
	for (int normed = 0; normed < 2; normed++) {
		struct mae m = built(TINY, normed ? SMALL : SMALL ",norm_pix=0", "");
		const struct nr_mae_mask mask = ready(&m, m.g.loss);
		pass(&m, 0);
		const real *image = kept_data(&m, m.g.image), *pred = kept_data(&m, m.g.pred);
		double sum = 0;
		for (int b = 0; b < B; b++)
			for (int t = 0; t < N; t++) {
				double y[PIXELS], mean = 0, var = 0;
				for (int i = 0; i < PIXELS; i++) {      /* row, column, channel */
					const int row = t / 4 * 2 + i / 4, col = t % 4 * 2 + i / 2 % 2;
					mean += y[i] = (double)image[((b * 2 + i % 2) * 8 + row) * 8 + col];
				}
				mean /= PIXELS;
				for (int i = 0; i < PIXELS; i++) var += (y[i] - mean) * (y[i] - mean) / (PIXELS - 1);
				for (int i = 0; i < PIXELS && mask.weight[b * N + t] > 0; i++) {
					const double want = normed ? (y[i] - mean) / sqrt(var + 1e-6) : y[i];
					const double e = (double)pred[(b * N + t) * PIXELS + i] - want;
					sum += e * e / PIXELS;
				}
			}
		sum /= B * 12;
		close_to(kept_data(&m, m.g.loss), &sum, 1, 2e-6 * sum);
		discard(&m);
	}
}

/* Mean over the pairs of rows from .. to-1 of z (rows,C). */
static double pairs_of(const struct nr_mae *o, const double *z, int64_t from, int64_t to)
{
	double sum = 0, count = 0;
	for (int64_t i = from; i < to; i++)
		for (int64_t j = from; j < to; j++) {
			const double *x = z + i * C, *y = z + j * C;
			double dot = 0, a = 0, b = 0;
			if (i == j && !o->self) continue;
			for (int k = 0; k < C; k++) dot += x[k] * y[k], a += x[k] * x[k], b += y[k] * y[k];
			if (o->unit) dot /= sqrt(a * b);
			sum += o->power == NR_UNIFORM_SQUARE ? dot * dot : dot;
			count++;
		}
	return sum / count;
}

/* The term from the latent rows by plain loops. */
static double uniformity_of(const struct mae *m)
{
	enum { K = 4 };
	const real *latent = kept_data(m, m->g.latent), *w = value_of(m, "final.weight"), *b = value_of(m, "final.bias");
	double cls[B * C], tokens[B * K * C], within = 0;
	for (int r = 0; r < B * (K + 1); r++) {
		double row[C], mean = 0, var = 0;
		for (int k = 0; k < C; k++) mean += (row[k] = (double)latent[r * C + k]) / C;
		for (int k = 0; k < C; k++) var += (row[k] - mean) * (row[k] - mean) / C;
		for (int k = 0; k < C && m->o.extra_norm; k++) row[k] = (row[k] - mean) / sqrt(var + 1e-6) * (double)w[k] + (double)b[k];
		const int s = r / (K + 1), t = r % (K + 1);
		memcpy(t ? tokens + (s * K + t - 1) * C : cls + s * C, row, sizeof row);
	}
	for (int s = 0; s < B; s++) within += pairs_of(&m->o, tokens, s * K, s * K + K) / B;
	const double on_tokens = m->o.in_image ? within : pairs_of(&m->o, tokens, 0, B * K), on_cls = pairs_of(&m->o, cls, 0, B);
	return m->o.uniform == NR_UNIFORM_CLS ? on_cls : m->o.uniform == NR_UNIFORM_TOKENS ? on_tokens : on_cls + on_tokens;
}

static void uniformity_terms_are_those_of_plain_loops(void **state)
{
	(void)state;
	static const char *const targets[] = { "cls", "tokens", "both" };
	for (int c = 0; c < 96; c++) {
		char options[256];
		snprintf(options, sizeof options, SMALL ",uniform=%s,power=%s,self=%d,unit=%d,in_image=%d,extra_norm=%d,lambda=.3",
			targets[c % 3], c / 3 % 2 ? "linear" : "square", c / 6 % 2, c / 12 % 2, c / 24 % 2, c / 48 % 2);
		struct mae m = built(TINY, options, "");
		ready(&m, m.g.loss);
		pass(&m, 1);
		const double unif = uniformity_of(&m), loss = (double)*kept_data(&m, m.g.mae) + .3 * unif;
		close_to(kept_data(&m, m.g.unif), &unif, 1, 3e-6 * fmax(1, fabs(unif)));
		close_to(kept_data(&m, m.g.loss), &loss, 1, 3e-6 * fmax(1, fabs(loss)));
		assert_ptr_equal(nr_plan_tap(m.r.plan, "loss.unif", NULL), m.g.unif);
		assert_ptr_equal(nr_plan_tap(m.r.plan, "loss.mae", NULL), m.g.mae);
		discard(&m);
	}
}

static void infonce_is_that_of_plain_loops(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL ",uniform=cls,power=infonce,temperature=.2,lambda=.3", "");
	ready(&m, m.g.loss);
	pass(&m, 1);
	const real *latent = kept_data(&m, m.g.latent);
	const int64_t row = m.g.latent->d[1] * C;
	double want = 0, loss;
	for (int i = 0; i < B; i++) {
		double sum = 0;
		for (int j = 0; j < B; j++) {
			const real *x = latent + i * row, *y = latent + j * row;
			double dot = 0, a = 0, b = 0;
			for (int k = 0; k < C; k++) {
				dot += (double)x[k] * (double)y[k];
				a += (double)x[k] * (double)x[k], b += (double)y[k] * (double)y[k];
			}
			sum += exp((dot / sqrt(a * b) - 1) / .2);
		}
		want += log(sum) / B;           /* a picture's cosine with itself is 1 */
	}
	loss = (double)*kept_data(&m, m.g.mae) + .3 * want;
	close_to(kept_data(&m, m.g.unif), &want, 1, 3e-6 * fmax(1, want));
	close_to(kept_data(&m, m.g.loss), &loss, 1, 3e-6 * fmax(1, loss));
	discard(&m);
}

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

static void any_plan_builds_and_runs(void **state)
{
	(void)state;
	static const char *const plans[] = { "", "bn", "sep(bn,ln)", "sep(bn,bn) decoder.*=ln", "sep(ln,bn)", "dtn decoder.*=ln",
		"sep(bn,dtn)", "ln decoder.*=rms", "ln decoder.blocks[0].attn.in=bn decoder.final=none", "ln placement=post",
		"ln patch=dual", "ln residual=layerscale:init=1e-1", "ln placement=subln", "ln attn.qk=rms", "group", "power" };
	for (size_t c = 0; c < sizeof plans / sizeof *plans; c++)
		for (int train = 0; train < 2; train++) {
			struct mae m = built(TINY, SMALL ",uniform=both,lambda=.1", plans[c]);
			ready(&m, m.g.loss);
			pass(&m, train);
			int64_t count;
			const real *grad = nr_store_grads(m.r.store, &count);
			double size = 0;
			assert_true(isfinite(*kept_data(&m, m.g.loss)));
			for (int64_t i = 0; i < nr_store_count(m.r.store); i++) {
				const struct nr_entry *e = nr_store_at(m.r.store, i);
				for (int64_t k = 0; !e->buffer && !e->frozen && k < e->count; k++) size += fabs((double)nr_grad(e)[k]);
			}
			assert_true(grad && isfinite(size) && size > 0);
			discard(&m);
		}
}

static void a_rule_for_the_decoder_leaves_the_encoder_alone(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL, "ln decoder.*=rms");
	int64_t count, rms = 0, layer = 0;
	const struct nr_site *s = nr_sites(m.r.n, &count);
	for (int64_t i = 0; i < count; i++) {
		if (!s[i].norm) continue;
		assert_true(!strcmp(s[i].norm, "rms") == !strncmp(s[i].name, "decoder.", 8));
		rms += !strcmp(s[i].norm, "rms");
		layer += !strcmp(s[i].norm, "ln") || !strcmp(s[i].norm, "layer");
	}
	assert_int_equal(rms, 3);
	assert_int_equal(layer, 5);
	discard(&m);
}

static void batch_statistics_move_in_training_only(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL, "sep(bn,ln) decoder.*=ln");
	ready(&m, m.g.loss);
	real before[C];
	const real *mean = value_of(&m, "final.special.running_mean");
	memcpy(before, mean, sizeof before);
	pass(&m, 0);
	assert_same_bits(mean, before, C);
	const real eval = *kept_data(&m, m.g.loss);
	pass(&m, 1);
	assert_memory_not_equal(mean, before, sizeof before);
	assert_true(*kept_data(&m, m.g.loss) != eval);
	discard(&m);
}

static void the_model_learns(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL ",uniform=cls", "sep(bn,ln) decoder.*=ln");
	ready(&m, m.g.loss);
	real first = 0, last = 0;
	for (int i = 0; i < 60; i++) {
		pass(&m, 1);
		last = *kept_data(&m, m.g.loss);
		if (!i) first = last;
		for (int64_t k = 0; k < nr_store_count(m.r.store); k++) {
			const struct nr_entry *e = nr_store_at(m.r.store, k);
			for (int64_t j = 0; !e->buffer && !e->frozen && j < e->count; j++) nr_value(e)[j] -= (real).1 * nr_grad(e)[j];
		}
	}
	if (!(last < (real).8 * first)) fail_msg("loss %g to %g", (double)first, (double)last);
	discard(&m);
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static const char *named(const struct mae *m, const char *naming, const char *entry)
{
	char order;
	assert_non_null(nr_store_find(m->r.store, entry));
	const struct nr_naming *n = nr_naming_find(m->model.of, naming, NULL);
	assert_non_null(n);
	return nr_naming_text(n, entry, &order, m->arena);
}

static void names_are_those_of_the_public_checkpoints(void **state)
{
	(void)state;
	struct mae m = built(TINY, SMALL, "sep(bn,ln) decoder.*=ln");
	static const char *const want[][3] = {
		{ "mae", "decoder.blocks.0.attn.in.weight", "decoder_blocks.0.norm1.weight" },
		{ "mae", "decoder.blocks.0.mlp.fc1.bias", "decoder_blocks.0.mlp.fc1.bias" },
		{ "mae", "decoder.final.bias", "decoder_norm.bias" },
		{ "mae", "decoder.embed.weight", "decoder_embed.weight" }, { "mae", "decoder.pred.weight", "decoder_pred.weight" },
		{ "mae", "decoder.mask_token", "mask_token" }, { "mae", "decoder.pos_embed", "decoder_pos_embed" },
		{ "mae", "final.special.running_var", "norm.cls_norm_layer.running_var" },
		{ "mae", "blocks.1.mlp.in.rest.weight", "blocks.1.norm2.tok_norm_layer.weight" },
		{ "huggingface", "decoder.pos_embed", "decoder.decoder_pos_embed" },
		{ "huggingface", "decoder.mask_token", "decoder.mask_token" },
		{ "huggingface", "decoder.final.weight", "decoder.decoder_norm.weight" },
		{ "huggingface", "decoder.blocks.0.mlp.fc2.weight", "decoder.decoder_layers.0.output.dense.weight" },
		{ "huggingface", "decoder.embed.bias", "decoder.decoder_embed.bias" },
		{ "huggingface", "pos_embed", "vit.embeddings.position_embeddings" },
		{ "huggingface5", "decoder.blocks.0.attn.proj.weight", "decoder.decoder_layers.0.attention.o_proj.weight" },
		{ "huggingface5_mae", "decoder.blocks.0.mlp.in.weight", "decoder.decoder_encoder.layer.0.layernorm_after.weight" },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) assert_string_equal(named(&m, want[i][0], want[i][1]), want[i][2]);
	discard(&m);
}

/* Writes one with every value of its own, reads it into another without being told whose names they are. */
static void public_names_go_out_and_come_back(void **state)
{
	(void)state;
	static const char *const namings[] = { "mae", "huggingface", "huggingface5", "huggingface5_mae", "norma" };
	char path[64], text[1200];
	snprintf(path, sizeof path, "/tmp/norma-mae-%d.safetensors", (int)getpid());
	for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
		struct mae a = built(TINY, SMALL, "sep(bn,ln)"), b = built(TINY, SMALL, "sep(bn,ln)");
		struct nr_error err = { 0 };
		struct nr_import how = { 0 };
		ready(&a, a.g.loss), ready(&b, b.g.loss);
		int64_t n;
		real *from = nr_store_values(a.r.store, &n);
		for (int64_t k = 0; k < n; k++) from[k] = (real)k;
		if (nr_model_export(a.r.store, a.model.of, path, namings[i], NULL, 0, &err) ||
		    nr_model_import(b.r.store, b.model.of, path, &how, &err))
			fail_msg("%s: %s", namings[i], nr_error_text(&err, text, sizeof text));
		assert_string_equal(how.used, strcmp(namings[i], "mae") ? namings[i] : "timm");
		for (int64_t k = 0; k < nr_store_count(a.r.store); k++) {
			const struct nr_entry *e = nr_store_at(a.r.store, k);
			assert_same_bits(nr_value(nr_store_find(b.r.store, e->name)), nr_value(e), e->count);
		}
		discard(&a), discard(&b);
	}
	unlink(path);
}

/* ---- wrong settings ------------------------------------------------------------------------------------------------------ */

static void wrong_settings_say_what_is_wrong(void **state)
{
	(void)state;
	static const struct { const char *model, *options, *says; int64_t batch; } cases[] = {
		{ TINY, SMALL ",mask_ratio=1", "leaves none of the 16 patches", B },
		{ TINY, SMALL ",mask_ratio=.95", "leaves none of the 16 patches", B },
		{ TINY ",class_token=0", SMALL ",uniform=cls", "needs an encoder with a class token", B },
		{ TINY ",image=512", SMALL, "more than 4096 patches", 1 },
		{ TINY, SMALL ",uniform=cls,self=0", "two embeddings", 1 },
		{ TINY, SMALL ",uniform=tokens,power=infonce", "InfoNCE is for [CLS]", B },
		{ TINY, "decoder_dim=10,decoder_depth=1,decoder_heads=2", "divisible by 4", B },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mae m;
		char text[1200];
		assert_false(record(&m, cases[i].model, cases[i].options, "", cases[i].batch));
		nr_error_text(&m.r.err, text, sizeof text);
		if (!strstr(text, cases[i].says)) fail_msg("'%s' does not say '%s'", text, cases[i].says);
		discard(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_share_of_patches_is_rounded_as_in_the_released_code),
		cmocka_unit_test(every_mask_is_a_permutation_that_comes_back),
		cmocka_unit_test(the_smallest_noise_is_kept_and_ties_go_by_number),
		cmocka_unit_test(masks_are_sorted_at_any_length),
		cmocka_unit_test(a_draw_depends_on_seed_step_and_sample_alone),
		cmocka_unit_test(gradients_reach_visible_patches_only),
		cmocka_unit_test(the_decoder_sees_each_token_at_its_place),
		cmocka_unit_test(a_subset_of_all_tokens_changes_nothing),
		cmocka_unit_test(fixed_tables_stay_and_tokens_decay_as_in_the_released_code),
		cmocka_unit_test(the_loss_counts_masked_patches_only),
		cmocka_unit_test(uniformity_terms_are_those_of_plain_loops),
		cmocka_unit_test(infonce_is_that_of_plain_loops),
		cmocka_unit_test(any_plan_builds_and_runs),
		cmocka_unit_test(a_rule_for_the_decoder_leaves_the_encoder_alone),
		cmocka_unit_test(batch_statistics_move_in_training_only),
		cmocka_unit_test(the_model_learns),
		cmocka_unit_test(names_are_those_of_the_public_checkpoints),
		cmocka_unit_test(public_names_go_out_and_come_back),
		cmocka_unit_test(wrong_settings_say_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
