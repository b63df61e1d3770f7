/* What `norma study` and `norma compare` share. */
#ifndef NR_CLI_STUDY_H
#define NR_CLI_STUDY_H

#include "cli.h"
#include "study/study.h"

/* Commands that can be stages: they take a checkpoint or train, and print their result as JSON. In the arena; NULL: out of memory. */
const struct nr_study_command *cli_study_commands(struct cli *);

struct cli_study { bool retry, rerun, dry_run, json; };
#define CLI_STUDY_OPTIONS(S, f)                                                                                                           \
	{ .name = "retry", .type = NR_TBOOL, .offset = offsetof(S, f.retry), .size = sizeof(bool), .text = "0",                           \
	  .help = "try runs that diverged again" },                                                                                       \
	{ .name = "rerun", .type = NR_TBOOL, .offset = offsetof(S, f.rerun), .size = sizeof(bool), .text = "0",                           \
	  .help = "runs made with other settings are moved aside and made again" },                                                       \
	{ .name = "dry_run", .type = NR_TBOOL, .offset = offsetof(S, f.dry_run), .size = sizeof(bool), .text = "0",                       \
	  .help = "check everything, list the runs, start nothing" },                                                                     \
	{ .name = "json", .type = NR_TBOOL, .offset = offsetof(S, f.json), .size = sizeof(bool), .text = "0",                             \
	  .help = "the table as one line of JSON" }

/* Runs a checked study with a bar, writes its tables and prints one. again: the command that goes on with it. */
int cli_study_go(struct cli *, const struct nr_study *, const struct cli_study *, const char *again);

#endif
