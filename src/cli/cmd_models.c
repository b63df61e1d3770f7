/* norma models [NAME]: the families and presets with their sizes, or one model: options, parameters by part, sites of norms. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli.h"
#include "graph/net.h"
#include "models/guess.h"
#include "nn/products.h"
#include "norma/infer.h"
#include "norms/choice.h"
#include "norms/norms.h"
#include "weights_meta.h"

struct models { struct nr_norm_choice norms; char *write; int64_t seed; bool json, names; };

static const struct nr_option options[] = {
	NR_OPT_NORMS(struct models, norms),
	CLI_TEXT(struct models, write, "", "FILE", "write the model with its initial values as safetensors"),
	NR_OPT_INT(struct models, seed, 0, 0, 9e15, "seed of the initial values"),
	NR_OPT_BOOL(struct models, names, "0", "list every name of an architecture that is understood, of timm and Hugging Face"),
	NR_OPT_BOOL(struct models, json, "0", "print one line of JSON per model"),
	NR_OPT_END
};

static void words(struct nr_str *s)
{
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		nr_str_printf(s, "%s\n", (*m)->name);
		for (const struct nr_preset *p = (*m)->presets; p->name; p++) nr_str_printf(s, "%s\n", p->name);
	}
}

/* ---- what a model is: recorded for one picture, never run, so that large ones take no memory ------------------------------ */

struct recorded {
	struct nr_model_spec model;
	const char *norms;
	struct nr_store *store;
	struct nr_net *net;
	int64_t params, buffers;
	double macs, norm_macs;
};

static void release(struct recorded *r)
{
	nr_net_free(r->net);
	nr_store_free(r->store);
	*r = (struct recorded){ 0 };
}

static int record(struct cli *c, struct recorded *r, const char *name, const struct models *o)
{
	*r = (struct recorded){ .norms = nr_norm_choice_text(&o->norms, c->arena) };
	if (nr_model_parse(&r->model, name, c->arena, c->err) || nr_store_make(&r->store, (uint64_t)o->seed, c->err)) return c->err->code;
	r->net = nr_net_make(r->store);
	if (!r->net || !r->norms) return nr_fail(c->err, NR_EMEMORY, "cannot record the model", name, "out of memory");
	if (nr_norms_use(r->net, r->norms, &r->model.norms, c->err)) return c->err->code;
	const struct nr_inputs in = nr_model_inputs(r->net, &r->model, 1);
	nr_model_logits(r->net, &r->model, &in);
	if (r->net->error.code) return (int)(*c->err = r->net->error).code;
	if (nr_norms_done(r->net, c->err)) return c->err->code;
	for (int64_t i = 0; i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		*(e->buffer ? &r->buffers : &r->params) += e->count;
	}
	r->macs = nr_net_macs(r->net);
	r->norm_macs = nr_norms_macs(r->net);
	return NR_OK;
}

/* ---- parts --------------------------------------------------------------------------------------------------------------- */

/* "blocks.3.attn.qkv.weight" to "blocks.*.attn.qkv"; tensors that stand alone keep their name. */
static const char *part_of(const char *entry, char *buf, size_t size)
{
	const char *last = strrchr(entry, '.');
	const size_t end = last ? (size_t)(last - entry) : strlen(entry);
	size_t used = 0;
	for (size_t i = 0; i < end && used + 1 < size;) {
		const size_t digits = strspn(entry + i, "0123456789");
		const bool number = digits && i && entry[i - 1] == '.' && (entry[i + digits] == '.' || !entry[i + digits]);
		buf[used++] = number ? '*' : entry[i];
		i += number ? digits : 1;
	}
	buf[used] = 0;
	return buf;
}

struct part { const char *name; int64_t tensors, params, buffers; };

static int64_t parts_of(struct cli *c, const struct recorded *r, struct part **out)
{
	int64_t n = 0;
	struct part *p = nr_arena_alloc(c->arena, (size_t)(nr_store_count(r->store) + 1) * sizeof *p);
	for (int64_t i = 0; p && i < nr_store_count(r->store); i++) {
		const struct nr_entry *e = nr_store_at(r->store, i);
		char name[512];
		int64_t k = 0;
		part_of(e->name, name, sizeof name);
		while (k < n && strcmp(p[k].name, name)) k++;
		if (k == n) p[n++] = (struct part){ .name = nr_arena_strdup(c->arena, name) };
		if (!p[k].name) return -1;
		p[k].tensors++;
		*(e->buffer ? &p[k].buffers : &p[k].params) += e->count;
	}
	*out = p;
	return p ? n : -1;
}

