/* A study: arms x seeds, each a chain of commands of norma, and what came of them.
 *
 *   title: separate normalization for [CLS]
 *   question: does a norm of its own for [CLS] help a linear probe?
 *   base: { data: fashion-mnist }           what every arm has
 *   stages:
 *     - pretrain: { model: mae_nano, epochs: 20 }
 *     - probe: { epochs: 10 }               gets the checkpoint of the stage before
 *     - fine: { run: finetune, from: pretrain, epochs: 3 }
 *   grid:                                   every combination is an arm
 *     norm: [ln, bn, "sep(bn,ln)"]
 *     lambda: { plain: 0, contrast: 0.01 }  values with names
 *   arms:                                   or one by one; with a grid, each of them times the grid
 *     - { name: ours, norm: dtn, lr: 1e-3 }
 *   seeds: 5                                0 to 4; or a list
 *   metric: probe.cls.top1                  STAGE.KEY of the stage's JSON
 *   also: [probe.cls.top5]
 *   baseline: ln                            an arm (default: the first), or a part of names: "A, dtn" is compared with "A, ln"
 *   parallel: 2                             runs at once
 *   out: runs/sepnorm
 *   tune: {lr: [1e-3, 2e-3], epochs: 2}     every arm's best value first, at the same cost: see tune.h
 *   stop: {when: decided, looks: [3, 5]}    an arm that differs from its baseline for sure is not run further; looks: after so many
 *                                           seeds, or how many looks; `stop: decided`: after every seed
 *   published: sepnorm/table1               numbers of a paper beside the measured ones: see published.h
 *
 * An option in base, grid and arms goes to the first stage whose command has it; data, data_root and workers to every one;
 * `probe.lr` to the stage named. An arm's value counts more than a stage's, a stage's more than base.
 *
 * The folder `out`:
 *   study.yaml                 the study as it is run, every arm by itself
 *   ARM/seed-S/STAGE/          run directory of a stage that trains
 *   ARM/seed-S/STAGE.json      result of the stage; STAGE.log: what it said; STAGE.mark: its settings and whether it is done
 *   runs.db                    run database of all of them
 *   .claims/                   while it runs: which process does which run (base/claims.h)
 *   slurm/                     scripts, jobs and logs of --slurm
 *   results.csv table.{md,tex,csv,json}
 */
#ifndef NR_STUDY_H
#define NR_STUDY_H

#include <stdbool.h>

#include "base/yaml.h"
#include "norma/option.h"

/* What a stage can run: the caller's table of commands, ends with a NULL name. */
struct nr_study_command {
	const char *name;
	const struct nr_option *options;
	size_t conf_size;
	bool takes_checkpoint;              /* as its argument */
	bool trains;                        /* its --out is a run directory with checkpoints */
	const char *metric;                 /* what it is about: a key of its result; NULL: an accuracy */
	const char *checkpoint_option;      /* it is given a checkpoint, if an earlier stage trains one, as this option; or NULL */
};

/* An option as text; a list has several values. at: for messages; NULL: it was a flag. */
struct nr_setting {
	const char *stage, *key;            /* stage NULL: by the rule above */
	const char *const *value;
	int64_t count;
	const struct nr_yaml_node *at, *value_at;
};
struct nr_settings { struct nr_setting *item; int64_t count, cap; };

struct nr_study_stage {
	const char *name;
	const struct nr_study_command *command;
	const char *from;                   /* NULL: no checkpoint. Name of a stage, if from_stage >= 0; else a file */
	const char *file;                   /* of that stage's folder; NULL: model.safetensors, or the best or last one */
	int64_t from_stage;
	bool trains;                        /* it has a folder and leaves checkpoints */
	struct nr_settings own;
	const struct nr_yaml_node *at;
};
struct nr_published;
struct nr_tune;
struct nr_study_arm {
	const char *name, *folder;
	struct nr_settings own;
	int64_t against;                    /* the arm it is compared with; itself: a baseline */
	const struct nr_yaml_node *at;
};

struct nr_study_stop { bool on; int64_t *look, looks, count; };     /* looks: given ones; count: so many; neither: all */

struct nr_study {
	struct nr_arena *arena;
	struct nr_yaml_tree *tree;          /* of the file; NULL: built from flags */
	const struct nr_study_command *commands;
	const char *title, *question, *metric, *baseline, *out;
	const char *bound;                  /* "-3.088 what it is": a line in the chart of the metric; NULL: none */
	struct nr_list also;
	const char *columns;                /* of table.tex, separated by spaces; NULL or "": few */
	struct nr_study_stage *stage;
	struct nr_study_arm *arm;
	int64_t *seed;
	int64_t stages, arms, seeds, parallel, first;   /* first: the number of the (first) baseline */
	struct nr_settings base;
	struct nr_study_stop stop;
	struct nr_tune *tune;               /* NULL: none */
	bool tuning;                        /* these are tuning runs: arms may be the same up to the stage that they end with */
	struct nr_published *published;     /* NULL: none */
};

enum { NR_STUDY_MAX_ARMS = 1000, NR_STUDY_MAX_SEEDS = 1000, NR_STUDY_MAX_STAGES = 16 };

/* ---- reading and checking ------------------------------------------------------------------------------------------------ */

/* Reads a file's text and checks all that can be checked before anything runs: every option of every run against its command's
 * table, names of norms and data sets, arms that are the same. errors: all of them, with their lines. */
int nr_study_parse(struct nr_study *, const char *text, size_t size, const char *name, const struct nr_study_command *,
	struct nr_arena *, struct nr_yaml_errors *, struct nr_error *);
