/* Which tasks of VTAB are there: see vtab.h. */
#include "vtab.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "lists.h"

static int add(struct cli *c, struct vtab_all *all, const struct nr_vtab_task *task, const char *id, const char *data, const char *root)
{
	struct nr_error err = { 0 };
	struct nr_source *s = NULL;
	char line[1200];
	if (all->entries == VTAB_TASKS) return cli_usage(c, "more than %d tasks", (int)VTAB_TASKS);
	struct vtab_entry *e = &all->entry[all->entries++];
	*e = (struct vtab_entry){ .task = task, .id = id, .data = data };
	if (!id || !data) return nr_fail(c->err, NR_EMEMORY, "cannot look for", "VTAB", "out of memory");
	if (nr_source_open(&s, data, root, &err)) {
		e->missing = nr_arena_strdup(c->arena, nr_error_text(&err, line, sizeof line));
		return e->missing ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot look for", id, "out of memory");
	}
	e->train = s->count[NR_TRAIN], e->val = s->count[NR_VAL], e->test = s->count[NR_TEST];
	e->classes = s->classes;
	e->origin = nr_vtab_origin(s);
	nr_source_close(s);
	return NR_OK;
}

static bool named(const char *list, const char *id)
{
	char word[CLI_WORD];
	while (cli_list_word(&list, word))
		if (!strcmp(word, id)) return true;
	return false;
}

/* A name that is no task is an error with the nearest. */
static int check_names(struct cli *c, const char *list)
{
	char word[CLI_WORD];
	while (cli_list_word(&list, word)) {
		struct nr_near near = { .word = word };
		bool known = false;
		for (const struct nr_vtab_task *t = nr_vtab_tasks; t->id; t++) {
			known |= !strcmp(t->id, word);
			nr_near_try(&near, t->id);
		}
		if (known) continue;
		cli_usage(c, "--tasks: there is no task '%s'", word);
		return near.best ? nr_hint(c->err, "did you mean '%s'?", near.best) : nr_hint(c->err, "`norma vtab --list` lists them");
	}
	return NR_OK;
}

int vtab_find(struct cli *c, struct vtab_all *all, const char *tasks, const struct nr_list *extra, const char *pixels, const char *root)
{
	all->pixels = pixels;
	if (tasks && *tasks && check_names(c, tasks)) return c->err->code;
	for (const struct nr_vtab_task *t = nr_vtab_tasks; t->id; t++)
		if ((!tasks || !*tasks || named(tasks, t->id)) &&
			add(c, all, t, t->id, nr_arena_printf(c->arena, "vtab:task=%s,pixels=%s", t->id, pixels), root))
			return c->err->code;
	for (int64_t i = 0; i < extra->count; i++) {
		if (strchr(extra->item[i], ',')) {
			cli_usage(c, "--extra '%s': options after the first are not passed on", extra->item[i]);
			return nr_hint(c->err, "name the folder alone: --extra folder:path=DIR");
		}
		if (add(c, all, NULL, extra->item[i], nr_arena_printf(c->arena, "vtab:of=%s,pixels=%s", extra->item[i], pixels), root))
			return c->err->code;
		const struct vtab_entry *e = &all->entry[all->entries - 1];
		if (e->missing) return nr_fail(c->err, NR_EIO, "cannot use", e->id, "%s", e->missing);
	}
	return NR_OK;
}

static const char *state_of(const struct vtab_entry *e)
{
	if (e->missing) return "missing";
	return e->origin.partial ? "partial" : e->origin.published ? "published split" : "drawn here";
}

void vtab_print_there(const struct vtab_all *all)
{
	static const char *const titles[] = { "group", "task", "classes", "train", "val", "test", "files" };
	struct nr_table *t = nr_table_make();
	int64_t there = 0, tasks = 0;
	for (int i = 0; i < 7; i++) nr_table_column(t, titles[i], i < 2 || i == 6 ? NR_LEFT : NR_RIGHT);
	for (int64_t i = 0; i < all->entries; i++) {
		const struct vtab_entry *e = &all->entry[i];
		tasks += e->task != NULL, there += e->task && !e->missing;
		nr_table_cell(t, "%s", e->task ? nr_vtab_group_name(e->task->group) : "extra");
		nr_table_cell(t, "%s", e->id);
		nr_table_cell(t, "%d", e->missing && e->task ? e->task->classes : e->classes);
		if (e->missing) {
			for (int k = 0; k < 3; k++) nr_table_cell(t, "%s", "");
			nr_table_cell(t, "missing: https://www.tensorflow.org/datasets/catalog/%s", e->task ? e->task->page : "");
			continue;
		}
		nr_table_cell(t, "%lld", (long long)e->train);
		nr_table_cell(t, "%lld", (long long)e->val);
		nr_table_cell(t, "%lld", (long long)e->test);
		nr_table_cell(t, "%s", state_of(e));
	}
	cli_print_table(t);
	printf("\n%lld of %lld tasks are there. Below the data root, files are found as vtab-1k/NAME/train800.txt, val200.txt and\n"
	       "test.txt (the published splits), as folders of classes vtab/TASK/train/CLASS/ and test/CLASS/, or as a data set of\n"
	       "`norma data list`.\n",
		(long long)there, (long long)tasks);
}
