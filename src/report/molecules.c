/* Molecules: what each arm says of them, against what is known. See molecules.h. */
#include "report/molecules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/spearman.h"
#include "chem/depict.h"
#include "draw/html.h"
#include "draw/scale.h"
#include "draw/scatter.h"
#include "report/curves.h"

enum { SHOWN = 4, MOST_POINTS = 1500, MOST_ARMS = 6 };

/* The predictions of the first run of an arm that has any: those of the test split, else of the other one. One task, the first. */
struct said {
	const char *split;
	bool answers;                           /* all targets are 0 or 1 */
	int64_t n;
	int64_t *row;                           /* (n) of the file */
	int64_t tasks;                          /* how many there are */
	int64_t rows, known;                    /* of all tasks: rows of the split, and how many it would have if the file were not cut */
	const double *target, *prediction, *graph;
	const char *const *smiles;
};

static bool is_split(const struct nr_column *split, int64_t row, const char *name)
{
	return split->text[row] && !strcmp(split->text[row], name);
}

/* How many tasks, and how many rows there are and should be. A file that does not say so has what it has. */
static void count_rows(struct said *s, const struct nr_columns *t, const struct nr_column *split, const struct nr_column *task)
{
	const struct nr_column *tasks = nr_column_find(t, "tasks"), *known = nr_column_find(t, "known");
	double most = 1, whole = 0;
	for (int64_t k = 0; k < t->rows; k++) {
		if (!is_split(split, k, s->split)) continue;
		s->rows++;
		if (task->value[k] > most) most = task->value[k];
		if (tasks && tasks->given[k] && tasks->value[k] > most) most = tasks->value[k];
		if (known && known->given[k] && known->value[k] > whole) whole = known->value[k];
	}
	s->tasks = most < 1e9 ? (int64_t)most : 1;
	s->known = whole > (double)s->rows && whole < 1e15 ? (int64_t)whole : s->rows;
}

static struct said said_of(const struct nr_arms *a, int arm, struct nr_arena *arena)
{
	struct said s = { 0 };
	for (int i = 0; i < a->arm[arm].runs && !s.n; i++) {
		const struct nr_columns *t = &a->run[a->arm[arm].run[i]].predictions;
		const struct nr_column *split = nr_column_find(t, "split"), *smiles = nr_column_find(t, "smiles"),
			*task = nr_column_find(t, "task");
		const struct nr_column *target = nr_column_find(t, "target"), *said = nr_column_find(t, "prediction"),
			*graph = nr_column_find(t, "graph");
		if (!t->rows || !split || !smiles || !target || !said || !graph || !task || !split->text || !smiles->text) continue;
		s = (struct said){ .split = "test", .answers = true,
			.row = nr_arena_alloc(arena, (size_t)t->rows * sizeof *s.row), .target = target->value,
			.prediction = said->value, .graph = graph->value, .smiles = smiles->text };
		for (int of = 0; of < 2 && s.row && !s.n; of++) {
			s.split = of ? "val" : "test";
			for (int64_t k = 0; k < t->rows; k++) {
				if (!is_split(split, k, s.split) || task->value[k] != 1 || !graph->given[k] || !target->given[k] ||
					!said->given[k] || !isfinite(target->value[k]) || !isfinite(said->value[k]))
					continue;
				s.answers &= target->value[k] == 0 || target->value[k] == 1;
				s.row[s.n++] = k;
			}
		}
		count_rows(&s, t, split, task);
	}
	return s;
}

