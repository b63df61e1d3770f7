/* Gradients by block, and the shares of [CLS] and of the other tokens in those of a shared gain and bias (SepNorm, Eq. 6): see
 * gradients.h. A share is |g_cls| / (|g_cls| + |g_others|), lengths over the channels; the cosine says whether both pull the
 * parameter in one direction. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/gradients.h"
#include "base/table.h"

struct block { const char *name; double norm; int64_t parameters; };
struct shares { double cls, others, share, cosine; };
struct site { const char *name; bool cls, separate, there[2]; struct shares of[2]; double cls_length, length; };     /* gain, bias */
struct gradients {
	const char *loss_name;              /* NULL: no full batch */
	double loss;
	struct block *block;
	struct site *site;
	int64_t blocks, sites, samples;
};
static const char *const what_name[2] = { "gain", "bias" };

static struct shares shares_of(int64_t C, const double *cls, const double *others, double batches)
{
	double a = 0, b = 0, dot = 0;
	for (int64_t c = 0; c < C; c++) {
		a += cls[c] * cls[c];
		b += others[c] * others[c];
		dot += cls[c] * others[c];
	}
	const double sum = sqrt(a) + sqrt(b), both = sqrt(a) * sqrt(b);
	return (struct shares){ sqrt(a) / batches, sqrt(b) / batches, sum > 0 ? sqrt(a) / sum : NAN, both > 0 ? dot / both : NAN };
}

static int keep(struct nr_analysis *a, const struct nr_gradients *g, struct gradients *s, struct nr_error *err)
{
	const int64_t depth = nr_model_int(&g->w->model, "depth");
	const double batches = (double)g->batches;
	s->loss_name = nr_grad_loss_names[g->kind];
	s->loss = g->loss_sum / batches;
	s->samples = g->batches * g->batch;
	s->block = nr_arena_alloc(a->arena, (size_t)(depth + 1) * sizeof *s->block);
	s->site = nr_arena_alloc(a->arena, (size_t)(g->sites + 1) * sizeof *s->site);
	if (!s->block || !s->site) return nr_fail(err, NR_EMEMORY, "cannot keep the gradients", NULL, "out of memory");
	for (int64_t i = 0; i <= depth; i++) {
		struct block *b = &s->block[s->blocks++];
		const char *prefix = i ? nr_arena_printf(a->arena, "blocks.%lld.", (long long)(i - 1)) : g->graphs ? NULL : "patch_embed.";
		if (i && !prefix) return nr_fail(err, NR_EMEMORY, "cannot keep the gradients", NULL, "out of memory");
		b->name = i ? nr_arena_printf(a->arena, "block%lld", (long long)(i - 1)) : g->graphs ? "embed" : "patch_embed";
		b->norm = nr_gradients_norm(g, prefix, &b->parameters);
	}
	for (int64_t i = 0; i < g->sites; i++) {
		const struct nr_grad_site *from = &g->site[i];
		const int64_t C = from->y->d[2];
		struct site *v = &s->site[s->sites++];
		*v = (struct site){ .name = nr_arena_strdup(a->arena, from->name), .cls = from->cls, .separate = !from->gain && !from->bias,
			.there = { from->gain && from->cls, from->bias && from->cls },
			.cls_length = from->cls_count ? from->cls_length / (double)from->cls_count : NAN,
			.length = from->count ? from->length / (double)from->count : NAN };
		for (int k = 0; k < 2; k++) v->of[k] = shares_of(C, from->sum + 2 * k * C, from->sum + (2 * k + 1) * C, batches);
	}
	return NR_OK;
}

static int64_t steps(const struct nr_analysis *a) { return a->count / a->batch; }

static int run(struct nr_analysis *a, struct nr_gradients *g, struct nr_error *err)
{
	const struct nr_evaluation *e = &a->what;
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = a->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .drop_last = true };
	struct nr_loader *loader = NULL;
	int code = nr_loader_open(&loader, &config, err);
	for (int64_t q = 0; !code && q < a->count / a->batch; q++) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		nr_gradients_step(g, b);
		nr_loader_give_back(loader, b);
		code = nr_analysis_tick(a, err);
	}
	nr_loader_close(loader);
	return code;
}

