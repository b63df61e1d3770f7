/* norma norms [NAME]: the registry of normalizations as a table, one of them as a card, or all as pages of docs/norms. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/save.h"
#include "base/table.h"
#include "laws/norm_card.h"
#include "laws/prove.h"
#include "norms_views.h"

struct norms { char *markdown; struct norms_views v; };

#define VIEW_TEXT(f, var, help_)                                                                                                       \
	{ .name = #f, .type = NR_TSTRING, .offset = offsetof(struct norms, v.f), .size = sizeof(char *), .text = "", .metavar = var,   \
	  .help = help_ }
static const struct nr_option options[] = {
	{ .name = "json", .type = NR_TBOOL, .offset = offsetof(struct norms, v.json), .size = sizeof(bool), .text = "0",
	  .help = "print one line of JSON per norm" },
	{ .name = "markdown", .type = NR_TSTRING, .offset = offsetof(struct norms, markdown), .size = sizeof(char *), .text = "",
	  .metavar = "DIR", .help = "folder to write a page for each norm and an index into" },
	VIEW_TEXT(norm, "NORMS", "sphere: norms to show, \"rms layer batch\"; flow: the norm at every site of the placement"),
	VIEW_TEXT(placement, "P", "flow: placements to compare, separated by spaces; default: pre post prepost sandwich respost"),
	VIEW_TEXT(model, "MODEL", "flow: the model; default: a small ViT of 12 blocks"),
	{ .name = "batch", .type = NR_TINT, .offset = offsetof(struct norms, v.batch), .size = sizeof(int64_t), .text = "16", .min = 1,
	  .max = 65536, .help = "flow: pictures per batch" },
	VIEW_TEXT(out, "DIR", "sphere, flow: folder for the picture as SVG and its numbers as JSON"),
	NR_OPT_END
};

enum { WIDTH = 100, MAX_PICTURES = 2, MAX_LAWS = 64 };

/* All that is known of one norm. */
struct page {
	struct nr_norm_card card;
	struct nr_norm_picture picture[MAX_PICTURES];
	int pictures, laws;
	struct nr_law law[MAX_LAWS];            /* those that name it */
	const char *over;                       /* what the statistics are taken over */
};

static void words(struct nr_str *s)
{
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) nr_str_printf(s, "%s\n", (*n)->name);
	nr_str_add(s, "sphere\nflow\n");
}

static bool names(const char *text, const char *word)
{
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
		const char before = at == text ? ' ' : at[-1], after = at[strlen(word)];
		if (!isalnum((unsigned char)before) && !isalnum((unsigned char)after) && after != '_') return true;
	}
	return false;
}

static void find_laws(struct page *p)
{
	static struct nr_law all[NR_MAXLAWS];
	const int n = nr_laws(all, NR_MAXLAWS);
	for (int i = 0; i < n && p->laws < MAX_LAWS; i++)
		if (names(all[i].text, p->card.norm->name)) p->law[p->laws++] = all[i];
}

/* A norm made of others looks different from a special token and from the rest. */
static int read_page(struct cli *c, const struct nr_norm *norm, struct page *p)
{
	*p = (struct page){ .pictures = nr_norm_composite(norm) ? 2 : 1 };
	if (nr_norm_card(&p->card, norm, c->arena, c->err)) return c->err->code;
	find_laws(p);
	struct nr_str over = { 0 };
	for (int i = 0; i < p->pictures; i++) {
		const int32_t special = p->pictures - 1;
		const int64_t token = special && !i ? 0 : special + 1;
		if (nr_norm_look(&p->picture[i], p->card.text, special, token, c->arena, c->err)) break;
		if (i) nr_str_add(&over, "; ");
		nr_norm_over(&p->picture[i], &over);
	}
	p->over = nr_str_keep(&over, c->arena);
	if (!p->over) nr_fail(c->err, NR_EMEMORY, "cannot describe", norm->name, "out of memory");
	return c->err->code;
}

/* ---- tables ----------------------------------------------------------------------------------------------------------- */