static double mean_error(const struct said *s)
{
	double sum = 0;
	for (int64_t i = 0; i < s->n; i++) sum += fabs(s->prediction[s->row[i]] - s->target[s->row[i]]);
	return sum / (double)s->n;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------- */

static double correlation(const struct said *s, struct nr_arena *arena)
{
	double *x = nr_arena_alloc(arena, (size_t)(2 * s->n + 1) * sizeof *x);
	for (int64_t i = 0; x && i < s->n; i++) x[i] = s->target[s->row[i]], x[s->n + i] = s->prediction[s->row[i]];
	return x ? nr_pearson(s->n, x, x + s->n) : (double)NAN;
}

static void add_scatter(struct nr_str *s, const char *name, int arm, const struct said *v, struct nr_arena *arena)
{
	const int64_t n = v->n < MOST_POINTS ? v->n : MOST_POINTS;
	double *at = nr_arena_alloc(arena, (size_t)(2 * n + 1) * sizeof *at);
	int32_t *group = nr_arena_alloc(arena, (size_t)(n + 1) * sizeof *group);
	char error[64], by[64];
	for (int64_t i = 0; at && group && i < n; i++) {                         /* evenly from the whole list */
		const int64_t row = v->row[i * v->n / n];
		at[2 * i] = v->target[row], at[2 * i + 1] = v->prediction[row], group[i] = arm;
	}
	const char *title = nr_arena_printf(arena, "Prediction against target: %s", name);
	const char *caption = nr_arena_printf(arena,
		"%lld molecule%s%s; mean absolute error of the best weights %s, correlation %s. Predictions on the "
		"line are exact.",
		(long long)v->n, v->n == 1 ? "" : "s", n < v->n ? nr_arena_printf(arena, ", %lld of them drawn", (long long)n) : "",
		nr_short_text(mean_error(v), error, sizeof error), nr_short_text(correlation(v, arena), by, sizeof by));
	if (!at || !group || !title || !caption) {
		s->failed = true;
		return;
	}
	nr_html_figure_open(s, "map", title, caption);
	nr_svg_scatter(s, &(struct nr_scatter){ .name = title, .x_label = "target", .y_label = "prediction", .n = n, .at = at,
		.group = group,
		.groups = arm + 1, .diagonal = true });
	nr_html_figure_close(s);
}

struct pair { double score; bool yes; };

static int falling(const void *a, const void *b)
{
	const double x = ((const struct pair *)a)->score, y = ((const struct pair *)b)->score;
	return (x < y) - (x > y);
}

/* The share of "yes" that is found against the share of "no" that is taken for one; equal scores are one step. */
static bool roc(struct nr_series *line, const struct said *v, struct nr_arena *arena)
{
	struct pair *pair = nr_arena_alloc(arena, (size_t)(v->n + 1) * sizeof *pair);
	double *x = nr_arena_alloc(arena, (size_t)(v->n + 2) * sizeof *x), *y = nr_arena_alloc(arena, (size_t)(v->n + 2) * sizeof *y);
	double yes = 0, no = 0, found = 0, wrong = 0;
	if (!pair || !x || !y) return false;
	for (int64_t i = 0; i < v->n; i++) {
		pair[i] = (struct pair){ v->prediction[v->row[i]], v->target[v->row[i]] > 0 };
		*(pair[i].yes ? &yes : &no) += 1;
	}
	qsort(pair, (size_t)v->n, sizeof *pair, falling);
	line->x = x, line->y = y, line->n = yes > 0 && no > 0;
	for (int64_t i = 0; i < v->n && yes > 0 && no > 0; i++) {
		*(pair[i].yes ? &found : &wrong) += 1;
		if (i + 1 < v->n && pair[i + 1].score >= pair[i].score) continue;
		x[line->n] = wrong / no, y[line->n++] = found / yes;
	}
	return true;
}

static void add_roc(struct nr_str *s, const struct nr_arms *a, const struct said *v, struct nr_arena *arena)
{
	struct nr_series *line = nr_arena_alloc(arena, (size_t)(a->count + 1) * sizeof *line);
	if (!line) s->failed = true;
	for (int i = 0; i < a->count && !s->failed; i++) {
		line[i] = (struct nr_series){ .label = a->arm[i].label, .arm = i, .weight = NR_BOLD };
		if (v[i].n && v[i].answers && !roc(&line[i], &v[i], arena)) s->failed = true;
	}
	nr_html_figure_open(s, "dots", "ROC curve: found against false alarms",
		"The share of positive molecules found, against the share of negative ones taken for positive. The "
		"diagonal from 0 to 1 would be chance.");
	if (line) nr_svg_chart(s, &(struct nr_chart){ .name = "ROC curve", .x_label = "negatives taken for positive",
		.y_label = "positives found",
		.series = line, .count = a->count });
	nr_html_figure_close(s);
}

/* ---- some of them ------------------------------------------------------------------------------------------------------- */

/* What is looked for: target -1 any, else that answer; sign 1: the largest value of `by` first. */
struct group { const char *title; double target, sign; bool by_error; };
static const struct group of_values[] = { { "predicted best", -1, -1, true }, { "predicted worst", -1, 1, true }, { NULL, 0, 0, false } };
static const struct group of_answers[] = { { "found: positive, predicted positive", 1, 1, false }, { "missed: positive, "
	"predicted negative",
	1, -1, false },
	{ "false alarms: negative, predicted positive", 0, 1, false }, { NULL, 0, 0, false } };

/* The rows that lead in a group, at most SHOWN; ties by their place in the file. */
static int leaders(const struct said *v, const struct group *g, int64_t *out)
{
	double best[SHOWN];
	int n = 0;
	for (int64_t i = 0; i < v->n; i++) {
		const int64_t row = v->row[i];
		if (g->target >= 0 && v->target[row] != g->target) continue;
		const double value = g->sign * (g->by_error ? fabs(v->prediction[row] - v->target[row]) : v->prediction[row]);
		int at = n < SHOWN ? n : SHOWN;
		while (at && best[at - 1] < value) at--;
		if (at == SHOWN) continue;
		if (n < SHOWN) n++;
		for (int k = n - 1; k > at; k--) best[k] = best[k - 1], out[k] = out[k - 1];
		best[at] = value, out[at] = row;
	}
	return n;
}

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* What another arm says of the same molecule; NAN: nothing. Its number alone may be that of another one in another set. */
static double also(const struct said *v, const struct said *of, int64_t row)
{
	for (int64_t i = 0; i < v->n && !strcmp(v->split, of->split); i++) {
		const int64_t k = v->row[i];
		if (v->graph[k] == of->graph[row] && v->target[k] == of->target[row] && same_text(v->smiles[k], of->smiles[row]))
			return v->prediction[k];
	}
	return NAN;
}

static void add_formula(struct nr_str *s, const char *smiles, struct nr_arena *arena)
{
	struct nr_error why = { 0 };
	struct nr_size drawn;
	if (smiles && *smiles && !nr_depict(s, smiles, strlen(smiles), NULL, (struct nr_size){ 240, 150 }, &drawn, arena, &why))
		nr_html_element(s, "small", "plan", smiles);
	else nr_html_text(s, smiles && *smiles ? smiles : "(no SMILES)");
}

static void add_number(struct nr_html_table *t, const char *class_, double v)
{
	char text[64];
	nr_html_cell(t, class_, isfinite(v) ? nr_short_text(v, text, sizeof text) : "–");
}

static void add_table(struct nr_str *s, const struct nr_arms *a, const struct said *v, int arm, const struct group *group,
	struct nr_arena *arena)
{
	struct nr_html_table t = { .s = s };
	const bool others = a->count > 1 && a->count <= MOST_ARMS;
	nr_html_table_open(&t, "molecules");
	nr_html_head(&t, NULL, "molecule");
	nr_html_head(&t, "number", "target");
	nr_html_head(&t, "number", others ? nr_arena_printf(arena, "%s says", a->arm[arm].letter) : "prediction");
	nr_html_head(&t, "number", "off by");
	for (int i = 0; i < a->count && others; i++)
		if (i != arm) nr_html_head(&t, "number", nr_arena_printf(arena, "%s says", a->arm[i].letter));
	for (const struct group *g = group; g->title; g++) {
		int64_t row[SHOWN];
		const int n = leaders(&v[arm], g, row);
		for (int k = 0; k < n; k++) {
			const double target = v[arm].target[row[k]], said = v[arm].prediction[row[k]];
			nr_html_row(&t);
			nr_html_cell_open(&t, "molecule");
			if (!k) nr_html_element(s, "b", NULL, g->title);
			add_formula(s, v[arm].smiles[row[k]], arena);
			add_number(&t, "number", target);
			add_number(&t, "number said", said);
			add_number(&t, "number", fabs(said - target));
			for (int i = 0; i < a->count && others; i++)
				if (i != arm) add_number(&t, "number", also(&v[i], &v[arm], row[k]));
		}
	}
	nr_html_table_close(&t);
}

/* ---- the section -------------------------------------------------------------------------------------------------------- */

/* What all arms have in common, or not. */
struct common {
	int arms, answers;                      /* that say something; of them, with targets of yes or no */
	const char *split;                      /* NULL: they differ */
	bool probable;                          /* what is said to yes or no lies between 0 and 1 */
	int64_t tasks, rows, known;             /* tasks 0, known 0: they differ */
};

/* Which of how many tasks is shown; "" if there is one only. */
static const char *task_words(int64_t tasks, struct nr_arena *arena)
{
	const char *text = tasks > 1 ? nr_arena_printf(arena, "task 1 of %lld", (long long)tasks) : "";
	return text ? text : "";
}

/* What is left out, if anything. */
static void add_cut(struct nr_str *s, const char *split, int64_t rows, int64_t known)
{
	if (rows >= known) return;
	nr_html_printf(s, " The file of predictions is truncated: it has the first %lld of the %lld known targets of "
		"the %s split, all tasks together, and the numbers and molecules here cover only these.",
		(long long)rows, (long long)known, split);
}

static struct common common_of(const struct said *v, int arms)
{
	struct common c = { .probable = true };
	for (int i = 0; i < arms; i++) {
		if (!v[i].n) continue;
		const bool first = !c.arms;
		c.split = first || (c.split && !strcmp(c.split, v[i].split)) ? v[i].split : NULL;
		c.tasks = first || c.tasks == v[i].tasks ? v[i].tasks : 0;
		c.known = first || (c.split && c.known == v[i].known && c.rows == v[i].rows) ? v[i].known : 0;
		c.rows = v[i].rows;
		c.arms++;
		c.answers += v[i].answers;
		for (int64_t k = 0; k < v[i].n && v[i].answers; k++) {
			const double said = v[i].prediction[v[i].row[k]];
			c.probable &= said >= 0 && said <= 1;
		}
	}
	return c;
}

static void add_words(struct nr_str *s, const struct common *c, struct nr_arena *arena)
{
	const char *are = c->probable ? "probabilities" : "scores";
	nr_str_add(s, "Predictions by the best weights of each arm&#39;s first run for ");
	if (c->split) nr_html_printf(s, "the %s split", c->split);
	else nr_str_add(s, "its test split, or for val if there is none");
	nr_str_add(s, ", beside the known targets. ");
	if (c->answers == c->arms) nr_html_printf(s, "Predictions are %s.", are);
	else if (!c->answers) nr_html_text(s, "Numbers are in the target's own units.");
	else nr_html_printf(s, "Where targets are yes or no, predictions are %s; other numbers are in the target's own units.", are);
	if (c->tasks > 1) nr_html_printf(s, " The page shows %s.", task_words(c->tasks, arena));
	else if (!c->tasks) nr_str_add(s, " The page shows the first task of each.");
	if (c->known) add_cut(s, c->split, c->rows, c->known);
}

/* What an arm does not have in common with the others stands at its own molecules. */
static void add_arm(struct nr_str *s, const struct nr_arms *a, const struct said *v, int arm, const struct common *c,
	struct nr_arena *arena)
{
	const char *name = a->arm[arm].name, *task = task_words(v[arm].tasks, arena);
	if (a->count > 1) name = nr_arena_printf(arena, "%s: %s", a->arm[arm].letter, name);
	if (name && !c->split) name = nr_arena_printf(arena, "%s, %s split", name, v[arm].split);
	if (name && !c->tasks && *task) name = nr_arena_printf(arena, "%s, %s", name, task);
	nr_html_element(s, "h3", NULL, name);
	if (!c->known && v[arm].rows < v[arm].known) {
		nr_str_add(s, "<p>");
		add_cut(s, v[arm].split, v[arm].rows, v[arm].known);
		nr_str_add(s, "</p>\n");
	}
	add_table(s, a, v, arm, v[arm].answers ? of_answers : of_values, arena);
}

void nr_section_molecules(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	struct said *v = nr_arena_alloc(arena, (size_t)(a->count + 1) * sizeof *v);
	if (!v) s->failed = true;
	for (int i = 0; i < a->count && v; i++) v[i] = said_of(a, i, arena);
	const struct common c = v ? common_of(v, a->count) : (struct common){ 0 };
	if (!c.arms) return;
	nr_str_add(s, "<section id=\"molecules\"><h2>Molecules</h2>\n<p>");
	add_words(s, &c, arena);
	nr_str_add(s, "</p>\n");
	nr_legend(s, a);
	if (c.answers) {
		nr_str_add(s, "<div class=\"charts\">\n");
		add_roc(s, a, v, arena);
		nr_str_add(s, "</div>\n");
	}
	if (c.answers < c.arms) nr_str_add(s, "<div class=\"maps\">\n");
	for (int i = 0; i < a->count; i++)
		if (v[i].n && !v[i].answers) add_scatter(s, a->arm[i].name, i, &v[i], arena);
	if (c.answers < c.arms) nr_str_add(s, "</div>\n");
	for (int i = 0; i < a->count; i++)
		if (v[i].n) add_arm(s, a, v, i, &c, arena);
	nr_str_add(s, "</section>\n");
}
