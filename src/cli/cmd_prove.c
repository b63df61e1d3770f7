/* norma prove "dtn:lam=1" = ln | all: laws of normalizations on random inputs. See laws/prove.h. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "laws/prove.h"
#include "cli.h"

struct prove { char *shape; int64_t special, heads, seeds; double tolerance; bool json; };

static const struct nr_option options[] = {
	NR_OPT_STRING(struct prove, shape, "3x12x12", "samples x tokens on the grid x channels of the input"),
	NR_OPT_INT(struct prove, special, -1, -1, 1000,
		"special tokens before them; -1: one if a side combines norms"),
	NR_OPT_INT(struct prove, heads, 0, 0, 1024, "heads; 0: the first of 3, 2 and 1 that divides the channels"),
	NR_OPT_INT(struct prove, seeds, 3, 1, 1000, "random inputs to try"),
	NR_OPT_FLOAT(struct prove, tolerance, 1e-5, 0, 1,
		"largest allowed difference, relative to the largest value"),
	NR_OPT_BOOL(struct prove, json, "0", "print one line of JSON per law"),
	NR_OPT_END
};

static void words(struct nr_str *s)
{
	nr_str_add(s, "all\n");
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) nr_str_printf(s, "%s\n", (*n)->name);
}

static int settings(struct cli *c, const struct prove *o, struct nr_prove_options *out)
{
	long long b, t, k;
	int end = 0;
	if (sscanf(o->shape, "%lldx%lldx%lld%n", &b, &t, &k, &end) != 3 || o->shape[end] || b < 1 || t < 1 || k < 1 ||
		b > 4096 || t > 4096 || k > 4096) {
		cli_usage(c, "cannot read the shape '%s'", o->shape);
		return nr_hint(c->err, "samples x tokens x channels, each up to 4096, e.g. 3x12x12");
	}
	*out = (struct nr_prove_options){ b, t, k, (int32_t)o->special, (int32_t)o->heads, (int32_t)o->seeds, o->tolerance };
	if (o->heads && k % o->heads) return cli_usage(c,
		"%lld channels cannot be divided into %d heads", k, (int)o->heads);
	return NR_OK;
}

static void number(json_t *r, const char *key, double v)
{
	json_object_set_new(r, key, isfinite(v) ? json_real(v) : json_null());
}

static int print_json(const struct nr_law *law, const struct nr_proof *p, struct nr_error *err)
{
	json_t *r = json_object(), *parts = json_object();
	json_object_set_new(r, "law", json_string(law->text));
	if (law->source) json_object_set_new(r, "source", json_string(law->source));
	number(r, "values", p->values);
	number(r, "gradients", p->gradients);
	for (int i = 0; i < p->parts; i++) number(parts, p->part[i].name, p->part[i].difference);
	json_object_set_new(r, "differences", parts);
	if (p->note[0]) json_object_set_new(r, "note", json_string(p->note));
	json_object_set_new(r, "holds", json_boolean(p->holds));
	return nr_json_line(stdout, r, err);
}

static void difference(struct nr_table *t, double d)
{
	if (isnan(d)) nr_table_cell(t, "-");
	else nr_table_cell(t, "%.1e", d);
}

/* ---- one equation ---- */

static int one(struct cli *c, const struct prove *o, const struct nr_prove_options *s, const char *text)
{
	const struct nr_law law = { .text = text };
	struct nr_proof p;
	if (nr_law_prove(&law, s, &p, c->err)) return c->err->code;
	if (o->json) {
		if (print_json(&law, &p, c->err)) return c->err->code;
		return p.holds ? NR_OK : NR_EVALUE;
	}
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "of", NR_LEFT);
	nr_table_column(t, "largest difference", NR_RIGHT);
	for (int i = 0; i < p.parts; i++) {
		nr_table_cell(t, "%s", p.part[i].name);
		difference(t, p.part[i].difference);
	}
	cli_print_table(t);
	printf("%s: %s%s %g%s\n", text, p.holds ? cli_green() : cli_red(), p.holds ? "equal within" : "they differ by more than",
		s->tolerance, cli_plain());
	return p.holds ? NR_OK : NR_EVALUE;
}

