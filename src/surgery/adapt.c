/* Test-time adaptation: see adapt.h. */
#include "surgery/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/net.h"
#include "norma/nn.h"
#include "norma/optim.h"

const char *const nr_adapt_names[] = { "none", "stats", "tent", "sar", NULL };

struct nr_adapt nr_adapt_defaults(enum nr_adapt_kind kind)
{
	return (struct nr_adapt){ .kind = kind, .prior = 16, .lr = 0, .margin = 0.4, .radius = 0.05, .floor = 0.2, .leave = 0.25 };
}

struct nr_adapter {
	struct nr_adapt how;
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *image, *logits, *counts, *rows;
	struct nr_optim optim;
	struct nr_params params;
	real *first, *aside, *said;             /* all values as trained; before SAM's step; the logits */
	int64_t values, batch, classes, free, batchwise, restarts, step;
	int8_t *was_frozen;                     /* (entries); NULL: not changed yet */
	int32_t *sure;                          /* (batch): rows of low entropy */
	double entropy;                         /* moving mean; NAN: none yet */
};

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot adapt the model", NULL, "out of memory"); }
static bool learns(const struct nr_adapter *a) { return a->how.kind == NR_ADAPT_TENT || a->how.kind == NR_ADAPT_SAR; }

/* ---- which parameters are a norm's ---- */

/* Of "stages.1.blocks.0.attn.in" the length of "stages.1.blocks.0"; 0: it is in no block. */
static size_t block_of(const char *site)
{
	const char *at = strstr(site, "blocks.");
	return at ? (size_t)(at - site) + 7 + strspn(at + 7, "0123456789") : 0;
}

/* How many sites come before those that stay as they are. */
static int64_t sites_to_adapt(const struct nr_adapter *a, const struct nr_site *site, int64_t n)
{
	int64_t blocks = 0, left = 0, first = n;
	size_t length = 0;
	for (int pass = 0; pass < 2; pass++) {          /* counts blocks, then looks for the first that is left alone */
		const char *last = "";
		int64_t block = 0;
		for (int64_t i = 0; i < n && first == n; i++) {
			length = block_of(site[i].name);
			if (!length || (block_of(last) == length && !strncmp(last, site[i].name, length))) continue;
			last = site[i].name;
			if (pass && left && block == blocks - left) first = i;
			block++;
		}
		blocks = block;
		if (!pass) left = a->how.kind == NR_ADAPT_SAR ? (int64_t)floor(a->how.leave * (double)blocks + 0.5) : 0;
	}
	return first;
}

static bool of_norm(const struct nr_adapter *a, const struct nr_entry *e)
{
	int64_t n = 0;
	const struct nr_site *site = nr_sites(a->net, &n);
	n = sites_to_adapt(a, site, n);
	const char *end = strrchr(e->name, '.');
	if (e->buffer || !end || (!a->how.whole && strcmp(end, ".weight") && strcmp(end, ".bias"))) return false;
	for (int64_t i = 0; i < n; i++) {
		const size_t length = strlen(site[i].name);
		if (site[i].norm && !strncmp(e->name, site[i].name, length) && e->name[length] == '.') return true;
	}
	return false;
}

/* Frozen entries get no gradient, and what lies before the first norm is not even computed. */
static int choose(struct nr_adapter *a, struct nr_error *err)
{
	const int64_t n = nr_store_count(a->store);
	if (!(a->was_frozen = malloc((size_t)n + 1))) return out_of_memory(err);
	for (int64_t i = 0; i < n; i++) {
		struct nr_entry *e = nr_store_at(a->store, i);
		const char *end = strrchr(e->name, '.');
		a->was_frozen[i] = (int8_t)e->frozen;
		a->batchwise += e->buffer && end && !strcmp(end, ".running_mean");
		e->frozen |= learns(a) && !of_norm(a, e);
		a->free += !e->buffer && !e->frozen && learns(a) ? e->count : 0;
	}
	if (a->free || !learns(a)) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot adapt the model", NULL, "its norms have no gain and no bias%s",
		a->how.kind == NR_ADAPT_SAR && a->how.leave > 0 ? ", or sar leaves them alone" : "");
	return nr_hint(err, "use --adapt none or stats, for sar a smaller --leave");
}

/* ---- the graph ---- */

