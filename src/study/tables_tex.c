/* The table of a study for a paper: LaTeX with booktabs alone, few columns, short headers, numbers in math. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/cells.h"

static const char few[] = "metric published difference p";

static const struct { const char *key, *header; } headers[] = { { "arm", "Arm" }, { "n", "$n$" }, { "published", "paper" },
	{ "difference", "$\\Delta$" }, { "p", "$p$" }, { "wilcoxon", "$p_W$" }, { "needed", "needed" }, { "decision", "decision" },
	{ "time", "time" }, { "flops", NULL } };

/* The ends of metrics' names, and what a narrow column says. */
static const struct { const char *end, *header; } metrics[] = { { "cls.top1", "[CLS] top-1" }, { "mean.top1", "mean top-1" },
	{ "cls.uniformity", "[CLS] unif." }, { "mean.uniformity", "mean unif." }, { "cls.effective_rank", "[CLS] rank" },
	{ "mean.effective_rank", "mean rank" }, { "top1", "top-1" }, { "top5", "top-5" }, { "ece", "ECE" }, { "auc", "AUC" },
	{ "mae", "MAE" }, { "rmse", "RMSE" }, { "uniformity_cls", "[CLS] unif." }, { "rank_cls", "[CLS] rank" } };

static void add_tex(struct nr_str *s, const char *text)
{
	for (; *text; text++) {
		if (!strncmp(text, "±", 2)) nr_str_add(s, "$\\pm$"), text++;
		else if (!strncmp(text, "Δ", 2)) nr_str_add(s, "$\\Delta$"), text++;
		else if (strchr("&%$#_{}", *text)) nr_str_printf(s, "\\%c", *text);
		else if (*text == '\\') nr_str_add(s, "\\textbackslash{}");
		else if (*text == '~') nr_str_add(s, "\\textasciitilde{}");
		else if (*text == '^') nr_str_add(s, "\\textasciicircum{}");
		else if (*text == '<' || *text == '>') nr_str_printf(s, "$%c$", *text);
		else nr_str_add_n(s, text, 1);
	}
}

/* A number with its sign and what it may be: "-0.12 ± 0.03", "< 0.0001". */
static bool is_number(const char *text)
{
	bool digit = false;
	for (; *text; text++) {
		if (!strncmp(text, "±", 2)) text++;
		else if (!strchr("0123456789.+-<> ", *text)) return false;
		else digit |= isdigit((unsigned char)*text) != 0;
	}
	return digit;
}

static void add_cell(struct nr_str *s, const char *text)
{
	if (!strcmp(text, "-")) {
		nr_str_add(s, "--");
	} else if (is_number(text)) {
		nr_str_add(s, "$");
		for (; *text; text++) {
			if (!strncmp(text, "±", 2)) nr_str_add(s, "\\pm"), text++;
			else nr_str_add_n(s, text, 1);
		}
		nr_str_add(s, "$");
	} else {
		add_tex(s, text);
	}
}

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

static void add_metric_header(struct nr_str *s, const char *metric)
{
	const char *name = strrchr(metric, '.') ? strrchr(metric, '.') + 1 : metric;
	size_t i = 0;
	while (i < sizeof metrics / sizeof *metrics && !ends_with(metric, metrics[i].end)) i++;
	if (i < sizeof metrics / sizeof *metrics) nr_str_add(s, metrics[i].header);
	else if (!strncmp(name, "eval_", 5)) name += 5;
	for (; i == sizeof metrics / sizeof *metrics && *name; name++) {
		if (*name == '_') nr_str_add(s, " ");
		else nr_str_add_n(s, name, 1);
	}
	if (nr_metric_scale(metric) > 1) nr_str_add(s, " (\\%)");
}

static void add_header(struct nr_str *s, const struct nr_summary *m, const struct nr_study_cells *c, int64_t column)
{
	const char *key = c->key[column];
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		if (strcmp(key, headers[i].key) != 0) continue;
		if (headers[i].header) nr_str_add(s, headers[i].header);
		else add_tex(s, nr_cell_at(c, 0, column));
		return;
	}
	add_metric_header(s, !strcmp(key, "metric") ? m->metric[0] : key);
}