/* ---- sites: blocks with the same norm are one row ------------------------------------------------------------------------- */

struct site { const char *name, *norm, *rule; int64_t first, last; };   /* of the blocks; -1: no block */

static int64_t sites_of(struct cli *c, const struct recorded *r, struct site **out)
{
	int64_t count, n = 0;
	const struct nr_site *site = nr_sites(r->net, &count);
	struct site *s = nr_arena_alloc(c->arena, (size_t)(count + 1) * sizeof *s);
	for (int64_t i = 0; s && i < count; i++) {
		char dotted[520], name[512];
		snprintf(dotted, sizeof dotted, "%s.", site[i].name);           /* the last word stays */
		part_of(dotted, name, sizeof name);
		const char *digits = strpbrk(site[i].name, "0123456789"), *star = strchr(name, '*');
		const int64_t block = star && digits ? strtoll(digits, NULL, 10) : -1;
		int64_t k = n;
		while (--k >= 0) {
			const bool same = s[k].norm && site[i].norm ? !strcmp(s[k].norm, site[i].norm) : s[k].norm == site[i].norm;
			if (block >= 0 && !strcmp(s[k].name, name) && same && s[k].last == block - 1) break;
		}
		if (k >= 0) s[k].last = block;
		else s[n++] = (struct site){ nr_arena_strdup(c->arena, name), site[i].norm, site[i].rule, block, block };
		if (n && !s[n - 1].name) return -1;
	}
	*out = s;
	return s ? n : -1;
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

static void put(struct nr_table *t, const char *heading)
{
	struct nr_str s = { 0 };
	nr_table_text(t, &s);
	printf("%s%s%s%s%s", *heading ? "\n" : "", cli_bold(), heading, cli_plain(), *heading ? "\n" : "");
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	nr_table_free(t);
}

static struct nr_table *table(const char *const *titles, const char *right)
{
	struct nr_table *t = nr_table_make();
	for (; *titles; titles++) nr_table_column(t, *titles, strstr(right, *titles) ? NR_RIGHT : NR_LEFT);
	return t;
}

/* 5717416 as 5,717,416: counts are compared with papers by eye. */
static const char *grouped(int64_t n, char *buf, size_t size)
{
	char digits[32];
	size_t used = 0;
	const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
	for (int i = 0; i < len && used + 2 < size; i++) {
		if (i && (len - i) % 3 == 0) buf[used++] = ',';
		buf[used++] = digits[i];
	}
	buf[used] = 0;
	return buf;
}

static void print_options(struct cli *c, const struct nr_model_spec *m)
{
	void *plain = nr_arena_alloc(c->arena, m->of->conf_size + 1);
	struct nr_table *t = table((const char *const[]){ "option", "value", "default", "meaning", NULL }, "");
	if (plain) nr_option_defaults(m->of->options, plain);
	for (const struct nr_option *o = m->of->options; plain && o->name; o++) {
		char value[256];
		nr_table_cell(t, "%s", o->name);
		nr_table_cell(t, "%s", nr_option_text(o, m->conf, value, sizeof value));
		nr_table_cell(t, "%s", nr_option_text(o, plain, value, sizeof value));
		nr_table_cell(t, "%s", o->help);
	}
	put(t, "Options");
}

static void print_parts(struct cli *c, const struct recorded *r)
{
	struct part *p = NULL;
	char text[48];
	const int64_t n = parts_of(c, r, &p);
	struct nr_table *t = table((const char *const[]){ "part", "tensors", "parameters", "share", NULL }, "tensors parameters share");
	for (int64_t i = 0; i < n; i++) {
		nr_table_cell(t, "%s", p[i].name);
		nr_table_cell(t, "%lld", (long long)p[i].tensors);
		nr_table_cell(t, "%s", grouped(p[i].params, text, sizeof text));
		nr_table_cell(t, "%.2f %%", 100 * (double)p[i].params / (double)(r->params ? r->params : 1));
	}
	put(t, "Parameters");
}

static void print_sites(struct cli *c, const struct recorded *r)
{
	struct site *s = NULL;
	const int64_t n = sites_of(c, r, &s);
	struct nr_table *t = table((const char *const[]){ "site", "blocks", "norm", "rule", NULL }, "");
	for (int64_t i = 0; i < n; i++) {
		nr_table_cell(t, "%s", s[i].name);
		if (s[i].first < 0) nr_table_cell(t, "%s", "");
		else if (s[i].first == s[i].last) nr_table_cell(t, "%lld", (long long)s[i].first);
		else nr_table_cell(t, "%lld to %lld", (long long)s[i].first, (long long)s[i].last);
		nr_table_cell(t, "%s", s[i].norm ? s[i].norm : "-");
		nr_table_cell(t, "%s", s[i].rule ? s[i].rule : "-");
	}
	put(t, "Norm sites");
}

static void list_row(struct nr_table *t, const struct recorded *r, const char *name, const char *text)
{
	char number[48];
	nr_table_cell(t, "%s", name);
	nr_table_cell(t, "%s", grouped(r->params, number, sizeof number));
	nr_table_cell(t, "%.3f", r->macs * 1e-9);
	nr_table_cell(t, "%.3f", r->norm_macs * 1e-9);
	nr_table_cell(t, "%s", text);
}
static const char *const list_titles[] = { "name", "parameters", "GMAC", "norms", "options", NULL };

static void print_card(struct cli *c, const struct recorded *r, const char *name)
{
	const struct nr_model *m = r->model.of;
	char text[48];
	printf("%s%s%s: %s, %s\n", cli_bold(), name, cli_plain(), m->title, m->cite ? m->cite : "no paper");
	printf("%s parameters, %.3f GMAC and %.3f in norms for ", grouped(r->params, text, sizeof text), r->macs * 1e-9,
		r->norm_macs * 1e-9);
	if (m->reads == NR_TEXTS) printf("a text of %lld tokens\n", (long long)nr_model_int(&r->model, "length"));
	else if (m->reads == NR_MOLECULES) printf("a graph of %lld nodes\n", (long long)nr_model_int(&r->model, "nodes"));
	else printf("a picture of %lld x %lld x %lld\n", (long long)nr_model_int(&r->model, "channels"),
		(long long)nr_model_int(&r->model, "image"), (long long)nr_model_int(&r->model, "image"));
	if (r->buffers) printf("%s running statistics\n", grouped(r->buffers, text, sizeof text));
	print_options(c, &r->model);
	print_parts(c, r);
	print_sites(c, r);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

static json_t *size_json(const struct recorded *r, const char *name, const char *text)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f}", "name", name, "family", r->model.of->name, "options", text,
		"norms", r->norms, "params", (json_int_t)r->params, "buffers", (json_int_t)r->buffers, "gmac", r->macs * 1e-9, "norm_gmac",
		r->norm_macs * 1e-9);
}