static void columns(struct nr_table *t, const char *const *titles)
{
	while (*titles) nr_table_column(t, *titles++, NR_LEFT);
}

static void values_of(const struct nr_option *o, struct nr_str *s)
{
	char low[32], high[32];
	s->len = 0;
	nr_str_add(s, "");
	if (o->type == NR_TBOOL) nr_str_add(s, "0, 1");
	for (int i = 0; o->type == NR_TENUM && o->choices[i]; i++) nr_str_printf(s, "%s%s", i ? ", " : "", o->choices[i]);
	if (o->type == NR_TINT || o->type == NR_TFLOAT)
		nr_str_printf(s, "%s to %s", nr_double_text(o->min, false, low, sizeof low),
			nr_double_text(o->max, false, high, sizeof high));
	if (o->type == NR_TSTRING && o->metavar) nr_str_add(s, o->metavar);
}

static struct nr_table *options_table(const struct nr_norm *norm)
{
	struct nr_table *t = nr_table_make();
	struct nr_str values = { 0 };
	columns(t, (const char *const[]){ "option", "default", "values", "meaning", NULL });
	for (const struct nr_option *o = norm->options; o->name; o++) {
		values_of(o, &values);
		nr_table_cell(t, "%s", o->name);
		nr_table_cell(t, "%s", o->text ? o->text : "required");
		nr_table_cell(t, "%s", values.len ? values.text : "");
		nr_table_cell(t, "%s", o->help);
	}
	nr_str_release(&values);
	return t;
}

static struct nr_table *entries_table(const struct nr_norm_card *c)
{
	struct nr_table *t = nr_table_make();
	columns(t, (const char *const[]){ "name", "shape", "initial value", "kind", NULL });
	for (int64_t i = 0; i < c->entries; i++) {
		nr_table_cell(t, "%s", c->entry[i].name);
		nr_table_cell(t, "%s", c->entry[i].shape);
		nr_table_cell(t, "%s", c->entry[i].first);
		nr_table_cell(t, "%s", c->entry[i].buffer ? "running statistic" : "parameter");
	}
	return t;
}

static const char *const list_titles[] = { "name", "alias", "title", "statistics over", "parameters", "paper", NULL };

static void list_row(struct nr_table *t, const struct page *p, const char *name)
{
	const struct nr_norm *n = p->card.norm;
	nr_table_cell(t, "%s", name);
	nr_table_cell(t, "%s", n->alias ? n->alias : "");
	nr_table_cell(t, "%s", n->title);
	nr_table_cell(t, "%s", p->over);
	nr_table_cell(t, "%s", p->card.count);
	nr_table_cell(t, "%s", n->cite ? n->cite : "");
}

/* ---- a card: for the terminal, or as Markdown --------------------------------------------------------------------------- */

static void heading(struct nr_str *s, bool markdown, const char *text)
{
	if (markdown) nr_str_printf(s, "\n## %s\n", text);
	else nr_str_printf(s, "\n%s%s%s\n", cli_bold(), text, cli_plain());
}

static void add_table(struct nr_str *s, bool markdown, struct nr_table *t)
{
	if (markdown) nr_table_markdown(t, s);
	else nr_table_text(t, s);
	nr_table_free(t);
}

static void wrapped(struct nr_str *s, const char *text)
{
	size_t column = 0;
	for (size_t n; text && *text; text += n, text += strspn(text, " ")) {
		n = strcspn(text, " ");
		if (column && column + 1 + n > WIDTH) column = 0, nr_str_add(s, "\n");
		nr_str_printf(s, "%s%.*s", column ? " " : "", (int)n, text);
		column += n + (column ? 1 : 0);
	}
	nr_str_add(s, "\n");
}

/* "a; b" on a line each. */
static void equation(struct nr_str *s, const char *text)
{
	for (size_t n; *text; text += n, text += strspn(text, "; ")) {
		const char *end = strstr(text, "; ");
		n = end ? (size_t)(end - text) : strlen(text);
		nr_str_printf(s, "    %.*s\n", (int)n, text);
	}
}

