/* Completion for fish: one line for each command, option and value. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "completion.h"

/* In single quotes, on one line. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\') putchar('\\');
		putchar(*text == '\n' ? ' ' : *text);
	}
	putchar('\'');
}

static void print_option(const char *when, const struct nr_option *o)
{
	struct nr_str words = { 0 };
	char flag[128];
	cli_values(o, &words);
	printf("complete -c norma -n %s -l %s", when, nr_option_flag(o, flag, sizeof flag) + 2);
	if (o->letter) printf(" -s %c", o->letter);
	if (words.len) printf(" -x -a "), print_quoted(words.text);
	else if (o->type != NR_TBOOL) printf(" -r");
	printf(" -d ");
	print_quoted(o->help ? o->help : "");
	printf("\n");
	if (o->type == NR_TBOOL) printf("complete -c norma -n %s -l no-%s\n", when, flag + 2);
	nr_str_release(&words);
}

void cli_completion_fish(struct cli *c)
{
	printf("# fish completion of norma, made by `norma completion fish`\n");
	for (const struct cli_command *const *k = cli_commands; *k; k++) {
		char when[128];
		struct nr_str words = { 0 };
		printf("complete -c norma -n __fish_use_subcommand -f -a %s -d ", (*k)->name);
		print_quoted((*k)->title);
		printf("\n");
		snprintf(when, sizeof when, "'__fish_seen_subcommand_from %s'", (*k)->name);
		if ((*k)->words) (*k)->words(&words);
		if (words.len) printf("complete -c norma -n %s -a ", when), print_quoted(words.text), printf("\n");
		nr_str_release(&words);
		for (const struct nr_option *o = cli_options(*k, c->arena); o && o->name; o++) print_option(when, o);
	}
}
