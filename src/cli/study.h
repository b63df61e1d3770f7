/* What `norma study` and `norma compare` share. */
#ifndef NR_CLI_STUDY_H
#define NR_CLI_STUDY_H

#include "cli.h"
#include "study/study.h"

/* Commands that can be stages: they take a checkpoint or train, and print their result as JSON. In the arena; NULL: out of memory. */
const struct nr_study_command *cli_study_commands(struct cli *);

struct cli_study {
	bool retry, rerun, force, stop, dry_run, json;
	struct nr_list tune;
	char *columns;
	const struct nr_list *only;             /* single runs; NULL: all */
	const char *launch, *jobs_from;         /* "" or NULL: none */
	struct nr_study_away *away;             /* for jobs_from and slurm */
	bool slurm;
};
#define CLI_STUDY_OPTIONS(S, f)                                                                                                        \
	{ .name = "tune", .type = NR_TLIST, .offset = offsetof(S, f.tune), .size = sizeof(struct nr_list), .text = "",                 \
	  .metavar = "KEY=V,V",                                                                                                        \
	  .help = "find every arm's best value of an option first: lr=1e-3,2e-3; a single value is for tuning only: epochs=2" },       \
	{ .name = "stop", .type = NR_TBOOL, .offset = offsetof(S, f.stop), .size = sizeof(bool), .text = "0",                          \
	  .help = "stop running arms once they are known to differ from their baseline; levels allow for a test after every seed" },   \
	{ .name = "retry", .type = NR_TBOOL, .offset = offsetof(S, f.retry), .size = sizeof(bool), .text = "0",                        \
	  .help = "repeat runs that diverged" },                                                                                       \
	{ .name = "rerun", .type = NR_TBOOL, .offset = offsetof(S, f.rerun), .size = sizeof(bool), .text = "0",                        \
	  .help = "move runs made with other settings aside and repeat them" },                                                        \
	{ .name = "force", .type = NR_TBOOL, .offset = offsetof(S, f.force), .size = sizeof(bool), .text = "0",                        \
	  .help = "go on with trainings though their data or the instruction set changed; their records say so" },                     \
	{ .name = "dry_run", .type = NR_TBOOL, .offset = offsetof(S, f.dry_run), .size = sizeof(bool), .text = "0",                    \
	  .help = "check everything and list the runs, but start none" },                                                              \
	{ .name = "columns", .type = NR_TSTRING, .offset = offsetof(S, f.columns), .size = sizeof(char *), .text = "",                 \
	  .metavar = "NAMES",                                                                                                          \
	  .help = "of table.tex, beside the arms: n, metric, published, difference, p, wilcoxon, needed, decision, time, flops, a "    \
		  "metric of `also:`, or all; default: metric published difference p" },                                               \
	{ .name = "json", .type = NR_TBOOL, .offset = offsetof(S, f.json), .size = sizeof(bool), .text = "0",                          \
	  .help = "print the table as one line of JSON" }

/* Adds what --tune asks for to a checked study. */
int cli_study_tune(struct cli *, struct nr_study *, const struct cli_study *);
/* Runs a checked study with a bar, writes its tables and prints one. again: the command that goes on with it. */
int cli_study_go(struct cli *, const struct nr_study *, const struct cli_study *, const char *again);
/* The runs of how->only, as a part of a study that others run too: no table. */
int cli_study_alone(struct cli *, const struct nr_study *, const struct cli_study *, const char *again);
/* The runs alone, without table: for commands that read the results themselves. Failed runs are an error. */
int cli_study_runs(struct cli *, const struct nr_study *, const struct cli_study *, const char *again);

#endif