static json_t *card_json(struct cli *c, const struct recorded *r, const char *name)
{
	json_t *all = size_json(r, name, name), *opts = json_object(), *parts = json_array(), *sites = json_array();
	for (const struct nr_option *o = r->model.of->options; o->name; o++) {
		char value[256];
		json_object_set_new(opts, o->name, json_string(nr_option_text(o, r->model.conf, value, sizeof value)));
	}
	struct part *p = NULL;
	struct site *s = NULL;
	int64_t n = parts_of(c, r, &p);
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(parts, json_pack("{s:s, s:I, s:I, s:I}", "part", p[i].name, "tensors", (json_int_t)p[i].tensors,
			"params", (json_int_t)p[i].params, "buffers", (json_int_t)p[i].buffers));
	n = sites_of(c, r, &s);
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(sites, json_pack("{s:s, s:I, s:I, s:s?, s:s?}", "site", s[i].name, "first", (json_int_t)s[i].first,
			"last", (json_int_t)s[i].last, "norm", s[i].norm, "rule", s[i].rule));
	json_object_set_new(all, "settings", opts);
	json_object_set_new(all, "parts", parts);
	json_object_set_new(all, "sites", sites);
	return all;
}

/* ---- the command ---------------------------------------------------------------------------------------------------------- */