static int record(struct nr_adapter *a, const struct nr_weights *w, struct nr_error *err)
{
	struct nr_net *n = a->net;
	if (nr_norms_use(n, w->norms, &w->model.norms, err)) return err->code;
	const struct nr_inputs in = nr_model_inputs(n, &w->model, a->batch);
	nr_t *pooled = w->model.of->pool(n, nr_model_tokens(n, &w->model, &in), w->model.conf);
	a->image = in.image;
	a->logits = nr_tap(n, "logits", nr_model_head(n, &w->model, pooled));
	a->classes = nr_model_int(&w->model, "classes");
	if (nr_norms_done(n, err) || choose(a, err)) return err->code;
	if (!learns(a)) return nr_plan_make(&a->plan, n, a->logits, 0, err);
	const double margin = a->how.kind == NR_ADAPT_SAR ? a->how.margin * log((double)a->classes) : 0;
	a->counts = nr_input(n, "counts", NR_I32, NR_SHAPE(a->batch));
	nr_t *loss = nr_entropy_loss(n, a->logits, a->counts, margin, &a->rows);
	a->rows = nr_tap(n, "entropy", a->rows);
	return nr_plan_make(&a->plan, n, loss, NR_PLAN_TRAIN, err);
}

static int prepare(struct nr_adapter *a, struct nr_error *err)
{
	const real *values = nr_store_values(a->store, &a->values);
	const size_t bytes = (size_t)a->values * sizeof(real);
	a->first = malloc(bytes + 1);
	a->aside = malloc(bytes + 1);
	a->said = malloc((size_t)(a->batch * a->classes) * sizeof(real) + 1);
	a->sure = malloc((size_t)a->batch * sizeof *a->sure);
	if (!a->first || !a->aside || !a->said || !a->sure) return out_of_memory(err);
	memcpy(a->first, values, bytes);
	if (!learns(a)) return NR_OK;
	int code = nr_optim_init(&a->optim, a->how.kind == NR_ADAPT_SAR ? "sgd" : "adam", err);
	a->optim.lr = a->how.lr > 0 ? a->how.lr : 1e-3;
	a->optim.momentum = 0.9;
	a->optim.weight_decay = 0;
	a->optim.clip = NR_CLIP_NONE;
	return code ? code : nr_params_init(&a->params, a->store, &a->optim, err);
}

int nr_adapter_open(struct nr_adapter **out, const struct nr_weights *w, int64_t batch, const struct nr_adapt *how, struct nr_error *err)
{
	*out = NULL;
	if (!nr_weights_has_head(w)) {
		nr_fail(err, NR_EVALUE, "cannot run the model", w->model.of->name, "it was pre-trained and has no head");
		return nr_hint(err, "`norma finetune` gives it a head");
	}
	int code = nr_model_expect(&w->model, NR_PICTURES, err);
	struct nr_adapter *a = code ? NULL : calloc(1, sizeof *a);
	if (!a) return code ? code : out_of_memory(err);
	*a = (struct nr_adapter){ .how = *how, .store = w->store, .batch = batch, .net = nr_net_make(w->store), .entropy = NAN };
	code = a->net ? record(a, w, err) : out_of_memory(err);
	if (!code) code = prepare(a, err);
	if (code) {
		nr_adapter_close(a);
		return code;
	}
	*out = a;
	return NR_OK;
}

void nr_adapter_close(struct nr_adapter *a)
{
	if (!a) return;
	nr_adapter_reset(a);
	for (int64_t i = 0; a->was_frozen && i < nr_store_count(a->store); i++) nr_store_at(a->store, i)->frozen = a->was_frozen[i];
	nr_params_release(&a->params);
	nr_plan_free(a->plan);
	nr_net_free(a->net);
	free(a->first);
	free(a->aside);
	free(a->said);
	free(a->sure);
	free(a->was_frozen);
	free(a);
}

static void start_again(struct nr_adapter *a)
{
	if (a->first) memcpy(nr_store_values(a->store, &(int64_t){ 0 }), a->first, (size_t)a->values * sizeof(real));
	for (int64_t i = 0; i < a->params.count; i++) {
		const struct nr_segment *s = &a->params.segment[i];
		if (s->m) memset(s->m, 0, (size_t)s->count * sizeof(real));
		if (s->v) memset(s->v, 0, (size_t)s->count * sizeof(real));
	}
	a->step = 0;
	a->entropy = NAN;
}

