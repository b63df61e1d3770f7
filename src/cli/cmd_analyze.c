/* norma analyze CKPT: what a trained model does to [CLS] and to the patch tokens, layer by layer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analyze_texts.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/save.h"
#include "base/table.h"
#include "graph/comm.h"
#include "graph/streams.h"
#include "model_flags.h"

struct analyze { struct cli_model m; int64_t samples, block, tokens; char *site, *only, *out, *against, *tokenizer; bool parts; };

static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct analyze, m),
	NR_OPT_INT(struct analyze, samples, 1024, 2, 1e9,
		"samples to look at: the same ones for every model, spread over the whole split"),
	CLI_TEXT(struct analyze, site, "", "SITES",
		"norms to look at: \"final blocks[3].attn.in\", \"mlp.in\"; default: the first one and the final one"),
	NR_OPT_INT(struct analyze, block, 0, 0, 1e6, "block whose attention maps are drawn, beside the last block's"),
	CLI_TEXT(struct analyze, against, "", "FILE", "another checkpoint to compare layers with"),
	CLI_TEXT(struct analyze, tokenizer, "", "PATH", "tokenizer of a text model; default: beside its weights"),
	NR_OPT_INT(struct analyze, tokens, 0, 0, 100000,
		"cut texts to N tokens and leave out shorter ones; 0: their median, 64 at most"),
	CLI_TEXT(struct analyze, only, "", "PARTS", "parts to run, separated by commas; default: all"),
	NR_OPT_BOOL(struct analyze, parts, "0", "print what each part measures, as the table of docs/analysis.md"),
	CLI_TEXT(struct analyze, out, "", "DIR", "folder for analysis.json, tables as CSV and pictures as SVG"),
	NR_OPT_END
};

/* A fixed order of the split, so that data sorted by class give all of them. */
static int choose(struct cli *c, const struct analyze *v, struct nr_evaluation *e)
{
	const int64_t all = e->source->count[e->split], n = v->m.limit && v->m.limit < all ? v->m.limit : all;
	e->count = v->samples < n ? v->samples : n;
	if (n > INT32_MAX) return nr_fail(c->err, NR_ELIMIT, "cannot choose samples of", e->source->of->name, "the split is too large");
	int32_t *order = nr_arena_alloc(c->arena, (size_t)n * sizeof *order);
	if (!order) return nr_fail(c->err, NR_EMEMORY, "cannot choose samples of", e->source->of->name, "out of memory");
	nr_rng_shuffle(nr_rng_make(0, NR_STREAM_SUBSET, 0), 0, order, (int32_t)n);
	e->index = order;
	return NR_OK;
}

/* With its decoder, so that gradients can be those of its own loss; NULL if there is none. */
static struct nr_weights *open_whole(const struct analyze *v, const struct nr_weights *w, const char *path)
{
	const struct nr_weights_how how = { .model = v->m.model, .norms = v->m.norm, .resample = v->m.resample, .decoder = true };
	struct nr_weights *whole = NULL;
	struct nr_error ignored = { 0 };
	if (nr_weights_has_head(w)) return NULL;
	nr_weights_open(&whole, path, &how, &ignored);
	if (whole && whole->mae) return whole;
	nr_weights_close(whole);
	return NULL;
}

static int write_json(const json_t *all, const char *dir, struct nr_error *err)
{
	struct nr_str path = { 0 };
	nr_str_printf(&path, "%s/analysis.json", dir);
	char *text = nr_json_dump(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	const int code = text && !path.failed ? nr_save_file(nr_str_text(&path), text, strlen(text), err)
					      : nr_fail(err, NR_EMEMORY, "cannot write", dir, "out of memory");
	free(text);
	nr_str_release(&path);
	return code;
}

static int tell(struct cli *c, const struct analyze *v, const struct cli_opened *o, const struct nr_analysis *a, const char *path)
{
	json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "file", path, "model", o->w->model.text, "norms", o->w->norms,
		"data", o->source->of->name, "split", nr_split_name(o->e.split), "samples", (json_int_t)a->count, "batch",
		(json_int_t)a->batch);
	/* what the keys "cls" and "tokens" stand for, and what attention distances are counted in */
	if (all && a->view.form)
		json_object_update_new(all, json_pack("{s:s, s:s, s:s}", "cls_is", "[VNode]", "tokens_are", "nodes",
			"distance_in", "bonds"));
	json_t *parts = nr_analysis_json(a);
	int code = all && parts && !json_object_update(all, parts) ? NR_OK
								   : nr_fail(c->err, NR_EMEMORY, "cannot tell", path, "out of memory");
	json_decref(parts);
	const bool writes = *v->out && !nr_comm_rank(c->comm);
	if (!code && writes) code = nr_analysis_write(a, v->out, c->err);
	if (!code && writes) code = write_json(all, v->out, c->err);
	if (!code && v->m.json) code = cli_print_json(json_incref(all), c->err);
	else if (!code) {
		struct nr_str text = { 0 };
		nr_analysis_show(a, &text);
		printf("%s on %s/%s: %lld samples, norms %s\n%s", path, o->source->of->name, nr_split_name(o->e.split), (long long)a->count,
			*o->w->norms ? o->w->norms : o->w->model.of->norms.norm, nr_str_text(&text));
		if (*v->out) printf("\nwritten to %s (analysis.json, CSV, SVG)\n", v->out);
		nr_str_release(&text);
	}
	json_decref(all);
	return code;
}

