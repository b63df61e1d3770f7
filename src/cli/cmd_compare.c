/* norma compare [RECIPE]: a study from flags. Options given several times are the arms. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/share.h"
#include "base/yaml.h"
#include "norma/task.h"
#include "study.h"
#include "study/settings.h"

enum { ROWS = 512, TASKS = 32 };
static const char *tasks[TASKS + 1] = { "train" };       /* commands that train, once table has filled it; the default first */

struct settings {
	struct nr_list given[ROWS];         /* of row i of the table; a flag of a bool stands in flag */
	bool flag[ROWS];
	char *out, *metric, *baseline, *title;
	struct nr_list also;
	int64_t seeds, parallel;
	int32_t task;
	struct cli_study how;
};

static const struct nr_option own[] = {
	NR_OPT_ENUM(struct settings, task, "train", tasks,
		"the command that the arms run; pretrain is followed by a probe"),
	NR_OPT_INT(struct settings, seeds, 3, 1, NR_STUDY_MAX_SEEDS, "runs of each arm, with seeds from 0"),
	NR_OPT_INT(struct settings, parallel, 1, 1, 64, "runs at once; they share the threads"),
	CLI_TEXT(struct settings, out, "", "DIR", "folder of the study; default runs/compare-..."),
	CLI_TEXT(struct settings, metric, "", "NAME", "STAGE.KEY of a result; default: the accuracy of the last stage"),
	NR_OPT_LIST(struct settings, also, "further metrics for the table"),
	CLI_TEXT(struct settings, baseline, "", "ARM", "the arm that others are compared with; default: the first"),
	CLI_TEXT(struct settings, title, "", "TEXT", "heading of the table"),
	CLI_STUDY_OPTIONS(struct settings, how),
	NR_OPT_END
};

static struct nr_option rows[ROWS + 1];

static bool has(const struct nr_option *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n && table[i].name; i++)
		if (!strcmp(table[i].name, name)) return true;
	return false;
}

/* A command's options, each as a list, so that it can be given several times. */
static size_t take(size_t n, const struct nr_option *from)
{
	for (; from && from->name && n < ROWS; from++) {
		if (nr_study_reserved(from->name) || has(rows, n, from->name) || has(own, ROWS, from->name)) continue;
		struct nr_option row = *from;
		row.letter = 0;
		if (row.type == NR_TBOOL) {
			row.offset = offsetof(struct settings, flag) + n * sizeof(bool);
			row.size = sizeof(bool);
		} else {
			row.type = NR_TLIST;
			row.offset = offsetof(struct settings, given) + n * sizeof(struct nr_list);
			row.size = sizeof(struct nr_list);
			row.text = "";
		}
		rows[n++] = row;
	}
	return n;
}

static const struct cli_command *command(const char *name)
{
	const struct cli_command *const *c = cli_commands;
	while (*c && strcmp((*c)->name, name)) c++;
	return *c;
}

static const struct nr_option *table(void)
{
	size_t n = 0;
	int count = 0;
	if (rows[0].name) return rows;
	for (const struct nr_task *const *task = nr_tasks(); *task && count < TASKS; task++) tasks[count++] = (*task)->command;
	tasks[count] = NULL;
	for (int i = 0; i <= count; i++) {
		const struct cli_command *c = command(tasks[i] ? tasks[i] : "probe");
		if (c) n = take(take(n, cli_table(c)), c->options);
	}
	return rows;
}

/* ---- from flags to a study ------------------------------------------------------------------------------------------------- */

static int add_stage(struct cli *c, struct nr_study *s, const char *name)
{
	struct nr_study_stage *stage = &s->stage[s->stages];
	const struct nr_study_command *k = s->commands;
	while (k->name && strcmp(k->name, name)) k++;
	if (!k->name) return nr_fail(c->err, NR_ENAME, "no such command", name, "this build does not have it");
	*stage = (struct nr_study_stage){ .name = k->name, .command = k, .from_stage = s->stages - 1,
		.from = s->stages ? s->stage[s->stages - 1].name : NULL, .trains = k->trains };
	s->stages++;
	return NR_OK;
}

