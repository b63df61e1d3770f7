/* norma completion bash: a completion script with every word from the tables. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/optdoc.h"
#include "cli.h"

/* One word per line becomes a list on one line. */
static void print_list(const struct nr_str *lines)
{
	for (const char *p = nr_str_text(lines); *p; p++) putchar(*p == '\n' ? ' ' : *p);
}

static void print_words(const char *pattern, struct nr_str *lines)
{
	while (lines->len && lines->text[lines->len - 1] == '\n') lines->text[--lines->len] = 0;
	printf("\t%s) words='", pattern);
	print_list(lines);
	printf("' ;;\n");
	lines->len = 0;
	if (lines->text) lines->text[0] = 0;
}

/* After a flag that takes a value: its choices, or nothing. */
static void print_values(const char *command, const struct nr_option *table)
{
	struct nr_str words = { 0 };
	for (const struct nr_option *o = table; o->name; o++) {
		char flag[128], pattern[256];
		if (o->type == NR_TBOOL) continue;
		nr_option_complete(table, nr_option_flag(o, flag, sizeof flag), &words);
		snprintf(pattern, sizeof pattern, "%s:%s", command, flag);
		print_words(pattern, &words);
	}
	nr_str_release(&words);
}

static void print_command(const struct cli_command *c, struct nr_arena *arena)
{
	const struct nr_option *table = cli_options(c, arena);
	if (!table) return;
	print_values(c->name, table);
	struct nr_str words = { 0 };
	char pattern[128];
	if (c->words) c->words(&words);
	nr_option_complete(table, NULL, &words);
	nr_str_add(&words, "--help\n");
	snprintf(pattern, sizeof pattern, "%s:*", c->name);
	print_words(pattern, &words);
	nr_str_release(&words);
}

static void print_start(void)
{
	struct nr_str words = { 0 };
	print_values("", cli_common_options);
	for (const struct cli_command *const *c = cli_commands; *c; c++) nr_str_printf(&words, "%s\n", (*c)->name);
	nr_option_complete(cli_common_options, NULL, &words);
	nr_str_add(&words, "--version\n--help\n");
	print_words(":*", &words);
	nr_str_release(&words);
}

static void list_shells(struct nr_str *s) { nr_str_add(s, "bash\n"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	(void)conf;
	if (args->count != 1 || strcmp(args->item[0], "bash")) {
		nr_fail(c->err, NR_EUSAGE, "completion is for bash", args->count ? args->item[0] : NULL, NULL);
		return nr_hint(c->err, "norma completion bash");
	}
	printf("# bash completion of norma, made by `norma completion bash`\n"
	       "_norma()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' i\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n\t\t");
	for (const struct cli_command *const *k = cli_commands; *k; k++)
		printf("%s%s", k == cli_commands ? "" : " | ", (*k)->name);
	printf(") command=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n\tcase $command:$prev in\n");
	for (const struct cli_command *const *k = cli_commands; *k; k++) print_command(*k, c->arena);
	print_start();
	printf("\tesac\n\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -F _norma norma\n");
	return NR_OK;
}

const struct cli_command cli_completion = {
	.name = "completion",
	.title = "print a completion script for the shell",
	.usage = "bash",
	.about = "Prints a script that completes commands, options and their values:\n\n"
		 "  source <(norma completion bash)",
	.words = list_shells,
	.run = run,
};
