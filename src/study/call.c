/* Small commands of the system: see slurm.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "study/slurm.h"

static void read_both(int out, int err, struct nr_str *to_out, struct nr_str *to_err)
{
	struct pollfd p[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	struct nr_str *to[2] = { to_out, to_err };
	char buf[4096];
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR) return;
		for (int i = 0; i < 2; i++) {
			if (p[i].fd < 0 || !p[i].revents) continue;
			const ssize_t n = read(p[i].fd, buf, sizeof buf);
			if (n > 0) nr_str_add_n(to[i], buf, (size_t)n);
			else if (n == 0 || errno != EINTR) p[i].fd = -1;
		}
	}
}

/* In a process group of its own: Ctrl-C in the terminal is for us. */
static int spawn(const char *const *argv, int out, int err, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	char *words[16] = { NULL };                     /* they are not changed, whatever the type says */
	for (size_t i = 0; argv[i] && i + 1 < sizeof words / sizeof *words; i++) memcpy(&words[i], &argv[i], sizeof *words);
	sigemptyset(&none);
	if (posix_spawn_file_actions_init(&files)) return ENOMEM;
	if (posix_spawnattr_init(&how)) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	int number = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (!number) number = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (!number) number = posix_spawn_file_actions_adddup2(&files, err, 2);
	if (!number) number = posix_spawnattr_setsigmask(&how, &none);
	if (!number) number = posix_spawnattr_setpgroup(&how, 0);
	if (!number) number = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	if (!number) number = posix_spawnp(pid, argv[0], &files, &how, words, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return number;
}

int nr_call(const char *const *argv, struct nr_str *out, struct nr_str *trouble, int *status, struct nr_error *err)
{
	int a[2] = { -1, -1 }, b[2] = { -1, -1 }, state = 0, number = 0;
	pid_t pid = 0;
	if (pipe2(a, O_CLOEXEC) || pipe2(b, O_CLOEXEC)) number = errno;
	if (!number) number = spawn(argv, a[1], b[1], &pid);
	if (a[1] >= 0) close(a[1]);
	if (b[1] >= 0) close(b[1]);
	if (!number) read_both(a[0], b[0], out, trouble);
	if (a[0] >= 0) close(a[0]);
	if (b[0] >= 0) close(b[0]);
	*status = number == ENOENT ? 127 : 126;
	if (number == ENOENT) return nr_fail(err, NR_EIO, "cannot find the command", argv[0], "it is not in PATH");
	if (number) return nr_fail(err, NR_EIO, "cannot start", argv[0], "%s", strerror(number));
	while (waitpid(pid, &state, 0) < 0 && errno == EINTR) { }
	*status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
	return out->failed || trouble->failed ? nr_fail(err, NR_EMEMORY, "cannot read from", argv[0], "out of memory") : NR_OK;
}
