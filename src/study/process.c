/* The process of a stage: see job.h. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/args.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "plugin/plugin.h"
#include "study/job.h"

static const char plugins_name[] = "NORMA_PLUGINS=";

static bool exists(const char *dir, const char *name)
{
	char path[4096];
	return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path && access(path, R_OK) == 0;
}

/* The weights that a stage left: at its end, or, if it stopped early, its best ones. */
static char *checkpoint_of(const struct nr_job *j, struct nr_arena *arena, struct nr_error *err)
{
	static const char *const names[] = { "model.safetensors", "best.safetensors", "last.safetensors", NULL };
	const struct nr_study_stage *stage = &j->study->stage[j->stage];
	if (stage->from_stage < 0) return nr_arena_strdup(arena, stage->from);
	const char *dir = nr_study_path(j->study, j->arm, j->seed, stage->from, arena), *file = stage->file;
	for (int i = 0; dir && !file && names[i]; i++)
		if (exists(dir, names[i])) file = names[i];
	if (dir && !file) nr_fail(err, NR_EIO, "no checkpoint in", dir, "the previous stage left none");
	return dir && file ? nr_arena_printf(arena, "%s/%s", dir, file) : NULL;
}

static int add(struct nr_list *args, char *text, struct nr_arena *arena) { return text ? nr_list_add(args, text, arena) : NR_EMEMORY; }

/* A fresh start: every setting as --key=value. */
static int fresh_arguments(const struct nr_job *j, struct nr_list *args, struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_study_stage *stage = &j->study->stage[j->stage];
	const struct nr_settings *all = nr_study_settings(j->study, j->arm, j->stage, arena);
	char flag[128];
	int code = add(args, nr_arena_strdup(arena, stage->command->name), arena);
	if (stage->from) {
		char *from = checkpoint_of(j, arena, err);
		if (!from && err->code) return err->code;
		if (from && !stage->command->takes_checkpoint)
			from = nr_arena_printf(arena, "--%s=%s", stage->command->checkpoint_option, from);
		code |= add(args, from, arena);
	}
	for (int64_t i = 0; all && i < all->count; i++) {
		nr_option_flag(nr_study_option(stage->command, all->item[i].key), flag, sizeof flag);
		for (int64_t k = 0; k < all->item[i].count; k++)
			code |= add(args, nr_arena_printf(arena, "%s=%s", flag, all->item[i].value[k]), arena);
	}
	if (nr_study_option(stage->command, "seed"))
		code |= add(args, nr_arena_printf(arena, "--seed=%lld", (long long)j->study->seed[j->seed]), arena);
	if (nr_study_option(stage->command, "out")) code |= add(args, nr_arena_printf(arena, "--out=%s", j->dir), arena);
	if (nr_study_option(stage->command, "store")) code |= add(args, nr_arena_printf(arena, "--store=%s/runs.db", j->study->out), arena);
	return !all || code ? NR_EMEMORY : NR_OK;
}

/* finetune has no --resume of its own: train goes on with any run of its kind. */
static int resume_arguments(const struct nr_job *j, bool force, struct nr_list *args, struct nr_arena *arena)
{
	const struct nr_study_command *c = j->study->stage[j->stage].command;
	const char *name = nr_study_option(c, "resume") ? c->name : "train";
	int code = add(args, nr_arena_strdup(arena, name), arena);
	code |= add(args, nr_arena_strdup(arena, "--resume"), arena);
	if (force) code |= add(args, nr_arena_strdup(arena, "--force"), arena);
	return code | add(args, nr_arena_printf(arena, "--out=%s", j->dir), arena);
}

/* NORMA_PLUGINS: what is loaded here, however it was named. */
static char *plugins_text(struct nr_arena *arena)
{
	int n;
	const struct nr_plugin_file *file = nr_plugins(&n);
	char *text = nr_arena_strdup(arena, plugins_name);
	for (int i = 0; i < n && text; i++) text = nr_arena_printf(arena, "%s%s%s", text, i ? ":" : "", file[i].path);
	return text;
}