/* NULL and no error: none was asked for. */
static struct nr_weights *open_other(struct cli *c, const struct analyze *v, const struct nr_weights *w)
{
	struct nr_weights *other = NULL;
	const struct nr_weights_how how = { .resample = v->m.resample, .partial = true };
	if (!*v->against || nr_weights_open(&other, v->against, &how, c->err)) return NULL;
	static const char *const same[] = { "image", "channels" };
	for (int i = 0; i < 2; i++) {
		const long long a = nr_model_int(&w->model, same[i]), b = nr_model_int(&other->model, same[i]);
		if (a == b) continue;
		nr_fail(c->err, NR_ESHAPE, "cannot compare with", v->against, "its pictures have %s = %lld, not %lld", same[i], b, a);
		nr_weights_close(other);
		return NULL;
	}
	return other;
}

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct analyze *v = (const struct analyze *)(const void *)m;
	struct nr_analysis a = { .w = o->w, .what = cli_model_split(o, o->e.split, "analyze"), .batch = m->batch,
		.sites = *v->site ? v->site : NULL, .block = v->block, .other_name = v->against, .want = ~0u, .all = !*v->only };
	if (*v->only && nr_parts_read(v->only, &a.want, c->err)) return c->err->code;
	if (choose(c, v, &a.what) || (*v->out && nr_folder_make(v->out, c->err))) return c->err->code;
	const bool reads_text = o->w->model.of->reads == NR_TEXTS;
	const bool reads_graph = o->w->model.of->reads == NR_MOLECULES;
	if (nr_source_expect(o->source, reads_text ? NR_TEXTS : reads_graph ? NR_MOLECULES : NR_PICTURES, c->err)) return c->err->code;
	struct cli_analyze_texts texts = { .length = v->tokens };
	if (reads_text) {
		if (cli_analyze_texts(c, &texts, o->w, &a.what, *v->tokenizer ? v->tokenizer : path, v->samples)) return c->err->code;
		a.texts = texts.ids, a.length = texts.length, a.what.count = texts.count;
	}
	struct nr_weights *other = open_other(c, v, o->w);
	if (c->err->code) return c->err->code;
	struct nr_weights *whole = texts.ids || reads_graph ? NULL : open_whole(v, o->w, path);
	a.whole = whole;
	a.other = other;
	int code = nr_analysis_run(&a, c->err);
	nr_progress_release(&o->bar);
	if (!code) code = tell(c, v, o, &a, path);
	nr_analysis_close(&a);
	nr_weights_close(whole);
	nr_weights_close(other);
	return code;
}

/* The table of docs/analysis.md. */
static void print_parts(void)
{
	static const char *const columns[] = { "part", "looks at", "number", "meaning", "figure" };
	struct nr_table *t = nr_table_make();
	struct nr_str s = { 0 };
	for (int i = 0; i < 5; i++) nr_table_column(t, columns[i], NR_LEFT);
	for (const struct nr_part *const *p = nr_parts; *p; p++)
		for (const struct nr_part_number *n = (*p)->told.numbers; n && n->name; n++) {
			const bool first = n == (*p)->told.numbers;
			const char *mark = first ? "`" : "";
			nr_table_cell(t, "%s%s%s", mark, first ? (*p)->name : "", mark);
			nr_table_cell(t, "%s%s%s", first ? "pictures" : "", first && (*p)->texts ? ", texts" : "",
				first && (*p)->graphs ? ", graphs" : "");
			nr_table_cell(t, "%s", n->name);
			nr_table_cell(t, "%s", n->meaning);
			nr_table_cell(t, "%s", n->figure);
		}
	nr_table_markdown(t, &s);
	nr_table_free(t);
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
}

static void more(struct nr_str *s)
{
	nr_str_add(s, "Parts (--only):");
	for (const struct nr_part *const *p = nr_parts; *p; p++) nr_str_printf(s, "\n  %-14s %s", (*p)->name, (*p)->told.about);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct analyze *v = conf;
	unsigned want;
	if (v->parts) return print_parts(), NR_OK;
	if (*v->only && nr_parts_read(v->only, &want, c->err)) return c->err->code;     /* before anything is read */
	return cli_model_run(c, &v->m, args, measure);
}

const struct cli_command cli_analyze = {
	.name = "analyze",
	.title = "dissect a checkpoint layer by layer",
	.usage = "CHECKPOINT",
	.about = "Runs whole pictures of a split through the model, with running statistics, and measures [CLS] and patch tokens\n"
		 "after each block. The parts below say what is measured.\n"
		 "\n"
		 "Gradients are those of a training step, with batch statistics. The loss is the cross entropy if the model has a\n"
		 "head for the data, or MAE's own loss if the file has the decoder; otherwise it is the uniformity of [CLS] in the\n"
		 "batch and of patch tokens in their picture.\n"
		 "\n"
		 "For a text model, the parts that need no picture look at [CLS] and at the other tokens of texts of one length;\n"
		 "for a graph model, at the virtual node [VNode] and at the other nodes: distances are in bonds, padding is left\n"
		 "out, and gradients are those of the absolute error, or of the cross entropy if all targets are 0 or 1.\n"
		 "docs/analysis.md says what each number means and to which figure of which paper it belongs.",
	.more = more,
	.conf_size = sizeof(struct analyze),
	.options = options,
	.run = run,
};
