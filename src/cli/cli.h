/* The command: a table of subcommands, each one file that ends with its descriptor. Help, man page and completion
 * derive from the descriptors and their option tables. */
#ifndef NR_CLI_H
#define NR_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "norma/norma.h"

struct cli_common {
	int64_t threads;
	int32_t isa;
	struct nr_list plugin;                  /* loaded before the arguments are read: cli_plugins_open */
	bool allow_changed_plugins;
}; /* what every subcommand takes */
extern const struct nr_option cli_common_options[];

struct nr_comm;
struct cli {
	struct nr_arena *arena;                 /* lives until the end of the command */
	struct nr_error *err;
	const struct cli_common *common;
	const struct cli_command *command;      /* that runs */
	char **argv;                            /* of main */
	struct nr_comm *comm;                   /* ranks that share the work; NULL: this process is alone */
};

/* A row for a text whose kind of value help names: PLAN, FILE. */
#define CLI_TEXT(S, f, def, var, help_)                                                                                  \
	{ .name = #f, .type = NR_TSTRING, .offset = offsetof(S, f), .size = NR_FIELD_SIZE(S, f), .text = def,            \
	  .metavar = var, .help = help_ }

struct nr_task;

struct cli_command {
	const char *name, *title;               /* title: one line, lower case, no full stop */
	const char *usage;                      /* what follows the name, without options: "CASE" */
	const char *about;                      /* paragraphs, separated by empty lines */
	void (*more)(struct nr_str *);          /* further ones, from the library's tables; NULL: none */
	size_t conf_size;
	const struct nr_option *options;        /* its own; NULL: none */
	const struct nr_option *(*table)(void); /* rows of the library that come before them; NULL: none */
	bool reads_records;                     /* shows what runs left: a plug-in of theirs that is gone is a warning */
	const struct nr_task *task;             /* that it trains by, whose rows come before them; NULL: none */
	void (*words)(struct nr_str *);         /* completion of its arguments, one per line; NULL: none */
	/* May change the arguments before they are parsed; NULL: they are taken as given. */
	int (*rewrite)(struct cli *, int argc, char **argv);
	/* Returns 0 or an nr_err whose message is in the slot; NR_EUSAGE and NR_ENAME end with exit code 2. */
	int (*run)(struct cli *, const void *conf, const struct nr_list *args);
};
#define COMMAND(name, group) extern const struct cli_command cli_##name;
#include "commands.def"
#undef COMMAND
enum cli_group { CLI_TRAIN, CLI_INSIDE, CLI_COMPARE, CLI_DATA, CLI_TOOLS, CLI_GROUPS };
extern const char *const cli_group_title[CLI_GROUPS];
enum cli_group cli_group_of(const struct cli_command *);
extern const struct cli_command *const *cli_commands;  /* those of the tasks, then those of commands.def, then NULL */
/* Before anything else: plug-ins that NORMA_PLUGINS, --plugin and the recipes, studies and runs among the arguments name. */
int cli_plugins_open(int argc, char **argv, struct nr_arena *, struct nr_error *);
int cli_commands_open(struct nr_arena *, struct nr_error *);    /* then */

bool cli_reads_records(const char *name);        /* of a command, before they are all known */
/* NULL and an error with the nearest name if there is none. */
const struct cli_command *cli_find(const char *name, struct nr_error *);
const struct nr_option *cli_table(const struct cli_command *);  /* rows of the library; NULL: none */
/* The common rows and the command's own, moved behind struct cli_common; NULL when out of memory. */
struct nr_option *cli_options(const struct cli_command *, struct nr_arena *);
void cli_about(const struct cli_command *, struct nr_str *);    /* `about` and `more`, without a newline at the end */
void cli_help_text(const struct cli_command *, struct nr_arena *, struct nr_str *);  /* NULL: the whole command */
int cli_exit_code(int error);                    /* of an nr_err */
int cli_usage(struct cli *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int cli_leading(int argc, char **argv);         /* how many arguments come before the name of the command */
extern const char cli_title[];                  /* of the whole command */
void cli_command_words(struct nr_str *);         /* the names of all commands, one per line */
/* What can follow an option, one per line: its choices, or the norms, models or data sets that there are. */
void cli_values(const struct nr_option *, struct nr_str *);
struct cli_env { const char *name, *help; };
extern const struct cli_env cli_environment[];  /* variables that it reads; ends with a NULL name */
struct cli_exit { int code; const char *help; };
extern const struct cli_exit cli_exits[];       /* ends with a NULL help */

/* The command as it was given, for records; words with spaces or brackets in quotes. */
const char *cli_command_line(struct cli *);
struct nr_table;
void cli_print_table(struct nr_table *);        /* on stdout; frees it */
/* One line on stdout; takes the reference. */
int cli_print_json(json_t *, struct nr_error *);

/* Before heavy work with threads: starts the command again if OpenMP would spin for long. */
static inline void cli_bound_spin(const struct cli *c) { nr_bound_spin(c->argv); }

/* Escape sequences for bold and the like on stdout; "" off a terminal or with NO_COLOR. */
const char *cli_bold(void), *cli_red(void), *cli_green(void), *cli_plain(void);

#endif