static char **environment(int64_t threads, struct nr_arena *arena)
{
	static const char name[] = "OMP_NUM_THREADS=";
	struct nr_list list = { NULL, 0 };
	for (char **e = environ; *e; e++) {
		if ((threads && !strncmp(*e, name, sizeof name - 1)) || !strncmp(*e, plugins_name, sizeof plugins_name - 1)) continue;
		if (nr_list_add(&list, *e, arena)) return NULL;
	}
	if (add(&list, plugins_text(arena), arena)) return NULL;
	if (threads && add(&list, nr_arena_printf(arena, "%s%lld", name, (long long)threads), arena)) return NULL;
	return nr_list_add(&list, NULL, arena) ? NULL : list.item;
}

/* Words before the program: it is found by its own name then, since theirs would be /proc/self/exe. */
static int add_launcher(const struct nr_study_how *how, struct nr_list *args, struct nr_arena *arena)
{
	char program[4096];
	const ssize_t n = readlink(how->program, program, sizeof program - 1);
	const char *s = how->launch;
	int code = NR_OK;
	while (*(s += strspn(s, " "))) {
		const size_t length = strcspn(s, " ");
		code |= add(args, nr_arena_printf(arena, "%.*s", (int)length, s), arena);
		s += length;
	}
	if (n > 0) program[n] = 0;
	return code | add(args, nr_arena_strdup(arena, n > 0 ? program : how->program), arena);
}

/* The log gets the command, so that it can be repeated by hand. */
static int open_log(const struct nr_job *j, const struct nr_list *args)
{
	const int fd = open(j->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0) return fd;
	dprintf(fd, "$");
	for (int64_t i = 0; i < args->count; i++) dprintf(fd, strpbrk(args->item[i], " ()*[]'") ? " \"%s\"" : " %s", args->item[i]);
	dprintf(fd, "\n");
	return fd;
}

/* In the child, until the program takes over: only calls that are safe after a fork. */
static void become(const char *program, char **argv, char **env, int out, int log, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);                                  /* Ctrl-C reaches it through us, once */
	prctl(PR_SET_PDEATHSIG, SIGTERM);               /* if the study is killed, a training saves and ends */
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(log, 2) < 0) return;
	execvpe(program, argv, env);
	dprintf(2, "norma: cannot start '%s': %s\n", program, strerror(errno));
}

