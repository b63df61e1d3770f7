/* Files of `norma check`: plug-ins in float and in double, made from a source or found beside each other. */
#include "check_files.h"

#include <errno.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "norma/plugin.h"

/* A path from the folder of this command. */
static char *beside(struct cli *c, const char *way)
{
	char self[4096];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0) return NULL;
	self[n] = 0;
	char *slash = strrchr(self, '/');
	return nr_arena_printf(c->arena, "%.*s/%s", slash ? (int)(slash - self) : 0, self, way);
}

int check_folder_make(struct cli *c, char **out)
{
	const char *tmp = getenv("TMPDIR");
	*out = nr_arena_printf(c->arena, "%s/norma-check-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (*out && mkdtemp(*out)) return NR_OK;
	return nr_fail(c->err, NR_EIO, "cannot make a folder", *out ? *out : "", "%s", strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

void check_folder_remove(const char *dir) { nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* ---- compiling --------------------------------------------------------------------------------------------------------- */

static int compile(struct cli *c, const char *source, const char *object, bool twin)
{
	const char *set = getenv("CC"), *include = beside(c, NR_TO_INCLUDE);
	char *inc = nr_arena_printf(c->arena, "-I%s", include ? include : ""), *cc = nr_arena_strdup(c->arena, set && *set ? set : "cc");
	const char *words[] = { cc, "-std=gnu17", "-O3", "-Wall", "-fopenmp", "-shared", "-fPIC", inc, source, "-o", object, "-lm",
		twin ? "-DNR_DOUBLE" : NULL, NULL };
	char *argv[sizeof words / sizeof *words];
	pid_t pid;
	int status = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) argv[i] = words[i] ? nr_arena_strdup(c->arena, words[i]) : NULL;
	const int code = posix_spawnp(&pid, cc, NULL, NULL, argv, environ);
	if (code) {
		nr_fail(c->err, NR_EIO, "cannot start the compiler", cc, "%s", strerror(code));
		return nr_hint(c->err, "CC names another one");
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
	if (!status) return NR_OK;
	return nr_fail(c->err, NR_EFORMAT, "cannot compile", source, "%s says why above", cc);
}

int check_compile(struct cli *c, const char *source, const char *dir)
{
	const char *base = strrchr(source, '/');
	base = base ? base + 1 : source;
	const int n = (int)strlen(base) - 2;
	char *one = nr_arena_printf(c->arena, "%s/%.*s.so", dir, n, base), *two = nr_arena_printf(c->arena, "%s/%.*s64.so", dir, n, base);
	if (!one || !two) return nr_fail(c->err, NR_EMEMORY, "cannot compile", source, "out of memory");
	if (compile(c, source, one, false) || compile(c, source, two, true)) return c->err->code;
	return nr_plugin_load(one, c->err);
}

/* ---- the twin ------------------------------------------------------------------------------------------------------------ */

/* NAME64.so beside NAME.so, or NULL and an error that says how to make it. */
static char *twin_of(struct cli *c, const char *path)
{
	const size_t n = strlen(path);
	const bool so = n > 3 && !strcmp(path + n - 3, ".so");
	char *twin = nr_arena_printf(c->arena, "%.*s64%s", (int)(so ? n - 3 : n), path, so ? ".so" : "");
	if (twin && !access(twin, R_OK)) return twin;
	nr_fail(c->err, NR_EIO, "cannot check in double", path, "there is no '%s' beside it", twin ? strrchr(twin, '/') + 1 : "");
	nr_hint(c->err, "compile it also with $(pkg-config --cflags norma64) -o %s, or check its source: norma check FILE.c",
		twin ? strrchr(twin, '/') + 1 : "");
	return NULL;
}

int check_twin_start(struct cli *c, const struct nr_list *names, struct check_twin *t)
{
	int plugins, pipes[2];
	int64_t n = 0;
	const struct nr_plugin_file *file = nr_plugins(&plugins);
	char *program = beside(c, NR_TO_LIBEXEC "/norma-check64");
	char **argv = nr_arena_alloc(c->arena, (size_t)(2 + 2 * plugins + names->count) * sizeof *argv);
	static char flag[] = "--plugin";
	if (!argv || !program) return nr_fail(c->err, NR_EMEMORY, "cannot check in double", NULL, "out of memory");
	argv[n++] = program;
	for (int i = 0; i < plugins; i++) {
		argv[n++] = flag;
		if (!(argv[n++] = twin_of(c, file[i].path))) return c->err->code;
	}
	for (int64_t i = 0; i < names->count; i++) argv[n++] = names->item[i];
	if (pipe(pipes)) return nr_fail(c->err, NR_EIO, "cannot check in double", NULL, "%s", strerror(errno));
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, pipes[0]);
	posix_spawn_file_actions_addclose(&actions, pipes[1]);
	const int code = posix_spawn(&t->pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	t->out = code ? NULL : fdopen(pipes[0], "r");
	if (!t->out) close(pipes[0]);
	return code ? nr_fail(c->err, NR_EIO, "cannot start", program, "%s", strerror(code)) : NR_OK;
}

void check_twin_end(struct check_twin *t)
{
	if (t->out) fclose(t->out);
	if (t->pid > 0)
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR) continue;
}
