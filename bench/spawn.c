/* Other programs: where they are, and what they write. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "bench.h"

static int spawn_failed(const char *program, int code, struct nr_error *err)
{
	return nr_fail(err, NR_EIO, "cannot run", program, "%s", strerror(code));
}

/* The last line that the program wrote to its error stream. */
static void last_line(int fd, char *buf, size_t size)
{
	const off_t end = lseek(fd, 0, SEEK_END), from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
	const ssize_t n = pread(fd, buf, size - 1, from);
	buf[n > 0 ? n : 0] = 0;
	size_t length = strlen(buf);
	while (length && buf[length - 1] == '\n') buf[--length] = 0;
	const char *start = strrchr(buf, '\n');
	if (start) memmove(buf, start + 1, strlen(start));
}

/* Standard output of a program as text. Its error stream is shown only if it fails. */
static int output_of(char *const argv[], struct nr_str *out, struct nr_error *err)
{
	int fd[2], status = 0, code;
	const int log = memfd_create("stderr", MFD_CLOEXEC);
	if (log < 0) return spawn_failed(argv[0], errno, err);
	if (pipe2(fd, O_CLOEXEC)) {
		close(log);
		return spawn_failed(argv[0], errno, err);
	}
	pid_t pid;
	posix_spawn_file_actions_t act;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_adddup2(&act, fd[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&act, log, STDERR_FILENO);
	code = posix_spawn(&pid, argv[0], &act, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	close(fd[1]);
	char buf[4096];
	for (ssize_t n; !code && (n = read(fd[0], buf, sizeof buf)) > 0;) nr_str_add_n(out, buf, (size_t)n);
	close(fd[0]);
	if (code) spawn_failed(argv[0], code, err);
	else if (waitpid(pid, &status, 0) < 0) code = spawn_failed(argv[0], errno, err);
	else if (status) {
		last_line(log, buf, 512);
		code = nr_fail(err, NR_EIO, "the program failed", argv[0], "%s", buf[0] ? buf : "it printed nothing");
	}
	close(log);
	return code;
}

json_t *bench_records(char *const argv[], struct nr_error *err)
{
	struct nr_str out = { 0 };
	json_t *all = json_array();
	bool ok = !output_of(argv, &out, err);
	char *save = NULL;
	for (char *line = ok && out.len ? strtok_r(out.text, "\n", &save) : NULL; line && ok;
		line = strtok_r(NULL, "\n", &save))
		if (*line == '{') ok = !json_array_append_new(all, nr_json_parse(line, strlen(line), argv[1], err));
	nr_str_release(&out);
	if (ok) return all;
	json_decref(all);
	return NULL;
}

/* Paths relative to the source tree: that of the working folder, or the one that holds build/bin/norma. */
int bench_find_file(const char *relative, char *buf, size_t size)
{
	snprintf(buf, size, "%s", relative);
	if (!access(buf, R_OK)) return 0;
	char exe[512];
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (n <= 0) return -1;
	exe[n] = 0;
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(exe, '/');
		if (slash) *slash = 0;
	}
	snprintf(buf, size, "%s/%s", exe, relative);
	return access(buf, R_OK);
}

static int find_python(char *buf, size_t size, struct nr_error *err)
{
	const char *where = getenv("NORMA_PEERS");
	if (where && *where) snprintf(buf, size, "%s/bin/python", where);
	if (!(where && *where ? access(buf, X_OK) : bench_find_file(".peers/bin/python", buf, size))) return NR_OK;
	nr_fail(err, NR_EIO, "cannot find the peers", where && *where ? where : ".peers", "no bin/python there");
	return nr_hint(err, "run scripts/setup-peers, or set NORMA_PEERS");
}

int bench_find_peer(const char *relative, char *script, char *python, size_t size, struct nr_error *err)
{
	if (bench_find_file(relative, script, size)) {
		nr_fail(err, NR_EIO, "cannot find the peer's script", relative, "%s", strerror(errno));
		return nr_hint(err, "run norma from its source tree");
	}
	return find_python(python, size, err);
}
