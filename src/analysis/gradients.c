/* Gradients. See gradients.h. */
#include "analysis/gradients.h"

#include <math.h>

#include "base/real.h"
#include "analysis/taps.h"
#include "graph/net.h"
#include "graph/streams.h"
#include "norma/nn.h"

enum { MOST_SITES = 1024 };
enum { CLS_GAIN, GAIN, CLS_BIAS, BIAS, SUMS };

const char *const nr_grad_loss_names[] = { "cross entropy of the head", "reconstruction of masked patches (MAE)",
	"uniformity of [CLS] in the batch and of patch tokens in their picture", "absolute error", "binary cross entropy",
	"uniformity of [VNode] in the batch" };

/* A parameter of the site with one value for each channel; NULL: none, or it is not for all tokens. */
static const struct nr_entry *shared(struct nr_net *n, const char *site, const char *name, int64_t C)
{
	const char *full = nr_arena_printf(n->arena, "%s.%s", site, name);
	const struct nr_entry *e = full ? nr_store_find(n->store, full) : NULL;
	return e && !e->buffer && e->count == C ? e : NULL;
}

/* Zeros are added to the norm's output: their gradient is its gradient. */
static nr_t *at_site(void *context, struct nr_net *n, const char *site, const char *full, nr_t *before, nr_t *after)
{
	struct nr_gradients *g = context;
	(void)site;
	(void)before;
	if (after->nd != 3 || !after->tok || !strncmp(full, "decoder.", 8)) return after;
	if (g->sites == MOST_SITES) return nr_net_fail(n, NR_ELIMIT, full, "more than %d norms", MOST_SITES);
	const int64_t C = after->d[2];
	struct nr_grad_site *s = &g->site[g->sites++];
	nr_t *y = nr_tap(n, "kept", after), *z = nr_input(n, "zeros", NR_REAL, NR_SHAPE(after->d[0], after->d[1], C));
	*s = (struct nr_grad_site){ .name = full, .y = y, .z = z, .gain = shared(n, full, "weight", C), .bias = shared(n, full, "bias", C),
		.cls = nr_taps_has_cls(g->w, after), .sum = nr_arena_alloc(n->arena, (size_t)(SUMS * C) * sizeof *s->sum) };
	if (!z || !s->sum) return nr_net_fail(n, NR_EMEMORY, full, "out of memory");
	z->flags |= NR_GRAD;
	z->tok = after->tok;
	return nr_add(n, y, z);
}

static nr_t *uniformity(struct nr_net *n, const struct nr_model_spec *m, nr_t *x)
{
	const struct nr_pair_options o = { .kind = NR_PAIRS_GAUSS, .normalize = 1 };
	if (!x) return NULL;
	nr_t *pooled = nr_pair_loss(n, m->of->pool(n, x, m->conf), o);
	const int64_t special = x->tok ? x->tok->special : 0;
	if (x->d[1] - special < 2) return pooled;
	return nr_add(n, pooled, nr_pair_loss(n, nr_span(n, x, special, NR_END), o));
}

static nr_t *record_graphs(struct nr_gradients *g, const struct nr_model_spec *m)
{
	struct nr_net *n = g->net;
	const struct nr_pair_options o = { .kind = NR_PAIRS_GAUSS, .normalize = 1 };
	nr_mol_inputs(&g->inputs, n, g->graphs->form, g->batch, g->graphs->nodes, g->kind != NR_GRAD_SPREAD);
	if (g->kind == NR_GRAD_SPREAD) return nr_pair_loss(n, m->of->pool(n, nr_model_tokens(n, m, &g->inputs.in), m->conf), o);
	return nr_known_loss(n, nr_model_logits(n, m, &g->inputs.in), g->inputs.target, g->kind == NR_GRAD_ERROR
		? NR_KNOWN_ABSOLUTE : NR_KNOWN_BCE);
}