static int run_graphs(struct nr_analysis *a, struct nr_gradients *g, struct nr_error *err)
{
	for (int64_t q = 0; q < a->count / a->batch; q++) {
		nr_gradients_step_graphs(g, q * a->batch);
		if (nr_analysis_tick(a, err)) return err->code;
	}
	return NR_OK;
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct nr_gradients g;
	const bool labels = a->what.source->classes >= 2 && a->what.source->classes == nr_model_int(&a->w->model, "classes");
	const bool graphs = a->view.form != NULL;
	if (graphs ? nr_gradients_open_graphs(&g, a->w, &a->view, a->batch, err) : nr_gradients_open(&g, a->w, a->whole,
		a->batch, labels, err))
		return err->code;
	int code = graphs ? run_graphs(a, &g, err) : run(a, &g, err);
	if (!code && g.batches) code = keep(a, &g, own, err);
	nr_gradients_close(&g);
	return code;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *site_json(const struct site *v)
{
	json_t *j = json_pack("{s:s, s:b, s:o, s:o}", "site", v->name, "shared", !v->separate, "cls_length", nr_json_number(v->cls_length),
		"token_length", nr_json_number(v->length));
	for (int k = 0; k < 2; k++) {
		if (!v->there[k]) continue;
		json_object_set_new(j, what_name[k],
			json_pack("{s:f, s:f, s:o, s:o}", "cls", v->of[k].cls, "tokens", v->of[k].others, "cls_share",
				nr_json_number(v->of[k].share), "cosine", nr_json_number(v->of[k].cosine)));
	}
	return j;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct gradients *s = own;
	(void)a;
	if (!s->loss_name) return NULL;
	json_t *blocks = json_array(), *sites = json_array();
	for (int64_t i = 0; i < s->blocks; i++)
		json_array_append_new(blocks,
			json_pack("{s:s, s:I, s:o}", "name", s->block[i].name, "parameters", (json_int_t)s->block[i].parameters, "norm",
				nr_json_number(s->block[i].norm)));
	for (int64_t i = 0; i < s->sites; i++) json_array_append_new(sites, site_json(&s->site[i]));
	return json_pack("{s:s, s:o, s:I, s:o, s:o}", "loss", s->loss_name, "value", nr_json_number(s->loss), "samples",
		(json_int_t)s->samples, "blocks", blocks, "norms", sites);
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct gradients *s, bool csv)
{
	static const char *const titles[] = { "norm", "|d[CLS]|", "|dtoken|", "[CLS] in gain", "cosine", "[CLS] in bias", "cosine" };
	static const char *const names[] = { "norm", "cls_length", "token_length", "gain_cls_share", "gain_cosine", "bias_cls_share",
		"bias_cosine" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 7; i++) nr_table_column(t, csv ? names[i] : nr_say(a, titles[i]), i ? NR_RIGHT : NR_LEFT);
	if (csv) {
		for (int k = 0; k < 4; k++) {
			static const char *const more[] = { "gain_cls", "gain_tokens", "bias_cls", "bias_tokens" };
			nr_table_column(t, more[k], NR_RIGHT);
		}
	}
	for (int64_t i = 0; i < s->sites; i++) {
		const struct site *v = &s->site[i];
		nr_table_cell(t, "%s", v->name);
		nr_cell_number(t, 'g', csv ? 9 : 3, v->cls_length, "");
		nr_cell_number(t, 'g', csv ? 9 : 3, v->length, "");
		for (int k = 0; k < 2; k++) {
			const double share = v->there[k] ? v->of[k].share : NAN;
			if (csv) nr_cell_number(t, 'g', 9, share, "");
			else if (v->separate && v->cls) nr_table_cell(t, "separate");
			else nr_cell_number(t, 'f', 1, 100 * share, " %");
			nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 2, v->there[k] ? v->of[k].cosine : NAN, "");
		}
		for (int k = 0; csv && k < 4; k++)
			nr_cell_number(t, 'g', 9, !v->there[k / 2] ? NAN : k % 2 ? v->of[k / 2].others : v->of[k / 2].cls, "");
	}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct gradients *s = own;
	double *y = malloc((size_t)(s->blocks + 1) * sizeof *y);
	if (s->loss_name && y) {
		nr_str_printf(text, "\ngradients of the %s, %.4g over %lld samples, as in a training step\n", s->loss_name, s->loss,
			(long long)s->samples);
		nr_table_show(table_of(a, s, false), text);
		for (int64_t i = 0; i < s->blocks; i++) y[i] = s->block[i].norm;
		if (s->blocks > 1) nr_show_curve(text, nr_say(a,
			"gradient norm of a block's parameters (the first: patch projection)"), s->blocks, y);
	}
	free(y);
}

