/* Runs as commands and scripts, for schedulers: see study.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "study/job.h"
#include "study/results.h"

int nr_study_find_run(const struct nr_study *s, const char *text, int64_t *arm, int64_t *seed, struct nr_error *err)
{
	struct nr_near near = { .word = text };
	const char *slash = strrchr(text, '/');
	const size_t n = slash ? (size_t)(slash - text) : 0;
	int64_t number = -1;
	bool known = false;
	if (slash && !strncmp(slash, "/seed-", 6) && !nr_parse_int(slash + 6, &number)) number = -1;
	for (int64_t a = 0; a < s->arms; a++)
		for (int64_t k = 0; k < s->seeds; k++) {
			const char *name = s->arm[a].name, *folder = s->arm[a].folder;
			const bool same = !strncmp(folder, text, n) && !folder[n], named = !strncmp(name, text, n) && !name[n];
			if ((same || named) && s->seed[k] == number) return *arm = a, *seed = k, NR_OK;
			known |= n && (same || named);
			const char *full = nr_arena_printf(s->arena, "%s/seed-%lld", folder, (long long)s->seed[k]);
			if (full) nr_near_try(&near, full);
		}
	if (known) return nr_fail(err, NR_ENAME, "no such run", text, "the study has the arm, but not the seed");
	nr_fail(err, NR_ENAME, "no such run", text, "runs are named ARM/seed-S, like their folders");
	return near.best ? nr_hint(err, "did you mean '%s'?", near.best) : (int)err->code;
}

static bool is_open(const struct nr_study *s, const struct nr_study_how *how, int64_t arm, int64_t seed, struct nr_arena *scratch,
	struct nr_error *err)
{
	for (int64_t k = 0; k < s->stages; k++) {
		struct nr_job j;
		struct nr_stage_mark m;
		if (nr_job_make(&j, s, arm, seed, k, scratch, err) || nr_mark_read(&j, &m, scratch, err)) return false;
		if (!nr_mark_counts(&m, how) || strcmp(m.settings, j.settings)) return true;
		if (m.status == NR_MARK_DIVERGED) return false;
	}
	return false;
}

int64_t *nr_study_open_runs(const struct nr_study *s, const struct nr_study_how *how, int64_t *count, struct nr_arena *arena,
	struct nr_error *err)
{
	int64_t *run = nr_arena_alloc(arena, (size_t)(s->arms * s->seeds + 1) * sizeof *run);
	struct nr_arena *scratch = nr_arena_make();
	struct nr_summary m = { 0 };
	*count = 0;
	if (!run || !scratch) nr_fail(err, NR_EMEMORY, "cannot list the runs", s->out, "out of memory");
	else if (s->stop.on) nr_summary_make(&m, s, NULL, 0, scratch, err);
	for (int64_t i = 0; i < s->arms * s->seeds && !err->code; i++)
		if (!(m.decision && nr_arm_settled(s, m.decision, i % s->arms)) &&
			is_open(s, how, i % s->arms, i / s->arms, scratch, err)) run[(*count)++] = i;
	nr_arena_free(scratch);
	return err->code ? NULL : run;
}

/* One word of the shell; what needs no quotes gets none. */
static void add_word(struct nr_str *s, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
	if (*text && strspn(text, plain) == strlen(text)) {
		nr_str_add(s, text);
		return;
	}
	nr_str_add(s, "'");
	for (; *text; text++) nr_str_add_n(s, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
	nr_str_add(s, "'");
}

/* "NAME=VALUE" with the value as one word. */
static void add_variable(struct nr_str *s, const char *text)
{
	const size_t n = strcspn(text, "=") + 1;
	nr_str_add_n(s, text, n);
	add_word(s, text + n);
}

static void add_run(struct nr_str *s, const struct nr_study *study, int64_t run)
{
	nr_str_printf(s, "%s/seed-%lld", study->arm[run % study->arms].folder, (long long)study->seed[run / study->arms]);
}

static void add_command(struct nr_str *s, const struct nr_study_away *a)
{
	add_word(s, a->norma);
	nr_str_add(s, " study ");
	add_word(s, a->study);
	nr_str_add(s, a->flags);
	nr_str_add(s, " --run ");
}

int nr_study_commands(const struct nr_study *study, const struct nr_study_away *a, const int64_t *run, int64_t runs, struct nr_str *s)
{
	for (int64_t i = 0; i < runs; i++) {
		nr_str_add(s, "cd ");
		add_word(s, a->folder);
		nr_str_add(s, " && ");
		for (int64_t k = 0; a->env[k]; k++) {
			add_variable(s, a->env[k]);
			nr_str_add(s, " ");
		}
		add_command(s, a);
		add_run(s, study, run[i]);
		nr_str_add(s, "\n");
	}
	return s->failed ? NR_EMEMORY : NR_OK;
}

/* A path in an #SBATCH line: quoted, and '%' is no pattern. */
static void add_path(struct nr_str *s, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\') nr_str_add(s, "\\");
		if (*text == '%') nr_str_add(s, "%");
		nr_str_add_n(s, text, 1);
	}
}

/* Threads follow the CPUs that the job has, however they were asked for. The signal leaves a minute to save before the time is over. */
int nr_study_script(const struct nr_study *study, const struct nr_study_away *a, const int64_t *run, int64_t runs, int64_t number,
	struct nr_str *s)
{
	const char *slash = strrchr(study->out, '/');
	nr_str_add(s, "#!/bin/sh\n# Written by norma study --slurm, which watches it; it may be submitted by hand as well.\n");
	nr_str_add(s, "#SBATCH --job-name=\"norma-");
	add_path(s, slash ? slash + 1 : study->out);
	nr_str_printf(s, "\"\n#SBATCH --array=0-%lld", (long long)(runs - 1));
	if (a->at_once) nr_str_printf(s, "%%%lld", (long long)a->at_once);
	nr_str_add(s, "\n#SBATCH --output=\"");
	if (*study->out != '/') {
		add_path(s, a->folder);
		nr_str_add(s, "/");
	}
	add_path(s, study->out);
	nr_str_printf(s, "/slurm/%lld-%%a.log\"\n#SBATCH --open-mode=append\n#SBATCH --requeue\n", (long long)number);
	nr_str_add(s, "#SBATCH --signal=B:TERM@60\n");
	for (int64_t i = 0; i < a->sbatch.count; i++) nr_str_printf(s, "#SBATCH %s\n", a->sbatch.item[i]);
	nr_str_add(s, "cd ");
	add_word(s, a->folder);
	nr_str_add(s, " || exit\n");
	for (int64_t k = 0; a->env[k]; k++) {
		nr_str_add(s, "export ");
		add_variable(s, a->env[k]);
		nr_str_add(s, "\n");
	}
	nr_str_add(s, "set --");
	for (int64_t i = 0; i < runs; i++) {
		nr_str_add(s, " \\\n\t");
		add_run(s, study, run[i]);
	}
	nr_str_add(s, "\nshift \"$SLURM_ARRAY_TASK_ID\"\nexec ");
	add_command(s, a);
	nr_str_add(s, "\"$1\"");
	const bool given = strstr(a->flags, " --threads"), ranks = strstr(a->flags, " --launch");
	if (!given && ranks) nr_str_add(s, " --threads \"${SLURM_CPUS_PER_TASK:-1}\"");          /* of each rank */
	else if (!given) nr_str_add(s, " --threads \"${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}\"");
	nr_str_add(s, "\n");
	return s->failed ? NR_EMEMORY : NR_OK;
}