static void pictures(struct nr_str *s, bool markdown, const struct page *p)
{
	nr_str_printf(s, "Statistics are taken over %s. The inputs that one output value depends on:\n", p->over);
	if (markdown) nr_str_add(s, "\n```text\n");
	for (int i = 0; i < p->pictures; i++) {
		if (p->pictures > 1) nr_str_printf(s, "%s%s\n", i ? "\n" : "", i ? "a token of the rest" : "a special token");
		nr_norm_draw(&p->picture[i], "", s);
	}
	nr_str_printf(s, "\n%s the value itself   %s shares its statistics   %s not seen\n", nr_norm_cells[NR_SELF],
		nr_norm_cells[NR_SEEN], nr_norm_cells[NR_UNSEEN]);
	for (int i = 0; i < p->pictures; i++)
		if (memchr(p->picture[i].cell, NR_SEEN_LATER, (size_t)(p->picture[i].B * p->picture[i].T * p->picture[i].C))) {
			nr_str_printf(s, "%s seen by later steps, through running statistics\n", nr_norm_cells[NR_SEEN_LATER]);
			break;
		}
	if (markdown) nr_str_add(s, "```\n");
}

static void cost(struct nr_str *s, const struct nr_norm_card *c)
{
	nr_str_printf(s, "%.1f flops per value forward, %.1f backward, at 8 samples of a 14 x 14 grid with 384 channels\n"
		"and 6 heads; %s parameters (C channels, H heads, T tokens).\n", c->forward, c->backward, c->count);
}

/* Every law that names it, its own and those of others. */
static void laws(struct nr_str *s, bool markdown, const struct page *p)
{
	heading(s, markdown, "Relation to the others");
	if (!p->laws) nr_str_add(s, markdown ? "\nNo law mentions it.\n" : "no law mentions it\n");
	else if (markdown) nr_str_add(s, "\n`norma prove all` checks these on values and gradients:\n\n");
	for (int i = 0; i < p->laws; i++) nr_str_printf(s, markdown ? "- `%s`\n" : "%s\n", p->law[i].text);
}

static void body(struct nr_str *s, bool markdown, const struct page *p)
{
	const struct nr_norm *n = p->card.norm;
	const char *gap = markdown ? "\n" : "";
	heading(s, markdown, "Equation");
	nr_str_add(s, gap);
	if (n->equation) equation(s, n->equation);
	if (n->about) nr_str_add(s, "\n"), wrapped(s, n->about);
	heading(s, markdown, "What its statistics see");
	nr_str_add(s, gap);
	pictures(s, markdown, p);
	heading(s, markdown, "Options");
	nr_str_add(s, gap);
	if (n->options->name) add_table(s, markdown, options_table(n));
	else nr_str_add(s, markdown ? "None.\n" : "none\n");
	heading(s, markdown, "Parameters");
	nr_str_add(s, gap);
	if (p->card.entries && strcmp(p->card.text, n->name)) nr_str_printf(s, markdown ? "Of `%s`:\n\n" : "of %s\n", p->card.text);
	if (p->card.entries) add_table(s, markdown, entries_table(&p->card));
	else nr_str_add(s, markdown ? "None.\n" : "none\n");
	heading(s, markdown, "Cost");
	nr_str_add(s, gap);
	cost(s, &p->card);
	laws(s, markdown, p);
}

static void card(struct nr_str *s, const struct page *p)
{
	const struct nr_norm *n = p->card.norm;
	nr_str_printf(s, "%s%s%s%s%s%s: %s\n", cli_bold(), n->name, cli_plain(), n->alias ? " (" : "", n->alias ? n->alias : "",
		n->alias ? ")" : "", n->title);
	if (n->cite && *n->cite) nr_str_printf(s, "%s\n", n->cite);
	body(s, false, p);
}

/* ---- pages ------------------------------------------------------------------------------------------------------------ */

static const char generated[] = "<!-- written by `norma norms --markdown docs/norms`: change the registry, not this page -->\n";

