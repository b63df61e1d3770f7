/* What came of norma vtab: see vtab.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "vtab.h"

static const struct vtab_score *score_of(const struct vtab_all *all, int64_t checkpoint, int64_t entry)
{
	return &all->score[checkpoint * all->entries + entry];
}

/* Part of the benchmark's means: a task of it, whole. */
static bool counts(const struct vtab_entry *e) { return e->task && !e->missing && !e->origin.partial; }

struct nr_sample vtab_group(const struct vtab_all *all, int64_t checkpoint, enum nr_vtab_group group, int64_t *n)
{
	double mean[VTAB_SEEDS] = { 0 };
	*n = 0;
	for (int64_t i = 0; i < all->entries; i++) {
		const struct vtab_entry *e = &all->entry[i];
		if (!counts(e) || (group != NR_VTAB_GROUPS && e->task->group != group)) continue;
		for (int64_t s = 0; s < all->seeds; s++) mean[s] += score_of(all, checkpoint, i)->test[s];
		++*n;
	}
	for (int64_t s = 0; *n && s < all->seeds; s++) mean[s] /= (double)*n;
	return nr_sample(mean, *n ? all->seeds : 0);
}

static void sample_cell(struct nr_table *t, const struct nr_sample *s)
{
	if (isnan(s->mean) || !s->n) nr_table_cell(t, "%s", "");
	else if (isnan(s->half)) nr_table_cell(t, "%.2f", 100 * s->mean);
	else nr_table_cell(t, "%.2f ± %.2f", 100 * s->mean, 100 * s->half);
}

/* A row of values, one for each checkpoint, and its difference from the first, paired by seed. */
static void add_entry(const struct vtab_all *all, struct nr_table *t, int64_t i)
{
	const struct vtab_entry *e = &all->entry[i];
	nr_table_cell(t, "%s", e->task ? nr_vtab_group_name(e->task->group) : "extra");
	nr_table_cell(t, "%s%s", e->id, e->task && e->origin.partial ? " (partial)" : "");
	nr_table_cell(t, "%lld", (long long)e->test);
	for (int64_t k = 0; k < all->checkpoints; k++) {
		const struct vtab_score *s = score_of(all, k, i);
		sample_cell(t, &s->sample);
		nr_table_cell(t, "%g", all->rate[s->rate]);
	}
	for (int64_t k = 1; k < all->checkpoints; k++) {
		double apart[VTAB_SEEDS];
		for (int64_t s = 0; s < all->seeds; s++) apart[s] = score_of(all, k, i)->test[s] - score_of(all, 0, i)->test[s];
		const struct nr_sample d = nr_sample(apart, all->seeds);
		sample_cell(t, &d);
	}
}

static void add_group(const struct vtab_all *all, struct nr_table *t, enum nr_vtab_group g)
{
	int64_t n = 0;
	vtab_group(all, 0, g, &n);
	if (!n) return;
	nr_table_cell(t, "%s", g == NR_VTAB_GROUPS ? "all" : nr_vtab_group_name(g));
	nr_table_cell(t, "mean of %lld", (long long)n);
	nr_table_cell(t, "%s", "");
	for (int64_t k = 0; k < all->checkpoints; k++) {
		const struct nr_sample s = vtab_group(all, k, g, &n);
		sample_cell(t, &s);
		nr_table_cell(t, "%s", "");
	}
	for (int64_t k = 1; k < all->checkpoints; k++) nr_table_cell(t, "%s", "");
}

