/* norma COMMAND: finds the subcommand, reads its options, runs it, turns its error into one line and an exit code. */
#include <omp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli.h"
#include "math/isa.h"
#include "norma/norma.h"
#include "norma/version.h"
#include "process.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DIVERGED = 3, EXIT_INTERRUPTED = 130 };
const struct cli_exit cli_exits[] = {
	{ 0, "success" },
	{ EXIT_FAILED, "something failed; standard error says what, in one line" },
	{ EXIT_USAGE, "an option, an argument or a name is wrong" },
	{ EXIT_DIVERGED, "a value is not finite" },
	{ EXIT_INTERRUPTED, "interrupted" },
	{ 0, NULL },
};

int cli_exit_code(int error)
{
	switch (error) {
	case NR_OK: return 0;
	case NR_EUSAGE:
	case NR_ENAME: return EXIT_USAGE;
	case NR_EDIVERGED: return EXIT_DIVERGED;
	default: return EXIT_FAILED;
	}
}

static void interrupted(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_INTERRUPTED);
}

static void complain(const struct nr_error *err)
{
	char text[2048];
	nr_error_text(err, text, sizeof text);
	fflush(stdout);
	fprintf(stderr, "norma: %s\n", text);
}

int cli_usage(struct cli *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return nr_fail(c->err, NR_EUSAGE, text, NULL, NULL);
}

/* The library itself takes the instruction set that NORMA_ISA asks for; a wrong one is said here, not swallowed. */
static int apply(const struct cli_common *common, const struct cli_command *command, struct nr_error *err)
{
	if (common->threads > 0) omp_set_num_threads((int)common->threads);
	if (common->isa > 0) return nr_isa_select(nr_isa_choices[common->isa], err);
	const char *asked = getenv("NORMA_ISA");
	if (asked && *asked && strcmp(asked, "auto") && strcmp(asked, nr_isa_name(nr_isa_active())) &&
		command != &cli_doctor)
		nr_log_line(NR_LOG_WARNING, "%s", nr_isa_reason());
	return NR_OK;
}

static int print_help(const struct cli_command *command, struct nr_arena *arena, FILE *f)
{
	struct nr_str text = { 0 };
	cli_help_text(command, arena, &text);
	fputs(nr_str_text(&text), f);
	nr_str_release(&text);
	return NR_OK;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
	return false;
}

/* conf: struct cli_common, then the command's own, as cli_options lays them out. */
static int run(const struct cli_command *command, const struct cli_common *before, int argc, char **argv, char **whole,
	struct nr_arena *arena, struct nr_error *err)
{
	if (wants_help(argc, argv)) return print_help(command, arena, stdout);
	struct nr_option *table = cli_options(command, arena);
	char *conf = nr_arena_alloc(arena, sizeof(struct cli_common) + command->conf_size);
	if (!table || !conf) return nr_fail(err, NR_EMEMORY, "cannot start", command->name, "out of memory");
	nr_option_defaults(table, conf);
	memcpy(conf, before, sizeof *before);
	struct cli c = { .arena = arena, .err = err, .common = (const struct cli_common *)conf, .command = command, .argv = whole };
	struct nr_list rest = { NULL, 0 };
	if (command->rewrite && command->rewrite(&c, argc, argv)) return err->code;
	if (nr_args_parse(table, conf, argc, argv, &rest, arena, err) || nr_args_require(table, conf, err))
		return err->code;
	if (apply(c.common, command, err)) return err->code;
	return command->run(&c, conf + sizeof(struct cli_common), &rest);
}

/* Options before the subcommand; returns how many arguments they take. */
int cli_leading(int argc, char **argv)
{
	int n = 0;
	while (n < argc && argv[n][0] == '-' && argv[n][1]) {
		char flag[128];
		bool value = false;
		for (const struct nr_option *o = cli_common_options; o->name; o++)
			value |= o->type != NR_TBOOL && !strcmp(nr_option_flag(o, flag, sizeof flag), argv[n]);
		n += value ? 2 : 1;
	}
	return n < argc ? n : argc;
}

static int start(int argc, char **argv, struct nr_arena *arena, struct nr_error *err)
{
	struct cli_common common;
	nr_option_defaults(cli_common_options, &common);
	const int n = cli_leading(argc, argv);
	for (int i = 0; i < n; i++)
		if (!strcmp(argv[i], "--version") || !strcmp(argv[i], "-V"))
			return printf("norma %s\n", nr_version()) < 0 ? NR_EIO : NR_OK;
	if (wants_help(n, argv)) return print_help(NULL, arena, stdout);
	if (nr_args_parse(cli_common_options, &common, n, argv, NULL, arena, err)) return err->code;
	if (n == argc) {
		print_help(NULL, arena, stderr);
		return NR_EUSAGE;
	}
	const struct cli_command *command = cli_find(argv[n], err);
	return command ? run(command, &common, argc - n - 1, argv + n + 1, argv - 1, arena, err) : err->code;
}

int main(int argc, char **argv)
{
	if (!cli_process_open()) return EXIT_FAILED;
	nr_json_watch_memory();
	signal(SIGINT, interrupted);
	nr_log_open(stderr, NR_LOG_INFO);
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	int code = arena ? NR_OK : nr_fail(&err, NR_EMEMORY, "cannot start", NULL, "out of memory");
	if (!code) code = cli_plugins_open(argc - 1, argv + 1, arena, &err);
	if (!code) code = cli_commands_open(arena, &err);
	if (!code) code = start(argc - 1, argv + 1, arena, &err);
	if (!code && (fflush(stdout) || ferror(stdout)))
		code = nr_fail(&err, NR_EIO, "cannot write the output", NULL, "the disk may be full");
	if (!code) code = nr_memory_since(0, "the output may be incomplete", NULL, &err);
	if (err.code) complain(&err);
	nr_arena_free(arena);
	return cli_exit_code(code);
}