/* Commands that every norm can run; test/cli/norm-docs.sh does. */
static void commands(struct nr_str *s, const struct page *p)
{
	const struct nr_norm *n = p->card.norm;
	const char *text = p->card.text, *law = NULL;
	for (int i = p->laws - 1; i >= 0; i--)
		if (!p->law[i].prove) law = p->law[i].text;     /* the first that is an equation */
	nr_str_add(s, "\n## Commands to try\n\n```sh\n");
	nr_str_printf(s, "norma norms %s                   # this page on the terminal\n", n->name);
	nr_str_printf(s, "norma norms %s --json            # the same for programs\n", n->name);
	if (law) nr_str_printf(s, "norma prove \"%s\"\n", law);
	else nr_str_printf(s, "norma prove \"%s = %s\"\n", text, text);
	nr_str_printf(s, "norma plan vit_tiny_bs8 --tiny --sites --norm \"%s\"\n", text);
	nr_str_printf(s, "norma bench norms --tiny --norm \"%s\"\n", text);
	nr_str_printf(s, "norma bench norms --tiny --norm \"%s\" --shapes 2x17x24 --json\n```\n", text);
}

static void page(struct nr_str *s, const struct page *p)
{
	const struct nr_norm *n = p->card.norm;
	nr_str_printf(s, "%s# %s: %s\n\nIn a norm plan: `%s`", generated, n->name, n->title, p->card.text);
	if (n->alias) nr_str_printf(s, ", short `%s`", n->alias);
	nr_str_printf(s, ".%s%s\n", n->cite && *n->cite ? " Paper: " : "", n->cite ? n->cite : "");
	body(s, true, p);
	commands(s, p);
}

static int save(struct cli *c, const char *dir, const char *name, const struct nr_str *text)
{
	const char *path = nr_arena_printf(c->arena, "%s/%s.md", dir, name);
	if (text->failed || !path) return nr_fail(c->err, NR_EMEMORY, "cannot write the page", name, "out of memory");
	return nr_save_file(path, text->text, text->len, c->err);
}

static int write_pages(struct cli *c, const char *dir)
{
	struct nr_table *index = nr_table_make();
	struct nr_str text = { 0 };
	columns(index, list_titles);
	for (const struct nr_norm *const *n = nr_norms(); *n && !c->err->code; n++) {
		struct page p;
		if (read_page(c, *n, &p)) break;
		text.len = 0;
		page(&text, &p);
		save(c, dir, (*n)->name, &text);
		list_row(index, &p, nr_arena_printf(c->arena, "[%s](%s.md)", (*n)->name, (*n)->name));
	}
	text.len = 0;
	nr_str_printf(&text, "%s# Normalizations\n\n", generated);
	nr_table_markdown(index, &text);
	nr_str_add(&text, "\nC channels, H heads, T tokens. What the statistics are taken over is measured: each input value is\n"
		"changed in turn to see which of them change a given output value. `norma prove all` checks the laws\n"
		"between the norms. A new norm is one file in `src/norms` and one line in `norms.def`; `norma norms\n"
		"--markdown docs/norms` writes its page.\n");
	if (!c->err->code) save(c, dir, "README", &text);
	nr_str_release(&text);
	nr_table_free(index);
	return c->err->code;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static json_t *cells_json(const struct nr_norm_picture *p)
{
	json_t *samples = json_array();
	for (int64_t b = 0; b < p->B; b++) {
		json_t *rows = json_array();
		for (int64_t t = 0; t < p->T; t++) {
			char row[64];
			int64_t k = 0;
			for (; k < p->C && k < 63; k++) row[k] = ".+#x"[p->cell[(b * p->T + t) * p->C + k]];
			row[k] = 0;
			json_array_append_new(rows, json_string(row));
		}
		json_array_append_new(samples, rows);
	}
	return samples;
}

static json_t *options_json(const struct nr_norm *n)
{
	json_t *all = json_array();
	for (const struct nr_option *o = n->options; o->name; o++)
		json_array_append_new(all, json_pack("{s:s, s:s?, s:s}", "name", o->name, "default", o->text, "help", o->help));
	return all;
}

static json_t *page_json(const struct page *p)
{
	const struct nr_norm *n = p->card.norm;
	json_t *r = json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s, s:s, s:s}", "name", n->name, "alias", n->alias, "title",
		n->title, "cite", n->cite, "equation", n->equation, "about", n->about, "over", p->over, "parameters",
		p->card.count, "text", p->card.text);
	json_t *entries = json_array(), *laws_list = json_array(), *seen = json_array();
	for (int64_t i = 0; i < p->card.entries; i++) {
		const struct nr_norm_entry *e = &p->card.entry[i];
		json_array_append_new(entries, json_pack("{s:s, s:s, s:s, s:b}", "name", e->name, "shape", e->shape, "first",
			e->first, "buffer", e->buffer));
	}
	for (int i = 0; i < p->laws; i++) json_array_append_new(laws_list, json_string(p->law[i].text));
	for (int i = 0; i < p->pictures; i++) json_array_append_new(seen, cells_json(&p->picture[i]));
	json_object_set_new(r, "options", options_json(n));
	json_object_set_new(r, "entries", entries);
	json_object_set_new(r, "laws", laws_list);
	json_object_set_new(r, "forward_flops_per_value", json_real(p->card.forward));
	json_object_set_new(r, "backward_flops_per_value", json_real(p->card.backward));
	json_object_set_new(r, "seen", seen);
	return r;
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

