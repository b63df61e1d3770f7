/* Features as DINO's linear evaluation reads them: see features.h. */
#include <stdio.h>

#include "graph/net.h"
#include "infer/features.h"
#include "infer/runner.h"
#include "norma/nn.h"

static nr_t *tapped(const struct nr_net *n, int64_t block)
{
	char name[32];
	snprintf(name, sizeof name, "block%lld", (long long)block);
	for (int32_t i = 0; i < n->n_tensor; i++)
		if (n->tensor[i]->flags & NR_TAP && n->tensor[i]->name && !strcmp(n->tensor[i]->name, name)) return n->tensor[i];
	return NULL;
}

static nr_t *first_token(struct nr_net *n, nr_t *x) { return nr_pack(n, nr_span(n, x, 0, 1)); }

/* The class token after each of the last blocks that has one, through the final norm, then the mean of the patches: (B,parts,C). */
static nr_t *side_by_side(struct nr_net *n, const struct nr_weights *w, nr_t *tokens, int64_t blocks, bool mean)
{
	const int64_t depth = nr_model_int(&w->model, "depth"), late = nr_model_int(&w->model, "class_at");
	const bool class_token = nr_has_class_token(w);
	nr_t *all = NULL;
	for (int64_t i = depth - blocks; class_token && i < depth; i++) {
		if (i < 0 || i < late) continue;
		nr_t *x = i == depth - 1 ? tokens : nr_norm(n, "final", tapped(n, i));
		all = all ? nr_join(n, all, first_token(n, x)) : first_token(n, x);
	}
	if (all && !mean) return all;
	nr_t *patches = nr_mean_tokens(n, tokens, NULL);
	if (patches) patches = nr_reshape(n, patches, NR_SHAPE(patches->d[0], 1, patches->d[1]));
	return all ? nr_join(n, all, patches) : patches;
}

int nr_runner_open_blocks(struct nr_runner *r, const struct nr_weights *w, int64_t batch, int64_t blocks, bool mean, struct nr_error *err)
{
	*r = (struct nr_runner){ .net = nr_net_make(w->store), .batch = batch, .channels = nr_model_int(&w->model, "channels"),
		.size = nr_model_int(&w->model, "image"), .model = w->model.text };
	if (!r->net) return nr_fail(err, NR_EMEMORY, "cannot record the model", w->model.text, "out of memory");
	int code = nr_model_expect(&w->model, NR_PICTURES, err);
	if (!code) code = nr_norms_use(r->net, w->norms, &w->model.norms, err);
	if (!code) {
		nr_net_keep_hidden(r->net, 1);
		const struct nr_inputs in = nr_model_inputs(r->net, &w->model, batch);
		r->image = in.image;
		nr_t *all = side_by_side(r->net, w, nr_model_tokens(r->net, &w->model, &in), blocks, mean);
		if (all) r->pooled = nr_reshape(r->net, all, NR_SHAPE(batch, all->d[1] * all->d[2]));
		code = nr_norms_done(r->net, err);
	}
	if (!code) code = nr_plan_make(&r->plan, r->net, r->pooled, 0, err);
	if (code) nr_runner_close(r);
	else r->width = nr_cols(r->pooled);
	return code;
}
