/* What all subcommands share: their table, the common options, help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/optdoc.h"
#include "base/json.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli.h"
#include "math/isa.h"
#include "norma/norma.h"
#include "training.h"

const char cli_title[] = "compare normalizations in transformers, on CPUs";

static const struct cli_command *const written[] = {
#define COMMAND(name, group) &cli_##name,
#include "commands.def"
#undef COMMAND
	NULL
};
const struct cli_command *const *cli_commands;

static const enum cli_group group_of[] = {
#define COMMAND(name, group) CLI_##group,
#include "commands.def"
#undef COMMAND
};
const char *const cli_group_title[CLI_GROUPS] = { "train", "look inside and measure", "compare", "data and weights", "about norma" };

enum cli_group cli_group_of(const struct cli_command *c)
{
	for (size_t i = 0; written[i]; i++)
		if (written[i] == c) return group_of[i];
	return CLI_TRAIN;
}

static bool is_written(const char *name)
{
	for (const struct cli_command *const *c = written; *c; c++)
		if (!strcmp((*c)->name, name)) return true;
	return false;
}

bool cli_reads_records(const char *name)
{
	for (const struct cli_command *const *c = written; *c; c++)
		if (!strcmp((*c)->name, name)) return (*c)->reads_records;
	return false;
}

int cli_commands_open(struct nr_arena *arena, struct nr_error *err)
{
	size_t tasks = 0;
	while (nr_tasks()[tasks]) tasks++;
	struct cli_command *of_task = nr_arena_alloc(arena, (tasks + 1) * sizeof *of_task);
	const struct cli_command **all = nr_arena_alloc(arena, (tasks + 1) * sizeof *all + sizeof written);
	if (!of_task || !all) return nr_fail(err, NR_EMEMORY, "cannot start", NULL, "out of memory");
	for (size_t i = 0; i < tasks; i++) {
		if (is_written(nr_tasks()[i]->command))
			return nr_fail(err, NR_ENAME, "cannot use the task", nr_tasks()[i]->name, "there is a command '%s' already",
				nr_tasks()[i]->command);
		of_task[i] = cli_training_command(nr_tasks()[i]);
		all[i] = &of_task[i];
	}
	memcpy(all + tasks, written, sizeof written);
	cli_commands = all;
	return NR_OK;
}

const struct nr_option *cli_table(const struct cli_command *c)
{
	return c->task ? nr_train_options(c->task->name) : c->table ? c->table() : NULL;
}

const struct nr_option cli_common_options[] = {
	NR_OPT_INT(struct cli_common, threads, 0, 0, 1024, "number of threads; 0: OMP_NUM_THREADS, or one per CPU"),
	NR_OPT_ENUM(struct cli_common, isa, "auto", nr_isa_choices, "instruction set; auto: NORMA_ISA, or this CPU's best"),
	{ .name = "plugin", .type = NR_TLIST, .offset = offsetof(struct cli_common, plugin), .size = sizeof(struct nr_list), .text = "",
	  .metavar = "FILE.so", .help = "load norms, models, tasks, ... from a shared object; may be repeated" },
	NR_OPT_BOOL(struct cli_common, allow_changed_plugins, "0", "use a run's plug-ins even if their files have changed"),
	NR_OPT_END
};

const struct cli_env cli_environment[] = {
	{ "NORMA_ISA", "instruction set of the kernels: what --isa takes" },
	{ "NORMA_FUSE", "0 keeps the planner from fusing ops" },
	{ "NORMA_NARROW", "0 makes the planner compute all tokens, even where the loss reads only the first ones" },
	{ "NORMA_PLUGINS", "shared objects to load, separated by colons, as --plugin does" },
	{ "NORMA_SHARE", "1 lets threads share even the smallest instructions" },
	{ "NORMA_DATA", "folder of the data sets; default ~/.cache/norma/data" },
	{ "NORMA_PEERS", "folder of the Python environment with PyTorch; default .peers" },
	{ "OMP_NUM_THREADS", "threads, unless --threads is given" },
	{ "NO_COLOR", "turns colours off when set to anything" },
	{ NULL, NULL },
};

const struct cli_command *cli_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		if (!strcmp((*c)->name, name)) return *c;
		nr_near_try(&near, (*c)->name);
	}
	nr_fail(err, NR_EUSAGE, "unknown command", name, NULL);
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	else nr_hint(err, "norma help lists all commands");
	return NULL;
}

struct nr_option *cli_options(const struct cli_command *c, struct nr_arena *arena)
{
	const struct nr_option *const parts[] = { cli_table(c), c->options };
	size_t common = 0, own = 0;
	while (cli_common_options[common].name) common++;
	for (int p = 0; p < 2; p++)
		for (const struct nr_option *o = parts[p]; o && o->name; o++) own++;
	struct nr_option *table = nr_arena_alloc(arena, (common + own + 1) * sizeof *table), *at = table;
	if (!table) return NULL;
	for (int p = 0; p < 2; p++)
		for (const struct nr_option *o = parts[p]; o && o->name; o++, at++) {
			*at = *o;
			at->offset += sizeof(struct cli_common);
		}
	memcpy(at, cli_common_options, common * sizeof *table);
	return table;
}

static const char *colour(const char *code)
{
	static int on = -1;
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	if (on < 0) on = isatty(STDOUT_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
	return on ? code : "";
}
const char *cli_bold(void) { return colour("\033[1m"); }
const char *cli_red(void) { return colour("\033[31m"); }
const char *cli_green(void) { return colour("\033[32m"); }
const char *cli_plain(void) { return colour("\033[0m"); }

static void whole_help(struct nr_str *s)
{
	nr_str_printf(s, "%snorma%s %s: %s\n\nusage: norma [OPTION...] COMMAND [ARGUMENT...]\n", cli_bold(), cli_plain(), nr_version(),
		cli_title);
	for (int g = 0; g < CLI_GROUPS; g++) {
		nr_str_printf(s, "\n%s%s%s\n", cli_bold(), cli_group_title[g], cli_plain());
		for (const struct cli_command *const *c = cli_commands; *c; c++) {
			if (cli_group_of(*c) != (enum cli_group)g) continue;
			nr_str_printf(s, "  %-12s", (*c)->name);
			nr_wrap(s, (*c)->title, 14, NR_TERMINAL);
			nr_str_add(s, "\n");
		}
	}
	nr_str_printf(s, "\n%soptions%s\n", cli_bold(), cli_plain());
	nr_option_help(cli_common_options, s);
	nr_str_add(s, "  -V, --version     print the version and exit\n");
	nr_str_add(s, "  -h, --help        print this, or a command's help, and exit\n\n");
	nr_str_printf(s, "`norma help COMMAND` or `man norma-COMMAND` explains a command.\n");
}

void cli_about(const struct cli_command *c, struct nr_str *s)
{
	nr_str_add(s, c->about);
	if (!c->more) return;
	nr_str_add(s, "\n\n");
	c->more(s);
}

void cli_help_text(const struct cli_command *c, struct nr_arena *arena, struct nr_str *s)
{
	if (!c) {
		whole_help(s);
		return;
	}
	struct nr_option *table = cli_options(c, arena);
	struct nr_str about = { 0 }, line = { 0 };
	cli_about(c, &about);
	nr_str_printf(&line, "norma %s: %s", c->name, c->title);
	nr_str_add(s, cli_bold());
	nr_wrap(s, nr_str_text(&line), 2, NR_TERMINAL);
	nr_str_printf(s, "%s\n\n", cli_plain());
	line.len = 0;
	nr_str_printf(&line, "usage: norma %s%s%s [OPTION...]", c->name, *c->usage ? " " : "", c->usage);
	nr_wrap(s, nr_str_text(&line), 7, NR_TERMINAL);
	nr_str_add(s, "\n\n");
	nr_wrap_paragraphs(s, nr_str_text(&about), NR_TERMINAL);
	nr_str_release(&about);
	nr_str_release(&line);
	nr_str_printf(s, "\n\n%soptions%s\n", cli_bold(), cli_plain());
	if (table) nr_option_help(table, s);
}

int cli_print_json(json_t *j, struct nr_error *err)
{
	char *text = j ? nr_json_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(j);
	if (!text) return nr_fail(err, NR_EMEMORY, "cannot write the result", NULL, "out of memory");
	puts(text);
	free(text);
	return NR_OK;
}

const char *cli_command_line(struct cli *c)
{
	struct nr_str s = { 0 };
	for (char **a = c->argv; *a; a++) nr_str_printf(&s, strpbrk(*a, " ()*[]'") ? "%s\"%s\"" : "%s%s", a == c->argv ? "" : " ", *a);
	const char *text = nr_str_keep(&s, c->arena);
	return text ? text : "norma";
}

void cli_print_table(struct nr_table *t)
{
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	nr_table_free(t);
}