/* ---- which columns ------------------------------------------------------------------------------------------------------ */

/* Whether a word stands in a list that is separated by spaces or commas. */
static bool is_listed(const char *list, const char *word)
{
	const size_t n = strlen(word);
	for (const char *p = list; *p; p += strcspn(p, " ,"), p += strspn(p, " ,"))
		if (strcspn(p, " ,") == n && !strncmp(p, word, n)) return true;
	return false;
}

static bool is_column(const struct nr_study *s, const char *word, size_t n)
{
	const size_t fixed = sizeof headers / sizeof *headers;
	for (size_t i = 0; i < fixed; i++)
		if (strlen(headers[i].key) == n && !strncmp(headers[i].key, word, n)) return true;
	for (int64_t i = 0; i < s->also.count; i++)
		if (strlen(s->also.item[i]) == n && !strncmp(s->also.item[i], word, n)) return true;
	return (n == 6 && !strncmp(word, "metric", n)) || (n == 3 && !strncmp(word, "all", n)) ||
		(s->metric && strlen(s->metric) == n && !strncmp(s->metric, word, n));
}

int nr_tex_columns_check(const struct nr_study *s, const char *columns, struct nr_error *err)
{
	for (const char *p = columns + strspn(columns, " ,"); *p; p += strcspn(p, " ,"), p += strspn(p, " ,")) {
		const size_t n = strcspn(p, " ,");
		if (is_column(s, p, n)) continue;
		char word[128];
		snprintf(word, sizeof word, "%.*s", (int)n, p);
		nr_fail(err, NR_ENAME, "unknown column", word, NULL);
		return nr_hint(err, "n, metric, published, difference, p, wilcoxon, needed, decision, time, flops, "
			"a metric of `also:`, or all");
	}
	return NR_OK;
}

void nr_summary_latex(const struct nr_summary *m, struct nr_str *s)
{
	const char *asked = m->study->columns && *m->study->columns ? m->study->columns : few;
	struct nr_study_cells c;
	if (!nr_cells_make(&c, m)) {
		s->failed = true;
		return;
	}
	int64_t taken = 0, *column = calloc((size_t)c.columns, sizeof *column);
	const char *of = m->metric[0];
	for (int64_t k = 0; column && k < c.columns; k++) {
		const bool published = !strcmp(c.key[k], "published");
		if (!published && strchr(c.key[k], '.')) of = c.key[k];
		const bool main = of == m->metric[0], all = is_listed(asked, "all");
		const bool wanted = !k || all || is_listed(asked, c.key[k]) || (k == 2 && is_listed(asked, of));
		if (wanted && (!published || main || all || is_listed(asked, of))) column[taken++] = k;
	}
	nr_str_add(s, "% \\usepackage{booktabs}; chosen by norma study --columns\n\\begin{tabular}{@{}l");
	nr_str_fill(s, 'r', taken > 0 ? (size_t)taken - 1 : 0);
	nr_str_add(s, "@{}}\n\\toprule\n");
	for (int64_t i = 0; i < c.rows && column; i++) {
		for (int64_t k = 0; k < taken; k++) {
			if (k) nr_str_add(s, " & ");
			if (i) add_cell(s, nr_cell_at(&c, i, column[k]));
			else add_header(s, m, &c, column[k]);
		}
		nr_str_add(s, i ? " \\\\\n" : " \\\\\n\\midrule\n");
	}
	nr_str_add(s, "\\bottomrule\n\\end{tabular}\n");
	struct nr_str words = { 0 };
	nr_summary_legend(m, &words, "% ");
	nr_str_add(s, nr_str_text(&words));
	s->failed |= words.failed || !column;
	nr_str_release(&words);
	free(column);
	nr_cells_release(&c);
}
