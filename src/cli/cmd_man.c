/* norma man: norma(1) as scdoc source, from the tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/optdoc.h"
#include "cli.h"

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

static void add_command(struct nr_str *s, const struct cli_command *c)
{
	nr_str_printf(s, "## norma %s", c->name);
	nr_str_add(s, *c->usage ? " " : "");
	add_escaped(s, c->usage);
	nr_str_add(s, "\n\n");
	struct nr_str about = { 0 };
	cli_about(c, &about);
	add_about(s, nr_str_text(&about));
	nr_str_release(&about);
	if (cli_table(c)) nr_option_man(cli_table(c), s);
	if (c->options) nr_option_man(c->options, s);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	(void)conf;
	if (args->count) return cli_usage(c, "man takes no arguments");
	struct nr_str s = { 0 };
	nr_str_printf(&s,
		"norma(1)\n\n# NAME\n\nnorma - %s\n\n# SYNOPSIS\n\n*norma* [_option_...] _command_ [_argument_...]\n\n",
		cli_title);
	nr_str_add(&s, "# OPTIONS\n\nThese may stand before or after the command.\n\n");
	nr_option_man(cli_common_options, &s);
	nr_str_add(&s, "*-V*, *--version*\n\tPrint the version and exit.\n\n");
	nr_str_add(&s, "*-h*, *--help*\n"
		"\tPrint help (after a command, its help) and exit.\n"
		"\n");
	nr_str_add(&s, "# COMMANDS\n\n");
	for (const struct cli_command *const *k = cli_commands; *k; k++) add_command(&s, *k);
	nr_str_add(&s, "# EXIT STATUS\n\n");
	for (const struct cli_exit *e = cli_exits; e->help; e++) nr_str_printf(&s, "*%d*\n\t%s.\n\n", e->code, e->help);
	nr_str_add(&s, "# ENVIRONMENT\n\n");
	for (const struct cli_env *e = cli_environment; e->name; e++) {
		nr_str_add(&s, "*");
		add_escaped(&s, e->name);
		nr_str_add(&s, "*\n\t");
		add_escaped(&s, e->help);
		nr_str_add(&s, ".\n\n");
	}
	fputs(nr_str_text(&s), stdout);
	const bool failed = s.failed;
	nr_str_release(&s);
	return failed ? nr_fail(c->err, NR_EMEMORY, "cannot write the manual", NULL, "out of memory") : NR_OK;
}

const struct cli_command cli_man = {
	.name = "man", .title = "print the manual page as scdoc source", .usage = "",
	.about = "The build makes norma(1) from it:\n"
		"\n"
		"  norma man | scdoc >norma.1", .run = run,
};
