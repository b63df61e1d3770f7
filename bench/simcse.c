/* Unsupervised SimCSE on a BERT of MiniLM's size, with the settings of bench/peers/simcse_step.py: both dropout views of a
 * sentence in one batch, the first token's output, InfoNCE at temperature 0.05. Inference: the first tokens of one view. */
#include "bench.h"
#include "models/text_heads.h"
#include "norma/nn.h"

static const double DROPOUT = .1, TEMPERATURE = .05;

/* The first tokens' outputs (rows,C) of so many sentences. */
static nr_t *embeddings(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in, int64_t rows, double dropout)
{
	struct nr_model_spec m;
	struct nr_error err = { 0 };
	struct nr_text t;
	char text[256];
	snprintf(text, sizeof text,
		"bert:vocab=%lld,dim=%lld,depth=%lld,heads=%lld,hidden=%lld,length=%lld,dropout=%g,attention_dropout=%g",
		(long long)s->vocab, (long long)s->dim, (long long)s->depth, (long long)s->heads, (long long)(4 * s->dim),
		(long long)s->length, dropout, dropout);
	if (nr_model_parse(&m, text, nr_net_arena(n), &err)) return nr_net_fail(n, err.code, text, "%s", err.detail);
	const struct nr_inputs given = nr_model_inputs(n, &m, rows);
	in->ids = given.ids;
	in->valid = given.valid;
	nr_text_encode(n, &m, &given, &t);
	return nr_text_pool(n, &t, NR_TEXT_CLS_BEFORE_POOLER);
}

static nr_t *simcse_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	nr_t *z = embeddings(n, s, in, 2 * s->batch, DROPOUT);
	return nr_simcse_loss(n, nr_reshape(n, z, NR_SHAPE(s->batch, 2, s->dim)), TEMPERATURE, 0, NULL);
}

static nr_t *simcse_features(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	return embeddings(n, s, in, s->batch, 0);
}

static double simcse_flops(const struct bench_size *s, bool train)
{
	const double rows = (double)s->batch * (train ? 2 : 1);
	return (double)s->depth * bench_block_flops(rows, (double)s->length, (double)s->dim);
}

const struct bench_model bench_simcse = { .train = simcse_loss, .infer = simcse_features, .flops = simcse_flops,
	.norms = { .norm = "layer", .placement = "post", .rules = "embed=layer", .eps = 1e-12 } };