static nr_t *record(struct nr_gradients *g, struct nr_error *err)
{
	const struct nr_model_spec *m = &g->w->model;
	struct nr_net *n = g->net;
	const char *norms = g->kind == NR_GRAD_MAE ? g->w->whole_norms : g->w->norms;
	if (nr_norms_use(n, norms, &m->norms, err)) return NULL;
	nr_norms_watch(n, (struct nr_norm_watch){ at_site, g });
	if (g->kind == NR_GRAD_MAE) {
		nr_t *loss = nr_mae_record(n, m, g->w->mae, g->batch, &g->mae);
		g->image = g->mae.image;
		return loss;
	}
	if (g->graphs) return record_graphs(g, m);
	if (nr_model_expect(m, NR_PICTURES, err)) return NULL;
	const struct nr_inputs in = nr_model_inputs(n, m, g->batch);
	g->image = in.image;
	nr_t *x = nr_model_tokens(n, m, &in);
	if (g->kind == NR_GRAD_UNIFORMITY) return uniformity(n, m, x);
	g->label = nr_input(n, "label", NR_I32, NR_SHAPE(g->batch));
	return nr_cross_entropy(n, nr_model_head(n, m, m->of->pool(n, x, m->conf)), g->label, 0, -1);
}

/* g has the weights, the kind of loss, the batch and, of graphs, their view. */
static int open_with(struct nr_gradients *g, struct nr_error *err)
{
	const struct nr_weights *w = g->w;
	const int64_t batch = g->batch;
	int64_t widest = 0;
	if (!(g->net = nr_net_make(g->w->store)) ||
		!(g->site = nr_arena_alloc(g->net->arena, MOST_SITES * sizeof *g->site)) ||
		!(g->nodes = nr_arena_alloc(g->net->arena, (size_t)batch * sizeof *g->nodes))) {
		nr_gradients_close(g);
		return nr_fail(err, NR_EMEMORY, "cannot record the gradients", w->model.text, "out of memory");
	}
	g->loss = record(g, err);
	int code = err->code ? err->code : nr_norms_done(g->net, err);
	if (!code) code = nr_plan_make(&g->plan, g->net, g->loss, NR_PLAN_TRAIN, err);
	for (int64_t i = 0; i < g->sites; i++) widest = g->site[i].y->d[2] > widest ? g->site[i].y->d[2] : widest;
	if (!code && !(g->part = nr_arena_alloc(g->net->arena, (size_t)(batch * (SUMS * widest + 2)) * sizeof *g->part)))
		code = nr_fail(err, NR_EMEMORY, "cannot record the gradients", w->model.text, "out of memory");
	if (!code && g->kind == NR_GRAD_MAE) g->mask = nr_mae_mask(&g->mae, g->plan);
	if (code) nr_gradients_close(g);
	return code;
}

int nr_gradients_open(struct nr_gradients *g, const struct nr_weights *w, const struct nr_weights *whole, int64_t batch, bool labels,
	struct nr_error *err)
{
	const bool head = labels && nr_weights_has_head(w);
	const enum nr_grad_loss kind = head ? NR_GRAD_CROSS_ENTROPY : whole && whole->mae ? NR_GRAD_MAE : NR_GRAD_UNIFORMITY;
	*g = (struct nr_gradients){ .w = kind == NR_GRAD_MAE ? whole : w, .kind = kind, .batch = batch };
	return open_with(g, err);
}

int nr_gradients_open_graphs(struct nr_gradients *g, const struct nr_weights *w, const struct nr_mol_view *graphs, int64_t batch,
	struct nr_error *err)
{
	const struct nr_molecules *set = graphs->form->set;
	int64_t known;
	const bool classes = nr_mol_yes_or_no(set, &known);
	const bool head = nr_store_find(w->store, "head.weight") && known && nr_model_int(&w->model, "classes") == set->tasks;
	*g = (struct nr_gradients){ .w = w, .batch = batch, .graphs = graphs,
		.kind = !head ? NR_GRAD_SPREAD : classes ? NR_GRAD_YES_OR_NO : NR_GRAD_ERROR };
	return open_with(g, err);
}

/* ---- one batch ------------------------------------------------------------------------------------------------------------- */

struct lengths { double cls, tokens; };

/* The sums of one picture of T tokens; y and dy (T,C), part (SUMS,C). */
static struct lengths look_at(const struct nr_grad_site *s, int64_t T, const real *y, const real *dy, double *part)
{
	const int64_t C = s->y->d[2];
	const real *gain = s->gain ? nr_value(s->gain) : NULL, *bias = s->bias ? nr_value(s->bias) : NULL;
	struct lengths l = { 0 };
	memset(part, 0, (size_t)(SUMS * C) * sizeof *part);
	for (int64_t t = 0; t < T; t++) {
		const bool cls = s->cls && !t;
		double square = 0, *of_gain = part + (cls ? CLS_GAIN : GAIN) * C, *of_bias = part + (cls ? CLS_BIAS : BIAS) * C;
		for (int64_t c = 0; c < C; c++) {
			const double d = (double)dy[t * C + c], shifted = (double)y[t * C + c] - (bias ? (double)bias[c] : 0);
			square += d * d;
			of_bias[c] += d;
			if (gain && gain[c] != 0) of_gain[c] += d * shifted / (double)gain[c];
		}
		*(cls ? &l.cls : &l.tokens) += sqrt(square);
	}
	return l;
}

