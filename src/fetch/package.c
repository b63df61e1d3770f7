/* Packages: see package.h. */
#include "fetch/package.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "fetch/unpack.h"

struct kind { const char *scheme, *program, *verb, *flag, *end; };
static const struct kind kinds[] = {
	{ "deb:", "apt-get", "download", "-qq", ".deb" },
	{ "npm:", "npm", "pack", "--ignore-scripts", ".tgz" },
};

static const struct kind *kind_of(const char *url)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strncmp(url, kinds[i].scheme, strlen(kinds[i].scheme))) return &kinds[i];
	return NULL;
}

bool nr_package_is(const char *url) { return kind_of(url); }

bool nr_package_possible(const char *url, struct nr_error *err)
{
	const struct kind *k = kind_of(url);
	const char *path = getenv("PATH");
	while (k && path && *path) {
		const size_t n = strcspn(path, ":");
		char file[4096];
		snprintf(file, sizeof file, "%.*s/%s", (int)n, path, k->program);
		if (n && n < 4000 && !access(file, X_OK)) return true;
		path += n + (path[n] == ':');
	}
	nr_fail(err, NR_EIO, "cannot download", url, "%s is not installed", k ? k->program : "a program for it");
	return false;
}

/* The last line that the program wrote that is not only its own log's place. */
static void last_words(const char *log, char *out, size_t size)
{
	char line[512];
	FILE *f = fopen(log, "re");
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (*line && !strstr(line, "A complete log") && !strstr(line, "debug-0.log")) memccpy(out, line,
			0, size - 1);
	}
	if (f) fclose(f);
}

static int run(const struct kind *k, const char *name, const char *folder, const char *log, struct nr_error *err)
{
	char *argv[] = { (char *)(uintptr_t)k->program, (char *)(uintptr_t)k->verb, (char *)(uintptr_t)k->flag,
		(char *)(uintptr_t)name, NULL };
	posix_spawn_file_actions_t act;
	if (posix_spawn_file_actions_init(&act)) return nr_fail(err, NR_EMEMORY, "cannot start", k->program,
		"out of memory");
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&act, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&act, 1, 2);
	posix_spawn_file_actions_addchdir_np(&act, folder);
	pid_t pid;
	const int number = posix_spawnp(&pid, k->program, &act, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	if (number) return nr_fail(err, NR_EIO, "cannot start", k->program, "%s", strerror(number));
	int state = 0;
	while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
	if (WIFEXITED(state) && !WEXITSTATUS(state)) return NR_OK;
	char words[512] = "";
	last_words(log, words, sizeof words);
	nr_fail(err, NR_EIO, "cannot download package", name, "%s %s failed: %s", k->program, k->verb, *words ?
		words : "no message");
	return nr_hint(err, "is there a network? apt-get update may help for Debian packages");
}

/* What the program left: the only file with this ending that was not there before. */
static char *product(const struct kind *k, const char *folder, struct nr_arena *arena)
{
	DIR *dir = opendir(folder);
	char *found = NULL;
	for (struct dirent *d; dir && (d = readdir(dir));) {
		const size_t n = strlen(d->d_name), m = strlen(k->end);
		if (n > m && *d->d_name != '.' && !strcmp(d->d_name + n - m,
			k->end)) found = nr_arena_printf(arena, "%s/%s", folder, d->d_name);
	}
	if (dir) closedir(dir);
	return found;
}

/* Letters that occur in package names: nothing that a program could take for an option or a path. */
static bool plain(const char *name)
{
	if (!isalnum((unsigned char)*name) && *name != '@') return false;
	for (const char *s = name; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("@/._+-~", *s)) return false;
	return !strstr(name, "..");
}

static int fetch(const char *url, const char *folder, const char *file, struct nr_arena *arena, struct nr_error *err)
{
	const struct kind *k = kind_of(url);
	const char *name = k ? url + strlen(k->scheme) : url;
	if (!k || !plain(name)) return nr_fail(err, NR_EVALUE, "cannot download", url,
		"it is not deb:PACKAGE or npm:PACKAGE@VERSION");
	const char *work = nr_arena_printf(arena, "%s/package", folder), *log = nr_arena_printf(arena,
		"%s/package.log", folder);
	const char *to = nr_arena_printf(arena, "%s/%s", folder, file);
	if (!work || !log || !to) return nr_fail(err, NR_EMEMORY, "cannot download", url, "out of memory");
	if (nr_remove_tree(work, err)) return err->code;
	if (mkdir(work, 0777)) return nr_fail(err, NR_EIO, "cannot make", work, "%s", strerror(errno));
	int e = nr_package_possible(url, err) ? run(k, name, work, log, err) : NR_EIO;
	const char *made = e ? NULL : product(k, work, arena);
	if (!e && !made) e = nr_fail(err, NR_EIO,
		"cannot download package", name,
		"%s made no %s file", k->program, k->end);
	if (!e && !strcmp(k->end, ".deb")) e = nr_unpack_member(made, "data.tar", to, err);
	else if (!e && rename(made, to)) e = nr_fail(err, NR_EIO, "cannot write", to, "%s", strerror(errno));
	nr_remove_tree(work, NULL);
	unlink(log);
	return e;
}

int nr_package_fetch(const char *url, const char *folder, const char *file, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	struct nr_arena *arena = nr_arena_make();
	if (!arena) return nr_fail(slot, NR_EMEMORY, "cannot download", url, "out of memory");
	const int e = fetch(url, folder, file, arena, slot);
	nr_arena_free(arena);
	return e;
}