void vtab_table(const struct vtab_all *all, bool markdown, struct nr_str *text)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "group", NR_LEFT);
	nr_table_column(t, "task", NR_LEFT);
	nr_table_column(t, "test", NR_RIGHT);
	for (int64_t k = 0; k < all->checkpoints; k++) {
		nr_table_column(t, all->name[k], NR_RIGHT);
		nr_table_column(t, "lr", NR_RIGHT);
	}
	for (int64_t k = 1; k < all->checkpoints; k++) nr_table_column(t, "difference", NR_RIGHT);
	for (int64_t i = 0; i < all->entries; i++)
		if (!all->entry[i].missing) add_entry(all, t, i);
	for (int g = 0; g <= NR_VTAB_GROUPS; g++) add_group(all, t, (enum nr_vtab_group)g);
	if (markdown) nr_table_markdown(t, text);
	else nr_table_text(t, text);
	nr_table_free(t);
	nr_str_printf(text, "\nTest accuracy in %%, mean over %lld seeds ± half width of the 95 %% t interval; lr: chosen by the mean "
			    "validation accuracy. Means are over whole tasks; partial and extra ones are left out. Pixels: %s.\n",
		(long long)all->seeds,
		strcmp(all->pixels, "half") ? "ImageNet's mean and standard deviation" : "from -1 to 1");
	nr_str_add(text, "Missing:");
	int64_t missing = 0;
	for (int64_t i = 0; i < all->entries; i++)
		if (all->entry[i].missing) nr_str_printf(text, "%s %s", missing++ ? "," : "", all->entry[i].id);
	nr_str_add(text, missing ? ". `norma vtab --list` says where to get them.\n" : " nothing.\n");
}

static json_t *sample_json(const struct nr_sample *s)
{
	json_t *o = json_pack("{s:f, s:I}", "mean", s->mean, "n", (json_int_t)s->n);
	if (!isnan(s->half)) json_object_set_new(o, "half", json_real(s->half));
	return o;
}

static json_t *entry_json(const struct vtab_all *all, int64_t k, int64_t i)
{
	const struct vtab_entry *e = &all->entry[i];
	const struct vtab_score *s = score_of(all, k, i);
	json_t *seeds = json_array(), *o = sample_json(&s->sample);
	for (int64_t n = 0; n < all->seeds; n++) json_array_append_new(seeds, json_real(s->test[n]));
	json_object_set_new(o, "seeds", seeds);
	json_object_set_new(o, "val", json_real(s->val));
	json_object_set_new(o, "lr", json_real(all->rate[s->rate]));
	json_object_set_new(o, "samples", json_integer((json_int_t)e->test));
	json_object_set_new(o, "partial", json_boolean(e->origin.partial));
	json_object_set_new(o, "published_split", json_boolean(e->origin.published));
	return o;
}

json_t *vtab_json(const struct vtab_all *all)
{
	json_t *checkpoints = json_array(), *missing = json_array();
	for (int64_t k = 0; k < all->checkpoints; k++) {
		json_t *tasks = json_object(), *groups = json_object();
		for (int64_t i = 0; i < all->entries; i++)
			if (!all->entry[i].missing) json_object_set_new(tasks, all->entry[i].id, entry_json(all, k, i));
		for (int g = 0; g <= NR_VTAB_GROUPS; g++) {
			int64_t n;
			const struct nr_sample s = vtab_group(all, k, (enum nr_vtab_group)g, &n);
			if (!n) continue;
			json_t *o = sample_json(&s);
			json_object_set_new(o, "tasks", json_integer((json_int_t)n));
			json_object_set_new(groups, g == NR_VTAB_GROUPS ? "all" : nr_vtab_group_name((enum nr_vtab_group)g), o);
		}
		json_array_append_new(checkpoints, json_pack("{s:s, s:s, s:o, s:o}", "file", all->checkpoint[k], "name", all->name[k],
			"groups", groups, "tasks", tasks));
	}
	for (int64_t i = 0; i < all->entries; i++)
		if (all->entry[i].missing) json_array_append_new(missing, json_string(all->entry[i].id));
	json_t *o = json_pack("{s:s, s:o, s:o}", "pixels", all->pixels, "checkpoints", checkpoints, "missing", missing);
	if (all->checkpoints == 1) {            /* as a stage of a study: vtab.groups.natural.mean */
		json_object_set(o, "groups", json_object_get(json_array_get(checkpoints, 0), "groups"));
		json_object_set(o, "tasks", json_object_get(json_array_get(checkpoints, 0), "tasks"));
	}
	return o;
}
