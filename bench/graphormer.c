/* Graphormer slim on made-up graphs, with the settings of bench/peers/graphormer_step.py: pre-norm, L1 loss of one value, dropout of
 * the branches and of attention. The published model has a norm behind the embedding and two degree tables, the peer none and one. */
#include "bench.h"
#include "math/random.h"
#include "norma/nn.h"

enum { GRAPH_SEED = 11, GRAPH_STREAM = 90, ATOMS = 4000, DEGREES = 6, DISTANCES = 12, EDGES = 1500 };

static nr_t *graph_values(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in, double dropout)
{
	struct nr_model_spec m;
	struct nr_error err = { 0 };
	char text[256];
	snprintf(text, sizeof text, "graphormer:nodes=%lld,paths=%lld,hops=%lld,dim=%lld,depth=%lld,heads=%lld,hidden=%lld,dropout=%g,"
		"attention_dropout=%g", (long long)s->nodes, (long long)s->hops, (long long)s->hops, (long long)s->dim, (long long)s->depth,
		(long long)s->heads, (long long)s->dim, dropout, dropout);
	if (nr_model_parse(&m, text, nr_net_arena(n), &err)) return nr_net_fail(n, err.code, text, "%s", err.detail);
	in->graph = nr_model_inputs(n, &m, s->batch);
	return nr_model_logits(n, &m, &in->graph);
}

static nr_t *graph_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	nr_t *y = graph_values(n, s, in, .1);
	in->target = nr_input(n, "target", NR_REAL, NR_SHAPE(s->batch, 1));
	return nr_known_loss(n, y, in->target, NR_KNOWN_ABSOLUTE);
}

static nr_t *graph_output(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in) { return graph_values(n, s, in, 0); }

static void graph_draw(const struct bench *b, const nr_t *x, uint32_t which, int32_t from, int32_t below)
{
	const struct nr_rng rng = nr_rng_make(GRAPH_SEED, GRAPH_STREAM + which, 0);
	int32_t *v = nr_plan_data(b->plan, x);
	for (int64_t i = 0; i < nr_len(x); i++) v[i] = from + (int32_t)nr_rng_below(rng, (uint64_t)i, (uint64_t)(below - from));
}

static void graph_fill(const struct bench *b)
{
	const struct nr_inputs *in = &b->in.graph;
	graph_draw(b, in->nodes, 0, 1, ATOMS);
	graph_draw(b, in->in_degree, 1, 1, DEGREES);
	graph_draw(b, in->out_degree, 1, 1, DEGREES);
	graph_draw(b, in->distance, 2, 0, DISTANCES);
	graph_draw(b, in->edges, 3, 0, EDGES);
	graph_draw(b, in->valid, 4, (int32_t)b->target.size->nodes, (int32_t)b->target.size->nodes + 1);
	if (b->in.target)
		nr_fill_normal(nr_len(b->in.target), nr_plan_data(b->plan, b->in.target), 0, 1,
			nr_rng_make(GRAPH_SEED, GRAPH_STREAM + 5, 0), 0);
}

/* As the peer counts: a matrix for every edge of every path. Here the tables are multiplied instead, which are smaller. */
static double graph_flops(const struct bench_size *s, bool train)
{
	const double tokens = (double)(s->nodes + 1), N = (double)s->nodes, C = (double)s->dim, H = (double)s->heads;
	(void)train;
	const double blocks = (double)s->depth * tokens * (2 * 6 * C * C + 4 * tokens * C), edges = 2 * N * N * (double)s->hops * H * H;
	return (double)s->batch * (blocks + edges + 2 * C);
}

const struct bench_model bench_graphormer = { .train = graph_loss, .infer = graph_output, .flops = graph_flops,
	.fill = graph_fill,
	.norms = { .norm = "layer", .placement = "pre", .rules = "embed=layer", .eps = 1e-5 } };
