/* norma man [COMMAND]: norma(1) and norma-COMMAND(1) as scdoc source, from the tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/optdoc.h"
#include "base/save.h"
#include "cli.h"

struct man { char *out; };

static const struct nr_option options[] = {
	CLI_TEXT(struct man, out, "", "DIR", "write every page as a file into this folder: norma.1.scd, norma-train.1.scd, ..."),
	NR_OPT_END
};

/* What scdoc would take for markup. */
static void add_escaped(struct nr_str *s, const char *text)
{
	if (*text == '-' || *text == '.') nr_str_add(s, "\\");           /* a list; troff's own */
	for (; *text; text++) {
		if (strchr("\\*_~#[]|`<>", *text)) nr_str_add(s, "\\");
		nr_str_add_n(s, text, 1);
	}
}

/* Paragraphs; lines that begin with two spaces are shown as they are. */
static void add_about(struct nr_str *s, const char *text)
{
	bool literal = false;
	for (const char *line = text; *line;) {
		const size_t n = strcspn(line, "\n");
		const bool now = line[0] == ' ' && line[1] == ' ';
		if (now != literal) nr_str_add(s, "```\n");
		literal = now;
		char *copy = strndup(line, n);
		if (copy && literal) nr_str_add(s, copy + 2);
		else if (copy) add_escaped(s, copy);
		free(copy);
		nr_str_add(s, "\n");
		line += n + (line[n] == '\n');
	}
	nr_str_add(s, literal ? "```\n\n" : "\n");
}

static void add_page(struct nr_str *s, const struct cli_command *c)
{
	struct nr_str about = { 0 };
	cli_about(c, &about);
	nr_str_printf(s, "norma-%s(1)\n\n# NAME\n\nnorma-%s - ", c->name, c->name);
	add_escaped(s, c->title);
	nr_str_printf(s, "\n\n# SYNOPSIS\n\n*norma %s*%s", c->name, *c->usage ? " " : "");
	add_escaped(s, c->usage);
	nr_str_add(s, " \\[_OPTION_...\\]\n\n# DESCRIPTION\n\n");
	add_about(s, nr_str_text(&about));
	nr_str_add(s, "# OPTIONS\n\n");
	if (cli_table(c)) nr_option_man(cli_table(c), s);
	if (c->options) nr_option_man(c->options, s);
	nr_option_man(cli_common_options, s);
	nr_str_add(s, "# SEE ALSO\n\n*norma*(1)\n");
	s->failed |= about.failed;
	nr_str_release(&about);
}

static void add_commands(struct nr_str *s)
{
	for (int g = 0; g < CLI_GROUPS; g++) {
		nr_str_printf(s, "## %s\n\n", cli_group_title[g]);
		for (const struct cli_command *const *c = cli_commands; *c; c++) {
			if (cli_group_of(*c) != (enum cli_group)g) continue;
			nr_str_printf(s, "*norma-%s*(1)\n\t", (*c)->name);
			add_escaped(s, (*c)->title);
			nr_str_add(s, "\n\n");
		}
	}
}

static void add_whole(struct nr_str *s)
{
	nr_str_printf(s, "norma(1)\n\n# NAME\n\nnorma - %s\n\n", cli_title);
	nr_str_add(s, "# SYNOPSIS\n\n*norma* [_option_...] _command_ [_argument_...]\n\n");
	nr_str_add(s, "# COMMANDS\n\n");
	add_commands(s);
	nr_str_add(s, "# OPTIONS\n\nThese may stand before or after the command.\n\n");
	nr_option_man(cli_common_options, s);
	nr_str_add(s, "*-V*, *--version*\n\tPrint the version and exit.\n\n"
		"*-h*, *--help*\n\tPrint help (after a command, its help) and exit.\n\n# EXIT STATUS\n\n");
	for (const struct cli_exit *e = cli_exits; e->help; e++) nr_str_printf(s, "*%d*\n\t%s.\n\n", e->code, e->help);
	nr_str_add(s, "# ENVIRONMENT\n\n");
	for (const struct cli_env *e = cli_environment; e->name; e++) {
		nr_str_add(s, "*");
		add_escaped(s, e->name);
		nr_str_add(s, "*\n\t");
		add_escaped(s, e->help);
		nr_str_add(s, ".\n\n");
	}
}

/* command NULL: the page of the whole. */
static int make(struct nr_str *s, const struct cli_command *command, struct nr_error *err)
{
	if (command) add_page(s, command);
	else add_whole(s);
	return s->failed ? nr_fail(err, NR_EMEMORY, "cannot write the manual", NULL, "out of memory") : NR_OK;
}

static int save(const char *dir, const struct cli_command *command, struct nr_error *err)
{
	struct nr_str path = { 0 }, page = { 0 };
	nr_str_printf(&path, "%s/norma%s%s.1.scd", dir, command ? "-" : "", command ? command->name : "");
	int code = make(&page, command, err);
	if (!code) code = nr_save_file(nr_str_text(&path), page.text, page.len, err);
	nr_str_release(&path);
	nr_str_release(&page);
	return code;
}

static int save_all(const char *dir, struct nr_error *err)
{
	int code = nr_folder_make(dir, err);
	if (!code) code = save(dir, NULL, err);
	for (const struct cli_command *const *k = cli_commands; !code && *k; k++) code = save(dir, *k, err);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct man *o = conf;
	if (*o->out) return save_all(o->out, c->err);
	if (args->count > 1) return cli_usage(c, "man takes one command, not %d", (int)args->count);
	const struct cli_command *command = args->count ? cli_find(args->item[0], c->err) : NULL;
	if (args->count && !command) return c->err->code;
	struct nr_str s = { 0 };
	const int code = make(&s, command, c->err);
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	return code;
}

const struct cli_command cli_man = {
	.name = "man",
	.title = "print a manual page as scdoc source",
	.usage = "[COMMAND]",
	.about = "The build makes norma(1), norma-train(1), ... from it:\n"
		 "\n"
		 "  norma man train | scdoc >norma-train.1",
	.conf_size = sizeof(struct man),
	.options = options,
	.words = cli_command_words,
	.run = run,
};
