/* What the process owes to its files: descriptors 0 to 2 are open, a limit of file sizes is an error of the write, and a mapped file that
 * somebody truncates ends it with a message. */
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void tell(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(1);
}

static void on_bus(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	const char *path = nr_file_mapped_at(info->si_addr);
	tell("norma: cannot read '");
	tell(path ? path : "a file");
	tell("': it was truncated while it was in use (do not change files that are being read)\n");
	_exit(1);
}

bool cli_process_open(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd) return false;
	signal(SIGXFSZ, SIG_IGN);
	const struct sigaction bus = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	return !sigaction(SIGBUS, &bus, NULL);
}

void cli_on_stop(void (*handler)(int))
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	for (int i = 0; i < 3; i++) {
		struct sigaction now;
		const struct sigaction own = { .sa_handler = handler };            /* without SA_RESTART: what waits for a FIFO ends */
		const bool ignored = numbers[i] == SIGHUP && !sigaction(SIGHUP, NULL, &now) && now.sa_handler == SIG_IGN;
		if (!ignored) sigaction(numbers[i], &own, NULL);           /* nohup keeps its meaning */
	}
}