/* A flag given once is every arm's; one given several times is a dimension of the grid. */
static int read_flags(struct cli *c, struct nr_study *s, const struct settings *v, struct nr_factor *axis, int64_t *axes)
{
	static const char *const words[] = { "false", "true" };
	bool standard[ROWS];
	for (int64_t i = 0; rows[i].name; i++) {
		struct nr_setting one = { .key = rows[i].name, .count = 1 };
		if (rows[i].type == NR_TBOOL) {
			standard[i] = rows[i].text && (!strcmp(rows[i].text, "1") || !strcmp(rows[i].text, "true"));
			one.value = &words[v->flag[i]];
			if (v->flag[i] != standard[i] && nr_settings_add(&s->base, &one, c->arena)) return NR_EMEMORY;
			continue;
		}
		const struct nr_list *given = &v->given[i];
		one.value = (const char *const *)given->item;
		if (given->count == 1 && nr_settings_add(&s->base, &one, c->arena)) return NR_EMEMORY;
		if (given->count < 2) continue;
		struct nr_factor *a = &axis[(*axes)++];
		*a = (struct nr_factor){ .item = nr_arena_alloc(c->arena, (size_t)given->count * sizeof *a->item),
			.name = nr_arena_alloc(c->arena, (size_t)given->count * sizeof *a->name), .count = given->count };
		if (!a->item || !a->name) return NR_EMEMORY;
		for (int64_t k = 0; k < given->count; k++) {
			a->item[k] = one;
			a->item[k].value = one.value + k;
		}
	}
	return NR_OK;
}

static bool is_given(const struct settings *v, const char *key)
{
	for (int64_t i = 0; rows[i].name; i++)
		if (!strcmp(rows[i].name, key)) return v->given[i].count > 0;
	return false;
}

static int take_task(struct cli *c, const char *path, const char *name, const char **task, struct nr_error *err)
{
	const struct nr_task *of = nr_task_find(name, err);
	if (!of || !strcmp(*task, of->command)) return of ? NR_OK : err->code;
	if (strcmp(*task, tasks[0]) != 0)
		return cli_usage(c, "the recipe '%s' has the task %s, which is for --task %s", path, name, of->command);
	*task = of->command;
	return NR_OK;
}

/* A recipe for all arms, below the flags. */
static int read_recipe(struct cli *c, struct nr_study *s, const struct settings *v, const char *name, const char **task)
{
	struct nr_yaml_errors errors = { 0 };
	struct nr_yaml_tree tree;
	size_t size;
	const char *path = nr_recipe_find(name, c->arena), *text = nr_yaml_load(path, &size, c->arena, c->err);
	if (!text || nr_yaml_tree(&tree, text, size, path, c->arena, &errors, c->err)) return c->err->code;
	if (nr_yaml_value(tree.root, "stages")) {
		cli_usage(c, "'%s' is a study, not a recipe", path);
		return nr_hint(c->err, "norma study %s", name);
	}
	for (int64_t i = 0; tree.root && tree.root->kind == NR_YAML_MAP && i < tree.root->count; i++) {
		const struct nr_yaml_node *key = tree.root->key[i], *item = tree.root->item[i];
		const bool list = item->kind == NR_YAML_LIST;
		struct nr_setting one = { .key = key->text, .count = list ? item->count : 1 };
		const char **value = nr_arena_alloc(c->arena, (size_t)(one.count + 1) * sizeof *value);
		if (!value) return nr_fail(c->err, NR_EMEMORY, "cannot read", path, "out of memory");
		for (int64_t k = 0; k < one.count; k++) value[k] = (list ? item->item[k] : item)->text;
		one.value = value;
		if (!strcmp(key->text, "task") && take_task(c, path, value[0], task, c->err)) return c->err->code;
		const bool ours = !strcmp(key->text, "task") || !strcmp(key->text, "plugins") || nr_study_reserved(key->text);
		if (ours || is_given(v, key->text)) continue;
		if (nr_settings_add(&s->base, &one, c->arena)) return nr_fail(c->err, NR_EMEMORY, "cannot read", path, "out of memory");
	}
	return NR_OK;
}