/* Tokens of sample i; those of graphs are followed by padding. */
static int64_t count_of(const struct nr_gradients *g, const struct nr_grad_site *s, int64_t i)
{
	return g->graphs ? s->y->tok->special + g->nodes[i] : s->y->d[1];
}

static void add_site(struct nr_gradients *g, struct nr_grad_site *s)
{
	const int64_t T = s->y->d[1], C = s->y->d[2], B = g->batch;
	const real *y = nr_plan_data(g->plan, s->y), *dy = nr_plan_grad(g->plan, s->z);
	struct lengths *each = (struct lengths *)(void *)(g->part + B * SUMS * C);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < B; i++)
		each[i] = look_at(s, count_of(g, s, i), y + i * T * C, dy + i * T * C, g->part + i * SUMS * C);
	for (int64_t i = 0; i < B; i++) {
		for (int64_t k = 0; k < SUMS * C; k++) s->sum[k] += g->part[i * SUMS * C + k];
		s->cls_length += (double)B * each[i].cls;               /* the loss is a mean over the batch */
		s->length += (double)B * each[i].tokens;
		s->count += count_of(g, s, i) - s->cls;
	}
	s->cls_count += s->cls ? B : 0;
}

/* The batch is bound. */
static void run(struct nr_gradients *g)
{
	const struct nr_exec ex = { .train = 1, .accumulate = g->batches > 0, .step = g->batches };
	for (int64_t i = 0; i < g->sites; i++)
		memset(nr_plan_data(g->plan, g->site[i].z), 0, (size_t)nr_len(g->site[i].z) * sizeof(real));
	nr_plan_run(g->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	g->loss_sum += (double)*(const real *)nr_plan_data(g->plan, g->loss);
	for (int64_t i = 0; i < g->sites; i++) add_site(g, &g->site[i]);
	g->batches++;
}

void nr_gradients_step(struct nr_gradients *g, const struct nr_batch *b)
{
	nr_from_floats(nr_plan_data(g->plan, g->image), b->image, nr_len(g->image));
	if (g->label) memcpy(nr_plan_data(g->plan, g->label), b->label, (size_t)g->batch * sizeof *b->label);
	if (g->kind == NR_GRAD_MAE) nr_mae_mask_draw(&g->mask, nr_rng_make(0, NR_STREAM_MASK, (uint32_t)g->batches), 0);
	run(g);
}

void nr_gradients_step_graphs(struct nr_gradients *g, int64_t first)
{
	nr_mol_bind_from(g->graphs->form, g->graphs->list, g->plan, &g->inputs, first, g->batch);
	memcpy(g->nodes, nr_plan_data(g->plan, g->inputs.in.valid), (size_t)g->batch * sizeof *g->nodes);
	run(g);
}

/* Neither of a block nor of what reads the last one. */
static bool before_blocks(const char *name)
{
	return strncmp(name, "blocks.", 7) && strncmp(name, "readout.", 8) && strncmp(name, "head.", 5) && strncmp(name, "final", 5);
}

double nr_gradients_norm(const struct nr_gradients *g, const char *prefix, int64_t *parameters)
{
	double square = 0;
	*parameters = 0;
	for (int64_t i = 0; i < nr_store_count(g->w->store); i++) {
		const struct nr_entry *e = nr_store_at(g->w->store, i);
		if (e->buffer || e->frozen || (prefix ? strncmp(e->name, prefix, strlen(prefix)) != 0 : !before_blocks(e->name))) continue;
		const real *grad = nr_grad(e);
		for (int64_t k = 0; k < e->count; k++) square += (double)grad[k] * (double)grad[k];
		*parameters += e->count;
	}
	return sqrt(square) / (double)(g->batches ? g->batches : 1);
}

void nr_gradients_close(struct nr_gradients *g)
{
	nr_plan_free(g->plan);
	nr_net_free(g->net);
	g->plan = NULL;
	g->net = NULL;
}