/* The grid: dimension i has the settings axis[i].item, each with its name; multiplies the arms that are there (none: one). */
struct nr_factor { struct nr_setting *item; const char **name; int64_t count; };
int nr_study_expand(struct nr_study *, const struct nr_factor *, int64_t axes, struct nr_error *);
/* Settings for a study without a file: value is not copied. */
int nr_settings_add(struct nr_settings *, const struct nr_setting *, struct nr_arena *);
int nr_study_check(struct nr_study *, struct nr_error *);
/* The study as a file that nr_study_parse reads, with the same runs. */
int nr_study_text(const struct nr_study *, struct nr_str *);

/* That file in the study's folder, flags included: `norma study OUT/study.yaml` goes on with it from anywhere. */
int nr_study_save(const struct nr_study *, const char *name, struct nr_error *);

/* The settings of a stage in a run, one for each option, by name. NULL when out of memory. */
struct nr_settings *nr_study_settings(const struct nr_study *, int64_t arm, int64_t stage, struct nr_arena *);
const struct nr_option *nr_study_option(const struct nr_study_command *, const char *key);   /* '-' is '_'; NULL: none */

/* ---- running --------------------------------------------------------------------------------------------------------------- */

/* SPARED: stopped early; ELSEWHERE: another process or a job of Slurm is at it */
enum nr_run_status { NR_RUN_WAITING, NR_RUN_RUNNING, NR_RUN_DONE, NR_RUN_FAILED, NR_RUN_SPARED, NR_RUN_ELSEWHERE };
struct nr_study_run {
	int64_t arm, seed;                  /* seed: its place in the list */
	enum nr_run_status status;
	bool reused;                        /* all of its stages were there already */
	int64_t stage;                      /* running or failed */
	double seconds;                     /* of the finished stages, whenever they ran */
	double share;                       /* of the running stage: 0 to 1 */
	double began;                       /* nr_clock of the running stage */
	char note[96];                      /* its last numbers */
	char *fault;                        /* why it failed: the last line of its log */
	long pid;
};

struct nr_study_progress {
	const struct nr_study *study;
	const struct nr_study_run *run;
	int64_t runs, done, failed, running, spared, elsewhere;
	int64_t queued;                     /* waiting in the queue of Slurm */
	double left;                        /* seconds, NAN: not known yet */
};

struct nr_study_watch {
	/* Every half second and when something changed; changed: the run that just ended or began a stage, or NULL. */
	void (*tell)(void *context, const struct nr_study_progress *, const struct nr_study_run *changed);
	void (*say)(void *context, const char *text);   /* NULL: not told. One line of news */
	void *context;
};

/* Where runs go that do not run here: commands of single runs, each of which may be repeated at any time. */
struct nr_study_away {
	const char *norma, *folder, *study; /* the command, where it is started, the file that it reads; as the shell sees them there */
	const char *flags;                  /* further ones: " --retry"; "" */
	const char *const *env;             /* "NORMA_DATA=/data": set for it; ends with NULL */
	struct nr_list sbatch;              /* settings for Slurm: "--partition=short" */
	int64_t at_once;                    /* of the array; 0: what Slurm allows */
};

struct nr_study_how {
	const char *program;                /* the norma command */
	int64_t threads;                    /* of all runs together; 0: every CPU */
	bool retry;                         /* also what diverged */
	bool rerun;                         /* what was made with other settings is moved aside and made again */
	bool force;                         /* trainings go on though data or instruction set changed: train --resume --force */
	const struct nr_list *only;         /* single runs, as "FOLDER/seed-S"; NULL: all. What others certainly do is left to them */
	const char *launch;                 /* words before the command of a stage that trains: "srun --mpi=pmix"; NULL or "": none */
	const struct nr_study_away *slurm;  /* runs are jobs of Slurm; NULL: they are processes of ours */
};

/* Looks ahead at every stage of every arm that has yet to run: do its data open, have they its splits, its kind of samples, its
 * classes? (rehearse.c) */
int nr_study_rehearse(const struct nr_study *, const struct nr_study_how *, struct nr_error *);

/* Runs what is not done yet. SIGINT and SIGTERM are taken while it runs: the children are told once, and *interrupted is set when
 * they have saved. A run that fails does not stop the others. The caller frees *runs with nr_study_runs_free. */
int nr_study_run(const struct nr_study *, const struct nr_study_how *, const struct nr_study_watch *, struct nr_study_run **runs,
	int64_t *count, bool *interrupted, struct nr_error *);
/* Which run is meant by "ARM/seed-S", with the arm's folder or name. */
int nr_study_find_run(const struct nr_study *, const char *text, int64_t *arm, int64_t *seed, struct nr_error *);
/* The runs that are not done yet, as places in seed-by-seed order (seed * arms + arm). In the arena; NULL: none, or an error. */
int64_t *nr_study_open_runs(const struct nr_study *, const struct nr_study_how *, int64_t *count, struct nr_arena *, struct nr_error *);
/* One command of the shell for each of them, a line each. */
int nr_study_commands(const struct nr_study *, const struct nr_study_away *, const int64_t *run, int64_t runs, struct nr_str *);
/* The script that runs them as an array of jobs; number: of the script, for the names of its logs. */
int nr_study_script(const struct nr_study *, const struct nr_study_away *, const int64_t *run, int64_t runs, int64_t number,
	struct nr_str *);
/* How many of them go into one script: what arrays of Slurm can have by default. */
enum { NR_STUDY_MAX_ARRAY = 1000 };
void nr_study_runs_free(struct nr_study_run *, int64_t count);

/* Folders by the names of the arms; two names can give one folder, then the later one gets a number. */
int nr_study_folders(struct nr_study_arm *, int64_t arms, struct nr_arena *);
/* "OUT/ARM/seed-S", followed by "/name" if it is not NULL. */
char *nr_study_path(const struct nr_study *, int64_t arm, int64_t seed, const char *name, struct nr_arena *);

#endif
