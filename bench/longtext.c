/* Long texts: the encoder of bench/peers/listops_step.py (Long ListOps: full attention, learned places, a [CLS] vector, timm's
 * blocks), and BigBird and Reformer as Hugging Face has them (longtext_step.py) at several lengths: time and memory should grow as the
 * length does. */
#include "bench.h"
#include "models/block.h"
#include "models/text_heads.h"

static nr_t *full_encoder(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	const struct nr_block b = { .heads = s->heads, .hidden = 4 * s->dim };
	in->ids = nr_input(n, "ids", NR_I32, NR_SHAPE(s->batch, s->length));
	in->valid = nr_input(n, "valid", NR_I32, NR_SHAPE(s->batch));
	nr_t *x = nr_embedding(n, "word", in->ids, s->vocab, s->dim, -1);
	x = nr_prepend(n, nr_param(n, "cls", NR_ZEROS, NR_SHAPE(1, 1, s->dim)), x);
	x = nr_add_table(n, x, nr_param(n, "position", NR_NORMAL_02, NR_SHAPE(1, s->length + 1, s->dim)));
	for (int64_t i = 0; i < s->depth; i++) {
		nr_push_nth(n, "blocks", i, s->depth);
		x = nr_pop(n, nr_block(n, x, &b));
	}
	return nr_linear(n, "head", nr_first_token(n, nr_norm(n, "final", x)), s->classes);
}

static nr_t *sparse_encoder(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec m;
	struct nr_error err = { 0 };
	char text[512];
	snprintf(text, sizeof text, "%s,vocab=%lld,dim=%lld,depth=%lld,heads=%lld,hidden=%lld,length=%lld,positions=%lld,classes=%lld",
		s->sparse, (long long)s->vocab, (long long)s->dim, (long long)s->depth, (long long)s->heads, (long long)(4 * s->dim),
		(long long)s->length, (long long)s->length, (long long)s->classes);
	if (nr_model_parse(&m, text, nr_net_arena(n), &err)) return nr_net_fail(n, err.code, text, "%s", err.detail);
	const struct nr_inputs given = nr_model_inputs(n, &m, s->batch);
	in->ids = given.ids;
	in->valid = given.valid;
	return nr_model_logits(n, &m, &given);
}

static nr_t *encoder(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	return s->sparse ? sparse_encoder(n, s, in) : full_encoder(n, s, in);
}

static nr_t *loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	nr_t *logits = encoder(n, s, in);
	in->labels = nr_input(n, "labels", NR_I32, NR_SHAPE(s->batch));
	return nr_cross_entropy(n, logits, in->labels, 0, -1);
}

/* Of sparse attention the linear layers alone are counted: its own products are few beside them. */
static double flops(const struct bench_size *s, bool train)
{
	const double B = (double)s->batch, T = (double)s->length + !s->sparse;
	(void)train;
	return (double)s->depth * (s->sparse ? bench_block_flops(B * T, 1, (double)s->dim) : bench_block_flops(B, T, (double)s->dim));
}

#define MODEL .train = loss, .infer = encoder, .flops = flops
const struct bench_model bench_longtext = { MODEL, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 } };
const struct bench_model bench_bigbird = { MODEL,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-12 } };
const struct bench_model bench_reformer = { MODEL, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-12 } };
