/* What the model costs: parameters, those of its norms, FLOPs of a forward pass of one picture, and the norms' share of them. */
#include "analysis/analysis.h"
#include "graph/net.h"
#include "graph/plan.h"
#include "norma/norm.h"

struct cost { int64_t parameters, buffers, of_norms; double flops, norm_flops; };

static bool is_norm(const struct nr_op *op)
{
	for (const struct nr_norm *const *n = nr_norms(); *n; n++)
		for (int i = 0; i < 4 && (*n)->op[i]; i++)
			if ((*n)->op[i] == op) return true;
	return false;
}

static bool below(const char *name, const char *site)
{
	const size_t n = strlen(site);
	return !strncmp(name, site, n) && name[n] == '.';
}

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct cost *s = own;
	int64_t sites;
	const struct nr_site *site = nr_sites(a->taps.net, &sites);
	(void)err;
	for (int64_t i = 0; i < nr_store_count(a->w->store); i++) {
		const struct nr_entry *e = nr_store_at(a->w->store, i);
		*(e->buffer ? &s->buffers : &s->parameters) += e->count;
		for (int64_t k = 0; !e->buffer && k < sites; k++)
			if (site[k].norm && below(e->name, site[k].name)) {
				s->of_norms += e->count;
				break;
			}
	}
	for (int32_t i = 0; i < a->taps.net->n_node; i++) {
		double forward, backward;
		nr_node_cost(a->taps.net->node[i], &forward, &backward);
		s->flops += forward / (double)a->batch;
		if (is_norm(a->taps.net->node[i]->op)) s->norm_flops += forward / (double)a->batch;
	}
	return NR_OK;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct cost *s = own;
	(void)a;
	return json_pack("{s:I, s:I, s:I, s:f, s:f}", "parameters", (json_int_t)s->parameters, "buffers", (json_int_t)s->buffers,
		"norm_parameters", (json_int_t)s->of_norms, "forward_flops", s->flops, "norm_flops", s->norm_flops);
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct cost *s = own;
	nr_str_printf(text, "\n"
		"cost: %lld parameters, %lld of them in norms; %.3g MFLOP forward for %s, %.2f %% of them for norms\n",
		(long long)s->parameters, (long long)s->of_norms, s->flops * 1e-6,
		a->view.form ? nr_arena_printf(a->arena, "a graph of %lld nodes", (long long)a->view.nodes) : nr_say(a, "a picture"),
		100 * s->norm_flops / s->flops);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "parameters, FLOPs", "in total and in norms; FLOPs of a forward pass of one picture", "" },
	{ .name = NULL },
};

const struct nr_part nr_part_cost = {
	.name = "cost", .title = "cost", .size = sizeof(struct cost),
	.texts = true, .graphs = true, .begin = begin, .json = json, .show = show,
	.told = { .about = "parameters and FLOPs",
		.numbers = numbers },
};