static int spawn(const struct nr_job *j, const char *program, const struct nr_list *args, char **env, pid_t *pid, struct nr_error *err)
{
	const int log = open_log(j, args), out = open(j->raw, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	char *argv[1024] = { NULL };
	int n = 0;
	for (int64_t i = 0; i < args->count && n < 1023; i++) argv[n++] = args->item[i];
	argv[n] = NULL;
	const pid_t parent = getpid();
	const bool files = log >= 0 && out >= 0;
	const int number = errno;
	*pid = files ? fork() : -1;
	if (*pid == 0) {
		become(program, argv, env, out, log, parent);
		kill(getpid(), SIGKILL);                /* the library never calls exit: what failed is in the log */
	}
	const int fork_number = errno;
	if (log >= 0) close(log);
	if (out >= 0) close(out);
	if (!files) return nr_fail(err, NR_EIO, "cannot write", log < 0 ? j->log : j->raw, "%s", strerror(number));
	if (*pid < 0) return nr_fail(err, NR_EIO, "cannot start", program, "%s", strerror(fork_number));
	return NR_OK;
}

int nr_job_start(const struct nr_job *j, const struct nr_study_how *how, int64_t threads, pid_t *pid, struct nr_arena *arena,
	struct nr_error *err)
{
	const struct nr_study_stage *stage = &j->study->stage[j->stage];
	struct nr_list args = { NULL, 0 };
	const char *events = nr_arena_printf(arena, "%s/events.jsonl", j->dir);
	char **env = environment(threads, arena);
	*pid = 0;
	if (nr_folder_make(j->base, err)) return err->code;
	if (stage->trains && events && nr_file_locked(events)) return NR_OK;
	const bool launched = stage->trains && how->launch && *how->launch;
	int code = launched ? add_launcher(how, &args, arena) : add(&args, nr_arena_strdup(arena, "norma"), arena);
	if (!code && stage->trains && exists(j->dir, "last.safetensors")) code = resume_arguments(j, how->force, &args, arena);
	else if (!code) code = fresh_arguments(j, &args, arena, err);
	if (!code) code = add(&args, nr_arena_strdup(arena, "--json"), arena);
	if (err->code) return err->code;
	if (code || !env || !events) return nr_fail(err, NR_EMEMORY, "cannot start", stage->name, "out of memory");
	return spawn(j, launched ? args.item[0] : how->program, &args, env, pid, err);
}

/* ---- what it leaves ------------------------------------------------------------------------------------------------------------ */

/* The end of a file, at most size - 1 bytes. */
static size_t read_end(const char *path, char *buf, size_t size)
{
	const int fd = nr_file_open(path, NULL);
	const off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t n = 0;
	if (end > 0) n = pread(fd, buf, size - 1, end > (off_t)size - 1 ? end - (off_t)size + 1 : 0);
	if (fd >= 0) close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

json_t *nr_job_result(const struct nr_job *j)
{
	enum { SIZE = 4 << 20 };
	char *text = malloc(SIZE);
	size_t n = text ? read_end(j->raw, text, SIZE) : 0;
	while (n && text[n - 1] == '\n') text[--n] = 0;
	const char *line = n ? memrchr(text, '\n', n) : NULL;
	line = line ? line + 1 : text;
	json_t *o = n ? nr_json_parse(line, strlen(line), j->raw, NULL) : NULL;
	free(text);
	if (json_is_object(o)) return o;
	json_decref(o);
	return NULL;
}

char *nr_job_last_words(const struct nr_job *j, struct nr_arena *arena)
{
	char text[4096];
	size_t n = read_end(j->log, text, sizeof text);
	while (n) {
		while (n && (text[n - 1] == '\n' || text[n - 1] == ' ')) text[--n] = 0;
		const char *line = n ? memrchr(text, '\n', n) : NULL;
		line = line ? line + 1 : text;
		if (n && *line != '$') return nr_arena_strdup(arena, strncmp(line, "norma: ", 7) ? line : line + 7);
		n = (size_t)(line - text);
		text[n] = 0;
	}
	return nr_arena_strdup(arena, "it printed nothing");
}

/* ---- how far it is -------------------------------------------------------------------------------------------------------------- */

static double config_number(const char *text, size_t size, const char *key, struct nr_arena *arena)
{
	double v = 0;
	const char *value = nr_yaml_peek(text, size, NULL, key, arena);
	return value && nr_parse_double(value, &v) && v > 0 ? v : 0;
}

static void read_pace(const struct nr_job *j, struct nr_job_pace *p)
{
	struct nr_arena *arena = nr_arena_make();
	char *path = arena ? nr_arena_printf(arena, "%s/config.yaml", j->dir) : NULL;
	struct nr_error ignored = { 0 };
	size_t size = 0;
	const char *text = path && !access(path, R_OK) ? nr_yaml_load(path, &size, arena, &ignored) : NULL;
	if (text) {
		p->steps = config_number(text, size, "steps", arena);
		p->epochs = config_number(text, size, "epochs", arena);
	}
	nr_arena_free(arena);
}

void nr_job_progress(const struct nr_job *j, struct nr_job_pace *p, double *share, char *note, size_t size)
{
	char path[4096], text[2048];
	double step = 0, epoch = 0;
	if (!j->study->stage[j->stage].trains || snprintf(path, sizeof path, "%s/metrics.csv", j->dir) >= (int)sizeof path) return;
	if (p->steps <= 0 && p->epochs <= 0) read_pace(j, p);
	size_t n = read_end(path, text, sizeof text);
	while (n && text[n - 1] != '\n') text[--n] = 0;         /* half a line */
	while (n && text[n - 1] == '\n') text[--n] = 0;
	const char *line = n ? memrchr(text, '\n', n) : NULL;
	if (!line || sscanf(line + 1, "%lf,%lf", &step, &epoch) != 2) return;
	const double part = p->steps > 0 ? step / p->steps : p->epochs > 0 ? epoch / p->epochs : 0;
	*share = fmin(1, fmax(0, part));
	snprintf(note, size, "step %.0f, epoch %.1f", step, epoch);
}