static int draw(const struct nr_analysis *a, const struct gradients *s, const char *dir, struct nr_error *err)
{
	struct nr_sheet sheet = { 0 };
	const int64_t N = s->sites;
	double *y = malloc((size_t)(6 * N + s->blocks + 1) * sizeof *y);
	if (!y) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	double *lengths = y + s->blocks, *shares = lengths + 2 * N, *turn = shares + 2 * N;
	for (int64_t i = 0; i < s->blocks; i++) y[i] = s->block[i].norm;
	for (int64_t i = 0; i < N; i++) {
		lengths[i] = s->site[i].cls_length;
		lengths[N + i] = s->site[i].length;
		for (int k = 0; k < 2; k++) {
			shares[k * N + i] = s->site[i].there[k] ? 100 * s->site[i].of[k].share : NAN;
			turn[k * N + i] = s->site[i].there[k] ? s->site[i].of[k].cosine : NAN;
		}
	}
	const char *const kinds[] = { nr_say(a, "[CLS]"), nr_say(a, "patches") };
	const struct nr_curves all[] = {
		{ "gradient of a block's parameters", nr_say(a, "0: patch projection, then blocks"), "length", s->blocks, 1, y, NULL },
		{ nr_say(a,
			"gradient that reaches a token after a norm"), "norm, from the input on", "mean length", N, 2,
			lengths, kinds },
		{ nr_say(a, "share of [CLS] in the gradient of a shared gain, bias"), "norm, from the input on", "%", N, 2,
			shares, what_name },
		{ nr_say(a, "cosine between the parts of [CLS] and of the other tokens"), "norm, from the input on", "cosine", N, 2, turn,
		  what_name },
	};
	for (int i = 0; i < 4; i++) {
		if (i == 2) nr_sheet_row(&sheet);
		nr_sheet_put(&sheet, all[i].name, nr_draw_curves(&sheet.panel, &all[i]));
	}
	free(y);
	return nr_sheet_save(&sheet, dir, "gradients.svg", "Gradients of a training step", nr_say(a,
		"A single token, [CLS], may contribute half of the gradient of a gain that all tokens share: then "
		"the gain follows [CLS]. A cosine below 0 means that [CLS] and the patches pull in opposite "
		"directions. Norms that [CLS] does not share have no value and leave gaps. Gradients that change by "
		"orders of magnitude over the depth make a deep model hard to train."), err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct gradients *s = own;
	if (!s->loss_name) return NR_OK;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "block", NR_LEFT);
	nr_table_column(t, "parameters", NR_RIGHT);
	nr_table_column(t, "norm", NR_RIGHT);
	for (int64_t i = 0; i < s->blocks; i++) {
		nr_table_cell(t, "%s", s->block[i].name);
		nr_table_cell(t, "%lld", (long long)s->block[i].parameters);
		nr_table_cell(t, "%.9g", s->block[i].norm);
	}
	int code = nr_table_save(t, dir, "gradients.csv", err);
	if (!code) code = nr_table_save(table_of(a, s, true), dir, "gradient_shares.csv", err);
	return code ? code : draw(a, s, dir, err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "by block", "length of the mean gradient of a block's parameters", "" },
	{ "|d[CLS]|, |dtoken|",
		"mean length of the gradient that reaches one token after a norm, for the loss of one picture",
		"" },
	{ "[CLS] in gain, bias",
		"|g_cls| / (|g_cls| + |g_others|) where the gradient of a shared gain or bias is g_cls + g_others",
		"SepNorm, Eq. 6" },
	{ "cosine", "between g_cls and g_others: below 0 they pull the parameter in opposite directions", "" },
	{ .name = NULL },
};

static const struct nr_part_curve curves[] = {
	{ "Gradient by block", "2-norm of its parameters",
		"A level line means that all depths get the same gradient.", "blocks[].norm", NR_LOG_IF_WIDE },
	{ .title = NULL },
};

const struct nr_part nr_part_gradients = {
	.name = "gradients", .title = "gradients", .size = sizeof(struct gradients), .graphs = true, .steps = steps,
		.end = end, .json = json, .show = show,
	.write = write,
	.told = { .about = "gradients by block; shares of [CLS] and other tokens in the gradients of shared gains and biases",
		.numbers = numbers, .curves = curves },
};
