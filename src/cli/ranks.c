/* See ranks.h. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "math/isa.h"
#include "norma/version.h"

enum { LIMIT = 300 };                           /* seconds, as --rank-timeout */
static int told = -1;                           /* standard error of a rank that is silent */

/* Ranks that do not do the same would wait for each other. */
static int agree(const struct cli *c, struct nr_comm *comm)
{
	const char *isa = nr_isa_name(nr_isa_active());
	uint32_t mine = nr_crc32c(0, NR_VERSION, strlen(NR_VERSION)), *all = malloc((size_t)nr_comm_size(comm) * sizeof *all);
	mine = nr_crc32c(mine, isa, strlen(isa));
	for (char **word = c->argv + 1; *word; word++) mine = nr_crc32c(mine, *word, strlen(*word) + 1);
	int code = all ? nr_comm_gather(comm, &mine, sizeof mine, all, c->err)
		       : nr_fail(c->err, NR_EMEMORY, "cannot speak to the other ranks", NULL, "out of memory");
	for (int r = 1; r < nr_comm_size(comm) && !code; r++)
		if (all[r] != all[0]) {
			nr_comm_agreed(comm);
			code = nr_fail(c->err, NR_EVALUE, "cannot measure on these ranks", NULL,
				"rank %d on %s has another command, program or instruction set than rank 0 on %s", r,
				nr_comm_host(comm, r), nr_comm_host(comm, 0));
		}
	free(all);
	return code;
}

int cli_ranks_open(struct cli *c, struct nr_comm **out)
{
	if (nr_comm_open(out, LIMIT, false, c->err) || !*out) return c->err->code;
	if (nr_comm_rank(*out)) {
		fflush(stderr);
		told = dup(STDERR_FILENO);
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			return nr_fail(c->err, NR_EIO, "cannot open", "/dev/null", NULL);
	}
	return agree(c, *out);
}

/* The first rank speaks for all of them where they know of an error. Others tell what only they know; if it is what the first one
 * tells, that ends them before they do. All is said before a rank leaves: the launcher may end the others then. */
void cli_ranks_close(const struct cli *c, struct nr_comm *comm)
{
	const int code = c->err->code, rank = nr_comm_rank(comm);
	const bool known = nr_comm_knows(comm);
	char text[2048], who[128] = "";
	if (!comm || !code) {
		nr_comm_close(comm, 0);
		return;
	}
	if (rank && !known) nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	if (!known) snprintf(who, sizeof who, "rank %d on %s: ", rank, nr_comm_host(comm, rank));
	nr_error_text(c->err, text, sizeof text);
	fflush(stdout);
	if (told >= 0) dup2(told, STDERR_FILENO);
	if (!rank || !known) fprintf(stderr, "norma: %s%s\n", who, text);
	nr_comm_close(comm, cli_exit_code(code));
	exit(cli_exit_code(code));
}
