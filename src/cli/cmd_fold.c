/* norma fold IN [OUT]: norms become part of the layers that read them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/table.h"
#include "cli.h"
#include "infer/weights.h"
#include "surgery/fold.h"
#include "surgery/outputs.h"
#include "weights_meta.h"

struct fold { char *model, *file_norm, *from; bool force, json; };

static const struct nr_option options[] = {
	CLI_TEXT(struct fold, model, "", "MODEL", "model, if the file does not name it (norma inspect)"),
	CLI_TEXT(struct fold, file_norm, "", "PLAN", "norm plan of the file, if it does not name it"),
	CLI_TEXT(struct fold, from, "auto", "NAMES", "tensor names of the file; auto: those that fit best"),
	NR_OPT_BOOL(struct fold, force, "0", "overwrite existing files"),
	NR_OPT_BOOL(struct fold, json, "0", "print one line of JSON"),
	NR_OPT_END
};

static const double MOST_CHANGE = 1e-4;         /* of the largest output: more is not rounding */

struct result { struct nr_folding fold; struct nr_outputs was, is; const char *out; };

/* Batch norms behind layers (LeViT) go all at once. */
static int fold_weights(struct cli *c, struct nr_weights *w, struct nr_folding *f)
{
	if (nr_model_int(&w->model, "folded") < 0) return nr_fold_norms(w, f, c->err);
	*f = (struct nr_folding){ 0 };
	for (int64_t i = 0; i < nr_store_count(w->store); i++) f->before += nr_store_at(w->store, i)->count;
	if (nr_fold_deployed(w, &f->folded, c->err)) return c->err->code;
	for (int64_t i = 0; i < nr_store_count(w->store); i++) f->after += nr_store_at(w->store, i)->count;
	return NR_OK;
}

static json_t *site_json(const struct nr_fold_site *s)
{
	return json_pack("{s:s, s:s, s:s?, s:s?}", "site", s->name, "norm", s->norm, "became", s->became, "why", s->why);
}

static int print_json(struct cli *c, const struct nr_weights *w, const struct result *r)
{
	json_t *sites = json_array();
	for (int64_t i = 0; i < r->fold.sites; i++) json_array_append_new(sites, site_json(&r->fold.site[i]));
	const double change = nr_outputs_change(&r->was, &r->is);
	return nr_json_line(stdout, json_pack("{s:s?, s:s, s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:o}", "out", r->out, "model", w->model.text,
		"norms", w->norms, "folded", (json_int_t)r->fold.folded, "sites", sites, "values_before", (json_int_t)r->fold.before,
		"values_after", (json_int_t)r->fold.after, "change", isfinite(change) ? json_real(change) : json_null(),
		"ms_before", r->was.values ? json_real(1e3 * r->was.seconds) : json_null(),
		"ms_after", r->is.values ? json_real(1e3 * r->is.seconds) : json_null()), c->err);
}

/* Sites that share norm and fate are one row: "24 sites, e.g. blocks.0.attn.in". */
static void print_sites(const struct nr_folding *f)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "sites", NR_RIGHT);
	nr_table_column(t, "first of them", NR_LEFT);
	nr_table_column(t, "norm", NR_LEFT);
	nr_table_column(t, "becomes", NR_LEFT);
	for (int64_t i = 0; i < f->sites; i++) {
		const struct nr_fold_site *s = &f->site[i];
		int64_t count = 0, first = i;
		for (int64_t k = 0; k < f->sites; k++) {
			const struct nr_fold_site *o = &f->site[k];
			const char *a = s->became ? s->became : s->why, *b = o->became ? o->became : o->why;
			if (strcmp(s->norm, o->norm) || !s->became != !o->became || strcmp(a, b)) continue;
			if (!count++) first = k;
		}
		if (first != i) continue;
		nr_table_cell(t, "%lld", (long long)count);
		nr_table_cell(t, "%s", s->name);
		nr_table_cell(t, "%s", s->norm);
		if (s->became) nr_table_cell(t, "%s", strcmp(s->became, "none") ? s->became : "nothing");
		else nr_table_cell(t, "stays: %s", s->why);
	}
	cli_print_table(t);
}