void nr_adapter_reset(struct nr_adapter *a)
{
	start_again(a);
	a->restarts = 0;
}

int64_t nr_adapter_classes(const struct nr_adapter *a) { return a->classes; }
enum nr_adapt_kind nr_adapter_kind(const struct nr_adapter *a) { return a->how.kind; }
int64_t nr_adapter_free(const struct nr_adapter *a) { return a->free; }
int64_t nr_adapter_batchwise(const struct nr_adapter *a) { return a->batchwise; }
int64_t nr_adapter_restarts(const struct nr_adapter *a) { return a->restarts; }

/* ---- one batch ---- */

static void run(struct nr_adapter *a, const float *image, unsigned what)
{
	const struct nr_exec ex = { .train = a->how.kind != NR_ADAPT_NONE, .no_dropout = 1,
		.prior = a->how.kind == NR_ADAPT_STATS ? a->how.prior : 0 };
	nr_from_floats(nr_plan_data(a->plan, a->image), image, nr_len(a->image));
	nr_plan_run(a->plan, &ex, what);
}

/* Rows that count and are sure of themselves; *mean: their entropy. */
static int64_t find_sure(struct nr_adapter *a, const int32_t *among, double *mean)
{
	const real *h = nr_plan_data(a->plan, a->rows);
	const double margin = a->how.margin * log((double)a->classes);
	int64_t n = 0, all = 0;
	*mean = 0;
	for (int64_t i = 0; i < a->batch; i++) {
		const bool in = !among || among[i];
		if (in) *mean += (double)h[i], all++;
		a->sure[i] = in && (double)h[i] < margin;
		n += a->sure[i];
	}
	*mean /= all ? (double)all : 1;
	return n;
}

/* To where the loss is largest within the radius, about. */
static void climb(struct nr_adapter *a)
{
	double square = 0;
	for (int64_t i = 0; i < a->params.count; i++) {
		const struct nr_segment *s = &a->params.segment[i];
		for (int64_t k = 0; s->grad && k < s->count; k++) square += (double)s->grad[k] * (double)s->grad[k];
	}
	const real by = (real)(a->how.radius / (sqrt(square) + 1e-12));
	for (int64_t i = 0; i < a->params.count; i++) {
		const struct nr_segment *s = &a->params.segment[i];
		for (int64_t k = 0; s->grad && k < s->count; k++) s->value[k] += by * s->grad[k];
	}
}

/* The gradients of the first pass are there. The second one is from where SAM climbed to, on the rows that were sure at first. */
static int sharpness_aware(struct nr_adapter *a, const float *image, struct nr_error *err)
{
	real *values = nr_store_values(a->store, &(int64_t){ 0 });
	const size_t bytes = (size_t)a->values * sizeof(real);
	int32_t *counts = nr_plan_data(a->plan, a->counts);
	double mean;
	if (!find_sure(a, NULL, &mean)) return NR_OK;
	memcpy(a->aside, values, bytes);
	climb(a);
	memcpy(counts, a->sure, (size_t)a->batch * sizeof *counts);
	run(a, image, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	const int64_t still = find_sure(a, counts, &mean);
	memcpy(values, a->aside, bytes);
	const int code = still ? nr_params_step(&a->params, &a->optim, NULL, ++a->step, err) : NR_OK;
	a->entropy = isnan(a->entropy) ? mean : 0.9 * a->entropy + 0.1 * mean;
	if (!code && a->entropy < a->how.floor) {
		start_again(a);
		a->restarts++;
	}
	return code;
}

const real *nr_adapter_run(struct nr_adapter *a, const float *image, int64_t samples, struct nr_error *err)
{
	int32_t *counts = a->counts ? nr_plan_data(a->plan, a->counts) : NULL;
	int code = NR_OK;
	for (int64_t i = 0; counts && i < a->batch; i++) counts[i] = i < samples;
	run(a, image, NR_RUN_FORWARD | (learns(a) ? NR_RUN_BACKWARD : 0u));
	memcpy(a->said, nr_plan_data(a->plan, a->logits), (size_t)(a->batch * a->classes) * sizeof(real));
	if (a->how.kind == NR_ADAPT_TENT) code = nr_params_step(&a->params, &a->optim, NULL, ++a->step, err);
	if (a->how.kind == NR_ADAPT_SAR) code = sharpness_aware(a, image, err);
	return code ? NULL : a->said;
}
