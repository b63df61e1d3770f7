/* DTN's lambda over time: see lambda.h. A chart for each site of attention, of the mean and of the variance, with a line for each head. */
#include "report/lambda.h"

#include <stdlib.h>
#include <string.h>

#include "draw/html.h"
#include "draw/svg.h"

enum { SHOWN = 16 };                            /* sites at most, evenly over the depth */

/* The columns SITE.WHAT.HEAD of one site follow each other, by head. */
struct run { const struct nr_columns *t; const struct nr_column *step; const char *name; };

static bool begins(const char *name, const char *site, size_t n, const char *what)
{
	return !strncmp(name, site, n) && name[n] == '.' && !strncmp(name + n + 1, what, strlen(what)) && name[n + 1 + strlen(what)] == '.';
}

static void add_chart(struct nr_str *s, const struct run *r, const char *site, size_t n, const char *what, struct nr_arena *arena)
{
	struct nr_series *line = nr_arena_alloc(arena, (size_t)r->t->count * sizeof *line);
	int heads = 0;
	if (!line) s->failed = true;
	for (int c = 0; line && c < r->t->count; c++) {
		const struct nr_column *v = &r->t->column[c];
		if (!begins(v->name, site, n, what)) continue;
		line[heads] = (struct nr_series){ .label = nr_arena_printf(arena, "head %d", heads), .x = r->step->value, .y = v->value,
			.n = r->t->rows, .arm = heads, .weight = NR_BOLD };
		heads++;
	}
	const char *words = !strcmp(what, "var") ? "variance" : what;
	const char *title = nr_arena_printf(arena, "λ of the %s, %.*s: %s", words, (int)n, site, r->name);
	if (!heads || !title) return;
	const struct nr_chart c = { .name = title, .x_label = "step", .y_label = "share of the token's own statistics", .scale = NR_LINEAR,
		.series = line, .count = heads };
	nr_html_figure_open(s, "lambda", title, "1 normalizes a token by itself, like LN; 0 by the tokens around it, like IN. One line per head.");
	nr_svg_chart(s, &c);
	nr_html_figure_close(s);
}

/* The sites, as the columns .mean.0 or, without a weight of the mean, .var.0 name them. */
static int sites_of(const struct nr_columns *t, const char **site, size_t *length)
{
	int count = 0;
	for (int c = 0; c < t->count; c++) {
		const char *name = t->column[c].name, *end = strstr(name, ".mean.0");
		if (!end || end[strlen(".mean.0")]) continue;
		site[count] = name;
		length[count++] = (size_t)(end - name);
	}
	return count;
}

static void add_run(struct nr_str *s, const struct run *r, struct nr_arena *arena)
{
	const char **site = nr_arena_alloc(arena, (size_t)(r->t->count + 1) * sizeof *site);
	size_t *length = nr_arena_alloc(arena, (size_t)(r->t->count + 1) * sizeof *length);
	if (!site || !length) {
		s->failed = true;
		return;
	}
	const int count = sites_of(r->t, site, length), shown = count < SHOWN ? count : SHOWN;
	for (int i = 0; i < shown; i++) {
		const int at = shown > 1 ? i * (count - 1) / (shown - 1) : 0;
		add_chart(s, r, site[at], length[at], "mean", arena);
		add_chart(s, r, site[at], length[at], "var", arena);
	}
}

void nr_lambda_section(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const size_t before = s->len;
	int count = 0;
	nr_str_add(s, "<section id=\"lambda\"><h2>λ of dynamic token normalization over time</h2>\n<p>How much of the mean and of the variance "
		      "a head takes from the token itself; the rest comes from the tokens around it. One run of each arm.</p>\n"
		      "<div class=\"charts\">\n");
	for (int m = 0; m < a->count; m++) {
		const struct nr_runfolder *r = NULL;
		for (int i = 0; i < a->arm[m].runs && !r; i++)
			if (a->run[a->arm[m].run[i]].lambda.count) r = &a->run[a->arm[m].run[i]];
		const struct nr_column *step = r ? nr_column_find(&r->lambda, "step") : NULL;
		if (!step) continue;
		add_run(s, &(struct run){ &r->lambda, step, a->arm[m].name }, arena);
		count++;
	}
	nr_str_add(s, "</div></section>\n");
	if (!count && !s->failed) s->len = before;
}