static int list_family(struct cli *c, const struct nr_model *m, const struct models *o, bool own)
{
	struct nr_table *t = table(list_titles, "parameters GMAC");
	for (const struct nr_preset *p = m->presets; p->name && !c->err->code; p++) {
		struct recorded r;
		if (!record(c, &r, p->name, o)) {
			if (o->json) nr_json_line(stdout, size_json(&r, p->name, p->text), c->err);
			else list_row(t, &r, p->name, p->text);
		}
		release(&r);
	}
	if (!o->json && !c->err->code) {
		if (!own) printf("%s%s%s: %s, %s\n", cli_bold(), m->name, cli_plain(), m->title, m->cite ? m->cite : "no paper");
		put(t, own ? "Presets" : "");
	} else nr_table_free(t);
	return c->err->code;
}

static void put_name(const struct models *o, const char *name, const char *of, const char *family, struct nr_error *err)
{
	if (!o->json) printf("%-48s %-12s %s\n", name, of, family);
	else nr_json_line(stdout, json_pack("{s:s, s:s, s:s}", "name", name, "of", of, "family", family), err);
}

/* One line for each: the name, whose it is, the family that reads it. */
static int list_names(const struct models *o, struct nr_error *err)
{
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		for (const struct nr_preset *p = (*m)->presets; p->name; p++)
			if (!strchr(p->name, '/')) put_name(o, p->name, "norma", (*m)->name, err);
		for (const struct nr_architecture *a = (*m)->known; a && a->name; a++) put_name(o, a->name, "timm", (*m)->name, err);
		for (const char *const *h = (*m)->file ? (*m)->file->classes : NULL; h && *h; h++) put_name(o, *h, "huggingface", (*m)->name, err);
	}
	return err->code;
}

static int write_initial(struct cli *c, const struct recorded *r, const char *path)
{
	const struct nr_weights w = { .arena = c->arena, .store = r->store, .model = r->model, .norms = r->norms };
	struct nr_st_meta meta[CLI_META];
	if (nr_store_seal(r->store, c->err)) return c->err->code;
	const int64_t n = cli_weights_meta(&w, meta, c->arena);
	return nr_model_export(r->store, r->model.of, path, "norma", meta, n, c->err);
}

static int one(struct cli *c, const struct models *o, const char *name)
{
	struct recorded r;
	int code = record(c, &r, name, o);
	if (!code && *o->write) code = write_initial(c, &r, o->write);
	if (!code && o->json) code = nr_json_line(stdout, card_json(c, &r, name), c->err);
	else if (!code) print_card(c, &r, name);
	const struct nr_model *family = r.model.of;
	release(&r);
	if (!code && !o->json && !strcmp(family->name, name)) code = list_family(c, family, o, true);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct models *o = conf;
	if (args->count > 1 || (!args->count && *o->write)) {
		cli_usage(c, *o->write ? "--write needs the name of one model" : "models takes one name, or none");
		return nr_hint(c->err, "norma models --help");
	}
	if (o->names && !args->count) return list_names(o, c->err);
	if (args->count) return one(c, o, args->item[0]);
	for (const struct nr_model *const *m = nr_models(); *m; m++)
		if (list_family(c, *m, o, false)) return c->err->code;
	return NR_OK;
}

const struct cli_command cli_models = {
	.name = "models",
	.title = "list models: presets, sizes, options, norm sites",
	.usage = "[NAME[:key=value,...]]",
	.about = "Without a name: every family with its presets, their parameters, and the multiply-adds of linear layers,\n"
		 "convolutions and attention for one picture or text. With a name: its options, its parameters by part, where norms\n"
		 "can go, and where the plan of --norm and the other flags puts them. --write saves the model with its initial values\n"
		 "to a file that other commands can load. --names lists the architectures of timm and the classes of Hugging Face whose\n"
		 "files are read.",
	.conf_size = sizeof(struct models),
	.options = options,
	.words = words,
	.run = run,
};