/* runs/compare-norm-fashion-mnist */
static const char *default_out(struct cli *c, const struct nr_study *s, const struct nr_factor *axis, int64_t axes)
{
	struct nr_str text = { 0 };
	nr_str_add(&text, "runs/compare");
	for (int64_t i = 0; i < axes; i++) nr_str_printf(&text, "-%s", axis[i].item[0].key);
	for (int64_t i = 0; i < s->base.count; i++)
		if (!strcmp(s->base.item[i].key, "data"))
			nr_str_printf(&text, "-%.*s", (int)strcspn(s->base.item[i].value[0], ":/ "), s->base.item[i].value[0]);
	const char *out = nr_str_keep(&text, c->arena);
	return out;
}

static int build(struct cli *c, struct nr_study *s, const struct settings *v, const char *recipe)
{
	struct nr_factor *axis = nr_arena_alloc(c->arena, ROWS * sizeof *axis);
	int64_t axes = 0;
	*s = (struct nr_study){ .arena = c->arena, .commands = cli_study_commands(c), .title = v->title, .question = "", .also = v->also,
		.metric = *v->metric ? v->metric : NULL, .baseline = *v->baseline ? v->baseline : NULL, .parallel = v->parallel,
		.stop.on = v->how.stop };
	s->stage = nr_arena_alloc(c->arena, 2 * sizeof *s->stage);
	s->seed = nr_arena_alloc(c->arena, (size_t)v->seeds * sizeof *s->seed);
	if (!axis || !s->commands || !s->stage || !s->seed) return nr_fail(c->err, NR_EMEMORY, "cannot start", "compare", "out of memory");
	for (; s->seeds < v->seeds; s->seeds++) s->seed[s->seeds] = s->seeds;
	const char *task = tasks[v->task];
	if (recipe && read_recipe(c, s, v, recipe, &task)) return c->err->code;
	if (add_stage(c, s, task) || (!strcmp(task, "pretrain") && add_stage(c, s, "probe"))) return c->err->code;
	if (read_flags(c, s, v, axis, &axes)) return nr_fail(c->err, NR_EMEMORY, "cannot start", "compare", "out of memory");
	if (!axes) {
		cli_usage(c, "nothing to compare");
		return nr_hint(c->err, "give an option twice: --norm ln --norm \"sep(bn,ln)\"");
	}
	s->out = *v->out ? v->out : default_out(c, s, axis, axes);
	if (nr_study_expand(s, axis, axes, c->err)) return c->err->code;
	return nr_study_check(s, c->err) ? c->err->code : cli_study_tune(c, s, &v->how);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct settings *v = conf;
	struct nr_study s;
	if (args->count > 1) return cli_usage(c, "compare takes one recipe, not '%s' as well", args->item[1]);
	if (build(c, &s, v, args->count ? args->item[0] : NULL)) return c->err->code;
	const char *again = nr_arena_printf(c->arena, "norma study %s/study.yaml", s.out);
	return cli_study_go(c, &s, &v->how, again ? again : "norma study");
}

const struct cli_command cli_compare = {
	.name = "compare",
	.title = "compare norms, or any options, over seeds, from flags",
	.usage = "[RECIPE.yaml]",
	.about = "Options of `norma train`, or of the --task, that are given several times are compared; options given once, and\n"
		 "those of a recipe, apply to all arms:\n"
		 "\n"
		 "    norma compare --norm ln --norm \"sep(bn,ln)\" --data mnist --seeds 5\n"
		 "\n"
		 "This is a study like those of `norma study`, with the same tables, intervals and tests. Repeat the command to\n"
		 "resume it after an interruption; its folder holds the study as study.yaml. --task pretrain compares pre-training\n"
		 "by probing the features; mlm, simcse, graph and others by their own metrics.",
	.conf_size = sizeof(struct settings),
	.table = table,
	.options = own,
	.run = run,
};
