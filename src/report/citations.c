/* Citations: see citations.h. */
#include "report/citations.h"

#include <string.h>

#include "draw/html.h"
#include "norma/data.h"
#include "norma/model.h"
#include "norma/norm.h"
#include "norma/task.h"
#include "norma/version.h"

/* Where norms sit, and how residuals are scaled, are words of a plan too. */
static const char *const further[][3] = {
	{ "dual", "Dual PatchNorm", "arXiv:2302.01327" },
	{ "normformer", "NormFormer", "arXiv:2110.09456" },
	{ "subln", "Sub-LN", "arXiv:2210.06423" },
	{ "sandwich", "sandwich norm", "arXiv:2105.13290" },
	{ "respost", "res-post-norm", "arXiv:2111.09883" },
	{ "layerscale", "LayerScale", "arXiv:2103.17239" },
	{ "rezero", "ReZero", "arXiv:2003.04887" },
	{ "deepnorm", "DeepNorm", "arXiv:2203.00555" },
};

/* Whether a text names this as a whole word that begins a norm: at the start, or after a space, '=', '(' or ','. */
static bool names(const char *text, const char *word)
{
	const size_t n = word ? strlen(word) : 0;
	for (const char *p = text; n && p && (p = strstr(p, word)); p++) {
		const bool begins = p == text || strchr(" =(,", p[-1]), ends = !p[n] || strchr(" ,():", p[n]);
		if (begins && ends) return true;
	}
	return false;
}

static bool any_run(const struct nr_arms *const *arms, int count, bool (*test)(const struct nr_runfolder *, const void *), const void *what)
{
	for (int k = 0; k < count; k++)
		for (int i = 0; i < arms[k]->runs; i++)
			if (test(&arms[k]->run[i], what)) return true;
	return false;
}

static const char *either(const struct nr_runfolder *r, const char *key)
{
	const char *text = nr_runfolder_env(r, key);
	return text ? text : nr_config_find(&r->settings, key);
}

static bool has_word(const struct nr_runfolder *r, const char *word)
{
	static const char *const keys[] = { "norms", "norm", "placement", "patch_norm", "residual", NULL };
	for (int i = 0; keys[i]; i++)
		if (names(either(r, keys[i]), word)) return true;
	return false;
}

static bool uses_word(const struct nr_runfolder *r, const void *word) { return has_word(r, word); }

static bool uses_norm(const struct nr_runfolder *r, const void *norm)
{
	const struct nr_norm *v = norm;
	return has_word(r, v->name) || has_word(r, v->alias);
}

/* "vit:image=28,..." begins with a family, or a preset whose long form env.json has. */
static bool is_named(const char *text, const char *name)
{
	const size_t n = strlen(name);
	return text && !strncmp(text, name, n) && (!text[n] || text[n] == ':');
}

static bool uses_model(const struct nr_runfolder *r, const void *model)
{
	return is_named(either(r, "model"), ((const struct nr_model *)model)->name);
}
static bool uses_data(const struct nr_runfolder *r, const void *data)
{
	return is_named(either(r, "data"), ((const struct nr_dataset *)data)->name);
}

/* Records of earlier versions say what the run is called alone. */
static bool uses_task(const struct nr_runfolder *r, const void *task)
{
	const struct nr_task *t = task;
	const char *name = either(r, "task"), *kind = nr_runfolder_env(r, "kind");
	return name ? !strcmp(name, t->name) : kind && !strcmp(kind, t->command);
}

static bool is_measured(const struct nr_runfolder *r, const void *key)
{
	return json_object_get(r->analysis, key) != NULL;
}

static bool has_uniformity(const struct nr_runfolder *r, const void *unused)
{
	(void)unused;
	return nr_column_find(&r->metrics, "eval_uniformity_cls") || r->probe || r->analysis;
}

static void add(struct nr_str *s, const char *what, const char *title, const char *cite)
{
	if (!cite || !*cite) return;
	nr_html_printf(s, "%s%s: %s", what, title, cite);
	nr_str_add(s, "</li><li>");
}

void nr_citations(struct nr_str *s, const struct nr_arms *const *arms, int count)
{
	nr_str_add(s, "<section id=\"citations\"><h2>Citations</h2>\n<ul class=\"notes\"><li>");
	for (const struct nr_norm *const *n = nr_norms(); *n; n++)
		if (any_run(arms, count, uses_norm, *n)) add(s, "", (*n)->title, (*n)->cite);
	for (size_t i = 0; i < sizeof further / sizeof *further; i++)
		if (any_run(arms, count, uses_word, further[i][0])) add(s, "", further[i][1], further[i][2]);
	for (const struct nr_model *const *m = nr_models(); *m; m++)
		if (any_run(arms, count, uses_model, *m)) add(s, "model, ", (*m)->title, (*m)->cite);
	for (const struct nr_task *const *t = nr_tasks(); *t; t++)
		if (any_run(arms, count, uses_task, *t)) add(s, "objective, ", (*t)->title, (*t)->cite);
	for (const struct nr_dataset *const *d = nr_datasets(); *d; d++)
		if (any_run(arms, count, uses_data, *d)) add(s, "data, ", (*d)->name, (*d)->cite);
	if (any_run(arms, count, has_uniformity, NULL)) add(s, "measure, ", "uniformity", "arXiv:2005.10242");
	const struct nr_part_told *p;
	const char *part;
	for (int i = 0; (p = nr_part_told(i, &part)); i++)
		if (p->measure && any_run(arms, count, is_measured, part)) add(s, "measure, ", p->measure, p->cite);
	nr_html_printf(s,
		"software: The norma authors. norma: normalization in transformers, in plain C, version %s, Apache-2.0 (CITATION.cff).",
		NR_VERSION);
	nr_str_add(s, " Curves in this page are drawn by uPlot 1.6.32, MIT.</li></ul>\n</section>\n");
}
