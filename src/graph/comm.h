/* Ranks: the processes of one training, started by an MPI launcher. MPI is found at run time, and comm.c is the only file that calls it;
 * without a launcher nothing is loaded. Sums go through a fixed binary tree over ranks, never through MPI's own reductions, whose order
 * depends on sizes and algorithms. One thread at a time. */
#ifndef NR_COMM_H
#define NR_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/real.h"
#include "norma/err.h"

struct nr_comm;

/* Several ranks, as the launcher's environment says; *out NULL: this process is alone. srun without MPI (copies that know nothing of
 * each other) is refused; all: also a process that the script of a job with several tasks started by itself. limit: seconds that a rank
 * waits for another before it gives up. */
int nr_comm_open(struct nr_comm **out, double limit, bool all, struct nr_error *);
/* The error at hand is known to all ranks: each of them ends by itself. NULL is fine. */
void nr_comm_agreed(struct nr_comm *);
/* status: 0, or what this process ends with after an error, which ends the others, too, unless they know. NULL is fine. */
void nr_comm_close(struct nr_comm *, int status);
bool nr_comm_knows(const struct nr_comm *);
/* Of NULL: 0 and 1. */
int nr_comm_rank(const struct nr_comm *);
int nr_comm_size(const struct nr_comm *);
const char *nr_comm_host(const struct nr_comm *, int rank);
int nr_comm_hosts(const struct nr_comm *);      /* how many */
/* "Open MPI v4.1.4" */
const char *nr_comm_library(const struct nr_comm *);

/* all[r] = mine of rank r, everywhere. NULL: a copy. */
int nr_comm_gather(struct nr_comm *, const void *mine, size_t bytes, void *all, struct nr_error *);
/* Everybody has arrived. patient: however long it takes, where one rank may have hours of work before; the launcher ends those that wait
 * for a rank that died. */
int nr_comm_meet(struct nr_comm *, bool patient, struct nr_error *);
/* *it, which says something of this rank, stays true if it is true on every rank. After an error it is as it was. */
int nr_comm_every(struct nr_comm *, bool *it, struct nr_error *);
/* Items (n, bytes) that ranks made, some each: those of owner[i] go everywhere; -1: nobody's. owner NULL: they are dealt out in turn. */
int nr_comm_spread(struct nr_comm *, int64_t n, size_t bytes, const int32_t *owner, void *items, struct nr_error *);
/* Those that are dealt out in turn by batches of so many. */
int nr_comm_spread_batches(struct nr_comm *, int64_t n, int64_t batch, size_t bytes, void *items, struct nr_error *);
/* Which rank has item (or batch) i of those that are dealt out in turn, and is it this one? */
static inline int32_t nr_comm_owner(const struct nr_comm *c, int64_t i) { return (int32_t)(i % nr_comm_size(c)); }
static inline bool nr_comm_mine(const struct nr_comm *c, int64_t i) { return nr_comm_owner(c, i) == nr_comm_rank(c); }

/* x becomes the sum over ranks, everywhere: (x0 + x1) + (x2 + x3), ... A sum travels in pieces: begin, then poll until it says 1 (or a
 * negative error). All ranks begin theirs in the same order; a few may be on their way at a time, with numbers that differ. */
enum { NR_SUM_STEPS = 66 };
struct nr_comm_sum {
	struct nr_comm *comm;
	real *x, *room;                     /* room: as large as x, until the sum is there */
	struct { int64_t from, n; } kept[NR_SUM_STEPS];         /* what a rank had at each level */
	uint64_t request[2];                /* MPI's: sent, received; 0 pointers are none */
	int step, number;
	bool sent, received;                /* of the step at hand */
	bool bf16;                          /* values travel as bf16: half the traffic, rounded at each hop */
	double since;                       /* when the step began */
};
void nr_comm_sum_begin(struct nr_comm_sum *, struct nr_comm *, int64_t n, real *x, real *room, int number);
int nr_comm_sum_poll(struct nr_comm_sum *, struct nr_error *);
/* A pause for whoever polls: short at first. */
void nr_comm_pause(double waited);
/* All of it. */
int nr_comm_sum(struct nr_comm *, int64_t n, real *x, real *room, struct nr_error *);

#endif