static int print_result(struct cli *c, const struct fold *o, const char *in, const struct nr_weights *w, const struct result *r)
{
	if (o->json) return print_json(c, w, r);
	printf("%s%s%s: %s\n", cli_bold(), in, cli_plain(), w->model.text);
	if (r->fold.sites) print_sites(&r->fold);
	else printf("folded   %lld batch norms into their layers\n", (long long)r->fold.folded);
	printf("values   %lld, before %lld\n", (long long)r->fold.after, (long long)r->fold.before);
	if (r->was.values)
		printf("outputs  change by %.1e of the largest, on made-up inputs\ntime     %.3g ms for one sample, before %.3g ms\n",
			nr_outputs_change(&r->was, &r->is), 1e3 * r->is.seconds, 1e3 * r->was.seconds);
	if (r->fold.sites) printf("norms    %s\n", w->norms);
	if (r->out) printf("written  %s\n", r->out);
	else printf("nothing was written: norma fold %s OUT writes the new file\n", in);
	return NR_OK;
}

static int write_out(struct cli *c, const struct fold *o, const struct nr_weights *w, const char *path)
{
	struct nr_st_meta meta[CLI_META];
	if (!o->force && !access(path, F_OK)) {
		nr_fail(c->err, NR_EIO, "cannot write", path, "it exists already");
		return nr_hint(c->err, "use --force to overwrite it");
	}
	const int64_t n = cli_weights_meta(w, meta, c->arena);
	return nr_model_export(w->store, w->model.of, path, "norma", meta, n, c->err);
}

/* Norms that stay for the same reason are reason enough to refuse when all do. */
static int refuse(struct cli *c, const char *in, const struct nr_folding *f)
{
	const char *why = f->sites ? f->site[0].why : "it has no norms";
	const char *where = f->sites ? f->site[0].name : in;
	nr_fail(c->err, NR_EVALUE, "no norm can be folded in", in, "'%s': %s", where, why ? why : "");
	if (why && !strcmp(why, nr_fold_bare)) return nr_hint(c->err, "it was folded before, or its norms learn nothing");
	return nr_hint(c->err, "exact folding needs norms whose output only linear layers read (pre-norm), e.g. --placement pre");
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct fold *o = conf;
	struct nr_weights *w = NULL;
	struct result r = { 0 };
	if (args->count < 1 || args->count > 2) {
		cli_usage(c, "fold needs a file to read and, to keep the result, one to write");
		return nr_hint(c->err, "norma fold --help");
	}
	const char *in = args->item[0], *out = args->count > 1 ? args->item[1] : NULL;
	cli_bound_spin(c);
	int code = nr_weights_open(&w, in, &(struct nr_weights_how){ .model = o->model, .norms = o->file_norm,
		.norms_flag = "--file-norm", .naming = o->from }, c->err);
	if (!code) code = nr_outputs_of(&r.was, w, 1, c->err);
	if (!code) code = fold_weights(c, w, &r.fold);
	if (!code && !r.fold.folded) code = refuse(c, in, &r.fold);
	if (!code) code = nr_outputs_of(&r.is, w, 1, c->err);
	if (!code && nr_outputs_change(&r.was, &r.is) > MOST_CHANGE)
		code = nr_fail(c->err, NR_EVALUE, "cannot fold", in, "the outputs would change by %.1e of the largest",
			nr_outputs_change(&r.was, &r.is));
	if (!code && out) code = write_out(c, o, w, out);
	if (!code) {
		r.out = out;
		code = print_result(c, o, in, w, &r);
	}
	nr_outputs_release(&r.was);
	nr_outputs_release(&r.is);
	nr_weights_close(w);
	return code;
}

const struct cli_command cli_fold = {
	.name = "fold",
	.title = "make norms part of the layers that read them",
	.usage = "IN [OUT]",
	.about = "Gains and biases of layer, rms, dyt and derf norms move into the weights and biases of the next layers; batch norms\n"
		 "(batch, repbn, prepbn), taper at its end and LayerScale disappear altogether. The outputs stay the same up to\n"
		 "rounding, and the report says how far: on made-up inputs, with the time of one sample before and after. A norm stays\n"
		 "where folding is not exact, and the report says why: the residual stream reads it too (post-norm), its gain depends\n"
		 "on the tokens (dtn, seednorm), special tokens have one of their own (sep).\n"
		 "\n"
		 "The new file has norma's names and plan; other software does not know norms without a gain. Features that are read\n"
		 "behind a folded norm (probes, k-NN) lose its gain.",
	.conf_size = sizeof(struct fold),
	.options = options,
	.run = run,
};
