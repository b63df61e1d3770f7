/* A small masked autoencoder through models/mae.c, with the settings of bench/peers/mae_step.py: learned position tables as
 * there. The mask is drawn inside the step, as the peer does: noise from counters, sorted per sample. */
#include "bench.h"
#include "models/mae.h"
#include "norma/nn.h"

enum { MASK_SEED = 0x3a5c, MASK_STREAM = 1 };

static int read_model(struct nr_net *n, const struct bench_size *s, struct nr_model_spec *m, struct nr_mae *o)
{
	struct nr_error err = { 0 };
	char encoder[256], rest[256];
	snprintf(encoder, sizeof encoder, "vit:image=%lld,channels=%lld,patch=%lld,dim=%lld,depth=%lld,heads=%lld", (long long)s->image,
		(long long)s->channels, (long long)s->patch, (long long)s->dim, (long long)s->depth, (long long)s->heads);
	snprintf(rest, sizeof rest, "decoder_dim=%lld,decoder_depth=%lld,decoder_heads=%lld,mask_ratio=%.17g,pos=learned",
		(long long)s->decoder_dim, (long long)s->decoder_depth, (long long)s->decoder_heads, 1 - s->keep);
	nr_option_defaults(nr_mae_options, o);
	if (nr_option_parse(nr_mae_options, o, rest, nr_net_arena(n), &err) || nr_model_parse(m, encoder, nr_net_arena(n), &err) ||
	    nr_mae_encoder(m, o, nr_net_arena(n), &err))
		nr_net_fail(n, err.code, encoder, "%s", err.detail);
	return err.code;
}

static nr_t *mae_features(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec m;
	struct nr_mae o;
	if (read_model(n, s, &m, &o)) return NULL;
	in->image = nr_input(n, "image", NR_REAL, NR_SHAPE(s->batch, s->channels, s->image, s->image));
	return nr_model_tokens(n, &m, &(struct nr_inputs){ .image = in->image });
}

static nr_t *mae_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec m;
	struct nr_mae o;
	struct nr_mae_graph g;
	if (read_model(n, s, &m, &o)) return NULL;
	nr_t *loss = nr_mae_record(n, &m, &o, s->batch, &g);
	*in = (struct bench_inputs){ .image = g.image, .kept = g.kept, .restore = g.restore, .weight = g.weight };
	return loss;
}

static void draw_mask(const struct bench_size *s, const struct bench_inputs *in, const struct nr_plan *p, int64_t step)
{
	const struct nr_mae_mask m = { .batch = s->batch, .patches = bench_patches(s), .visible = in->kept->d[1], .special = 1, .places = 1,
		.kept = nr_plan_data(p, in->kept), .restore = nr_plan_data(p, in->restore), .weight = nr_plan_data(p, in->weight) };
	nr_mae_mask_draw(&m, nr_rng_make(MASK_SEED, MASK_STREAM, (uint32_t)step), 0);
}

static double mae_flops(const struct bench_size *s, bool train)
{
	const double B = (double)s->batch, N = (double)bench_patches(s), K = (double)nr_mae_kept(bench_patches(s), 1 - s->keep);
	const double C = (double)s->dim, D = (double)s->decoder_dim, P = (double)(s->channels * s->patch * s->patch);
	const double embedding = 2 * B * N * P * C;
	if (!train) return embedding + (double)s->depth * bench_block_flops(B, N + 1, C);
	return embedding + (double)s->depth * bench_block_flops(B, K + 1, C) + 2 * B * (K + 1) * C * D +
	       (double)s->decoder_depth * bench_block_flops(B, N + 1, D) + 2 * B * (N + 1) * D * P;
}

const struct bench_model bench_mae = { .train = mae_loss,
	.infer = mae_features,
	.flops = mae_flops,
	.draw = draw_mask,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 } };