/* ---- all of them ---- */

static void add_row(struct nr_table *t, const struct nr_law *law, const struct nr_proof *p)
{
	nr_table_cell(t, "%s", law->text);
	nr_table_cell(t, "%s", law->source);
	difference(t, p->values);
	difference(t, p->gradients);
	nr_table_cell(t, "%s", p->holds ? "holds" : "FAILS");
}

static int all(struct cli *c, const struct prove *o, const struct nr_prove_options *s)
{
	static const char *const titles[] = { "law", "source", "values", "gradients", "verdict" };
	struct nr_law *law = nr_arena_alloc(c->arena, NR_MAXLAWS * sizeof *law);
	if (!law) return nr_fail(c->err, NR_EMEMORY, "cannot prove", "all", "out of memory");
	const int n = nr_laws(law, NR_MAXLAWS);
	struct nr_table *t = nr_table_make();
	struct nr_str notes = { 0 };
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i < 2 || i == 4 ? NR_LEFT : NR_RIGHT);
	int failed = 0;
	for (int i = 0; i < n && !c->err->code; i++) {
		struct nr_proof p;
		if (nr_law_prove(&law[i], s, &p, c->err)) break;
		failed += !p.holds;
		if (o->json && print_json(&law[i], &p, c->err)) break;
		add_row(t, &law[i], &p);
		if (p.note[0]) nr_str_printf(&notes, "%s: %s\n", law[i].text, p.note);
	}
	if (!o->json) {
		cli_print_table(t);
		printf("\n%s%s%d laws, %s%s\n", nr_str_text(&notes), failed ? cli_red() : cli_green(), n,
			failed ? "not all hold" : "all hold", cli_plain());
	} else {
		nr_table_free(t);
	}
	nr_str_release(&notes);
	return c->err->code ? c->err->code : failed ? NR_EVALUE : NR_OK;
}

/* The arguments as one text: quoted, or in pieces as the shell cut them. */
static char *joined(struct cli *c, const struct nr_list *args)
{
	char *text = nr_arena_strdup(c->arena, args->item[0]);
	for (int64_t i = 1; i < args->count && text; i++) text = nr_arena_printf(c->arena, "%s %s", text, args->item[i]);
	return text;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct prove *o = conf;
	struct nr_prove_options s;
	if (!args->count) {
		cli_usage(c, "prove needs an equation, or all");
		return nr_hint(c->err, "norma prove \"dtn:lam=1\" = ln");
	}
	if (settings(c, o, &s)) return c->err->code;
	const char *text = joined(c, args);
	if (!text) return nr_fail(c->err, NR_EMEMORY, "cannot read the arguments", NULL, "out of memory");
	return strcmp(text, "all") ? one(c, o, &s, text) : all(c, o, &s);
}

const struct cli_command cli_prove = {
	.name = "prove",
	.title = "check laws that hold between normalizations",
	.usage = "\"NORM = NORM\" | all",
	.about = "Runs both norms on the same random input, with the same upstream gradient and the same random weight and bias\n"
		 "where both have them. Prints the largest difference of the outputs, of the input's gradient and of every\n"
		 "parameter's, relative to the largest value. The exit code is 0 if all are within the tolerance, otherwise 1. A norm\n"
		 "is written as in a norm plan: \"dtn:lam=1\", \"sep(bn,ln)\"; eps is 1e-5 unless given.\n"
		 "\n"
		 "all  every law of the registry (`norma norms NAME` lists a norm's own), and the invariances and limits that papers\n"
		 "state: of layer, RMS and instance norm, of batch norm with padding, of uniformity.",
	.conf_size = sizeof(struct prove),
	.options = options,
	.words = words,
	.run = run,
};