static int one(struct cli *c, const struct norms *o, const char *name)
{
	const struct nr_norm *norm = nr_norm_find(name, c->err);
	struct page p;
	if (!norm || read_page(c, norm, &p)) return c->err->code;
	if (o->v.json) return nr_json_line(stdout, page_json(&p), c->err);
	struct nr_str s = { 0 };
	card(&s, &p);
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	return NR_OK;
}

static int list(struct cli *c, const struct norms *o)
{
	struct nr_table *t = nr_table_make();
	columns(t, list_titles);
	for (const struct nr_norm *const *n = nr_norms(); *n && !c->err->code; n++) {
		struct page p;
		if (read_page(c, *n, &p)) break;
		if (o->v.json) nr_json_line(stdout, page_json(&p), c->err);
		else list_row(t, &p, (*n)->name);
	}
	struct nr_str s = { 0 };
	if (!o->v.json && !c->err->code) nr_table_text(t, &s);
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	nr_table_free(t);
	return c->err->code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct norms *o = conf;
	if (args->count > 1 || (args->count && *o->markdown)) {
		cli_usage(c, "norms takes one name, or none");
		return nr_hint(c->err, "norma norms --help");
	}
	if (*o->markdown) return write_pages(c, o->markdown);
	if (args->count && !strcmp(args->item[0], "sphere")) return cli_norms_sphere(c, &o->v);
	if (args->count && !strcmp(args->item[0], "flow")) return cli_norms_flow(c, &o->v);
	return args->count ? one(c, o, args->item[0]) : list(c, o);
}

const struct cli_command cli_norms = {
	.name = "norms",
	.title = "list normalizations: equations, options, cost, what each one sees",
	.usage = "[NAME|sphere|flow]",
	.about = "Without a name: a table of all. With a name: equation, paper, options, parameters, cost, the laws of\n"
		 "`norma prove all` that mention it, and a picture of the inputs that one output value depends on, measured by\n"
		 "changing every input in turn (in JSON: x itself, # seen, + seen by later steps, . not seen).\n"
		 "\n"
		 "`norms sphere` shows where norms put a cloud of points with three channels: onto a sphere, onto a ring of it, or\n"
		 "just moved and stretched. `norms flow` measures the gradient of every block of a model before training, for several\n"
		 "placements, and shows whether it stays even over the depth.",
	.conf_size = sizeof(struct norms),
	.options = options,
	.words = words,
	.run = run,
};
