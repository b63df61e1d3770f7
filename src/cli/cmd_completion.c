/* norma completion SHELL: a completion script with every word from the tables. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/optdoc.h"
#include "completion.h"
#include "norma/norma.h"

void cli_values(const struct nr_option *o, struct nr_str *s)
{
	for (int i = 0; o->type == NR_TENUM && o->choices[i]; i++) nr_str_printf(s, "%s\n", o->choices[i]);
	if (!strcmp(o->name, "model")) cli_models.words(s);
	for (const struct nr_norm *const *n = nr_norms(); *n && !strcmp(o->name, "norm"); n++) nr_str_printf(s, "%s\n", (*n)->name);
	for (const struct nr_dataset *const *d = nr_datasets(); *d && !strcmp(o->name, "data"); d++)
		nr_str_printf(s, "%s%s\n", (*d)->name, (*d)->folder ? "" : ":path=");
}

/* One word per line becomes a list on one line. */
static void print_words(const char *pattern, struct nr_str *lines)
{
	while (lines->len && lines->text[lines->len - 1] == '\n') lines->text[--lines->len] = 0;
	printf("\t%s) list='", pattern);
	for (const char *p = nr_str_text(lines); *p; p++) putchar(*p == '\n' ? ' ' : *p);
	printf("' ;;\n");
	lines->len = 0;
	if (lines->text) lines->text[0] = 0;
}

/* After a flag that takes a value: what it may be, or nothing, which means files. */
static void print_values(const char *command, const struct nr_option *table)
{
	struct nr_str words = { 0 };
	for (const struct nr_option *o = table; o->name; o++) {
		char flag[128], pattern[256];
		if (o->type == NR_TBOOL) continue;
		cli_values(o, &words);
		snprintf(pattern, sizeof pattern, "%s:%s", command, nr_option_flag(o, flag, sizeof flag));
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

/* The cases of $command:$prev, which give $list; bash and zsh read them alike. */
static void print_cases(struct cli *c)
{
	printf("\tcase $command:$prev in\n");
	for (const struct cli_command *const *k = cli_commands; *k; k++) print_command(*k, c->arena);
	print_start();
	printf("\tesac\n");
}

static void print_commands(void)
{
	for (const struct cli_command *const *k = cli_commands; *k; k++) printf("%s%s", k == cli_commands ? "" : " | ", (*k)->name);
}

/* Colons and equals signs divide words in bash. */
static void print_bash(struct cli *c)
{
	printf("# bash completion of norma, made by `norma completion bash`\n"
	       "_norma()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' list='' i\n"
	       "\t[ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	       "\t[ \"$cur\" != = ] || cur=''\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n\t\t");
	print_commands();
	printf(") command=${COMP_WORDS[i]}; break ;;\n\t\tesac\n\tdone\n");
	print_cases(c);
	printf("\tmapfile -t COMPREPLY < <(compgen -W \"$list\" -- \"$cur\")\n}\ncomplete -o default -F _norma norma\n");
}

static void print_zsh(struct cli *c)
{
	printf("#compdef norma\n# zsh completion of norma, made by `norma completion zsh`\n"
	       "_norma() {\n"
	       "\tlocal prev=$words[CURRENT-1] command='' list='' i\n"
	       "\tfor ((i = 2; i < CURRENT; i++)); do\n"
	       "\t\tcase $words[i] in\n\t\t");
	print_commands();
	printf(") command=$words[i]; break ;;\n\t\tesac\n\tdone\n");
	print_cases(c);
	printf("\tcompadd -- ${=list}\n\t_files\n}\n"
	       "if [ \"$funcstack[1]\" = _norma ]; then _norma \"$@\"; else compdef _norma norma; fi\n");
}

static void list_shells(struct nr_str *s) { nr_str_add(s, "bash\nzsh\nfish\n"); }

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	(void)conf;
	const char *shell = args->count == 1 ? args->item[0] : "";
	if (!strcmp(shell, "bash")) print_bash(c);
	else if (!strcmp(shell, "zsh")) print_zsh(c);
	else if (!strcmp(shell, "fish")) cli_completion_fish(c);
	else {
		nr_fail(c->err, NR_EUSAGE, "completion is for bash, zsh and fish", args->count ? args->item[0] : NULL, NULL);
		return nr_hint(c->err, "norma completion bash");
	}
	return NR_OK;
}

const struct cli_command cli_completion = {
	.name = "completion",
	.title = "print a completion script for the shell",
	.usage = "bash|zsh|fish",
	.about = "Prints a script that completes commands, options and their values, also norms, models and data sets:\n\n"
		 "  source <(norma completion bash)\n"
		 "  source <(norma completion zsh)\n"
		 "  norma completion fish | source",
	.words = list_shells,
	.run = run,
};
