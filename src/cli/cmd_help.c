/* norma help [COMMAND] */
#include <stdio.h>

#include "cli.h"

void cli_command_words(struct nr_str *s)
{
	for (const struct cli_command *const *c = cli_commands; *c; c++) nr_str_printf(s, "%s\n", (*c)->name);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	(void)conf;
	if (args->count > 1) return cli_usage(c, "help takes one command, not %d", (int)args->count);
	const struct cli_command *command = args->count ? cli_find(args->item[0], c->err) : NULL;
	if (args->count && !command) return c->err->code;
	struct nr_str text = { 0 };
	cli_help_text(command, c->arena, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	return NR_OK;
}

const struct cli_command cli_help = {
	.name = "help",
	.title = "explain a command",
	.usage = "[COMMAND]",
	.about = "The same as `norma COMMAND --help`.",
	.words = cli_command_words,
	.run = run,
};
