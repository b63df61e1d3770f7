/* Ranks on MPI: see comm.h. The library is opened at run time, in the launcher's own kind first; what is called is a table of
 * functions that all of them share. Handles are pointers in Open MPI and in the MPI 5 ABI and integers in MPICH's: both fit into a
 * pointer, and a call takes either from the same register.
 *
 * Everything is made of sends and receives that are asked after until they are done, so that every wait has an end. A sum over
 * P = 2^k ranks halves the piece that a rank is responsible for with the neighbour at distance 1, then 2, 4, ..., and collects the
 * pieces on the way back (Rabenseifner 2004). So every value is summed by the binary tree over ranks, whoever adds it up. Ranks
 * beyond a power of two first give theirs to rank r - P. */
#include "graph/comm.h"

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "math/bf16.h"
#include "math/row.h"

/* ---- MPI ---------------------------------------------------------------------------------------------------------------------- */

typedef void *handle;
struct table {
	int (*Init_thread)(int *, char ***, int, int *);
	int (*Initialized)(int *);
	int (*Finalize)(void);
	int (*Abort)(handle, int);
	int (*Comm_size)(handle, int *);
	int (*Comm_rank)(handle, int *);
	int (*Isend)(const void *, int, handle, int, int, handle, uint64_t *);
	int (*Irecv)(void *, int, handle, int, int, handle, uint64_t *);
	int (*Test)(uint64_t *, int *, void *);
	int (*Get_library_version)(char *, int *);
	int (*Comm_set_errhandler)(handle, handle);
};
static const struct { const char *name; size_t at; } functions[] = {
#define FUNCTION(f) { "MPI_" #f, offsetof(struct table, f) }
	FUNCTION(Init_thread), FUNCTION(Initialized), FUNCTION(Finalize), FUNCTION(Abort), FUNCTION(Comm_size), FUNCTION(Comm_rank),
	FUNCTION(Isend), FUNCTION(Irecv), FUNCTION(Test), FUNCTION(Get_library_version),
	FUNCTION(Comm_set_errhandler),
#undef FUNCTION
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* What the kinds of MPI disagree on. Open MPI has addresses of its own objects. */
struct kind { const char *library[3]; uintptr_t world, byte, errors_return; int serialized; };
enum { OPEN_MPI, MPICH, ABI, KINDS };
static const struct kind kinds[KINDS] = {
	[OPEN_MPI] = { { "libmpi.so.40", "libmpi.so.80", NULL }, 0, 0, 0, 2 },
	[MPICH] = { { "libmpi.so.12", "libmpich.so.12", NULL }, 0x44000000, 0x4c00010d, 0x54000001, 2 },
	[ABI] = { { "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so" }, 0x101, 0x247, 0x143, 2048 },
};

enum { HOST = 64, STATUS = 128, SMALL = 1 << 20, TAG = 64, WINDOW = 16 << 20 };
struct nr_comm {
	struct nr_arena *arena;
	struct table mpi;
	handle world, byte, errors_return;
	int rank, size, whole;          /* whole: the largest power of two that is no more than size */
	double limit;
	char (*host)[HOST];
	char *said;                     /* (size) of nr_comm_every */
	int64_t *count;                 /* (size) of nr_comm_spread */
	char library[96];
	struct room { char *at; size_t bytes; } gathers, spreads;
	bool agreed, lost;              /* lost: a call failed, so that nothing can be asked of any other */
};

int nr_comm_rank(const struct nr_comm *c) { return c ? c->rank : 0; }
int nr_comm_size(const struct nr_comm *c) { return c ? c->size : 1; }
const char *nr_comm_host(const struct nr_comm *c, int rank) { return c->host ? c->host[rank] : "?"; }
int nr_comm_hosts(const struct nr_comm *c)
{
	int n = 0;
	for (int r = 0; r < c->size; r++) {
		int before = 0;
		while (strcmp(c->host[before], c->host[r]) != 0) before++;
		n += before == r;
	}
	return n;
}

void nr_comm_agreed(struct nr_comm *c)
{
	if (c) c->agreed = true;
}
bool nr_comm_knows(const struct nr_comm *c) { return c && c->agreed; }
const char *nr_comm_library(const struct nr_comm *c) { return c->library; }

static bool bind(struct nr_comm *c, void *library, int kind)
{
	for (int i = 0; i < FUNCTIONS; i++) {
		void *f = dlsym(library, functions[i].name);
		if (!f) return false;
		memcpy((char *)&c->mpi + functions[i].at, &f, sizeof f);
	}
	c->world = kind == OPEN_MPI ? dlsym(library, "ompi_mpi_comm_world") : (handle)kinds[kind].world;
	c->byte = kind == OPEN_MPI ? dlsym(library, "ompi_mpi_byte") : (handle)kinds[kind].byte;
	c->errors_return = kind == OPEN_MPI ? dlsym(library, "ompi_mpi_errors_return") : (handle)kinds[kind].errors_return;
	return c->world && c->byte && c->errors_return;
}

/* A library that somebody names: its kind shows in its symbols, or in its name. */
static int kind_of(void *library, const char *path)
{
	if (dlsym(library, "ompi_mpi_comm_world")) return OPEN_MPI;
	return strstr(path, "libmpi_abi") ? ABI : MPICH;
}

/* RTLD_GLOBAL: Open MPI's own plugins look for its symbols. It stays open. Returns its kind, or -1. */
static int load(struct nr_comm *c)
{
	const char *named = getenv("NORMA_MPI");
	void *library = named && *named ? dlopen(named, RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (named && *named) {
		const int kind = library ? kind_of(library, named) : -1;
		return library && bind(c, library, kind) ? kind : -1;
	}
	const int first = getenv("OMPI_COMM_WORLD_SIZE") || !getenv("PMI_SIZE") ? OPEN_MPI : MPICH;
	for (int i = 0; i < KINDS; i++) {
		const int kind = (first + i) % KINDS;
		for (int j = 0; j < 3 && kinds[kind].library[j]; j++)
			if ((library = dlopen(kinds[kind].library[j], RTLD_NOW | RTLD_GLOBAL)) && bind(c, library, kind)) return kind;
	}
	return -1;
}

/* ---- the launcher ---------------------------------------------------------------------------------------------------------------- */

static int number_in(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : 0;
}

static int launched(bool all, struct nr_error *err)
{
	static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_SIZE", NULL };
	for (int i = 0; sizes[i]; i++)
		if (number_in(sizes[i]) > 0) return number_in(sizes[i]);
	const int step = number_in("SLURM_STEP_NUM_TASKS"), tasks = step || !all ? step : number_in("SLURM_NTASKS");
	if (tasks <= 1) return 1;
	if (getenv("PMIX_RANK")) return tasks;
	nr_fail(err, NR_EUSAGE, "cannot train as one of several copies", NULL,
		"Slurm has %d tasks here, but they know nothing of each other", tasks);
	nr_hint(err, "use srun --mpi=pmix (`srun --mpi=list` shows others) or mpirun, or srun --ntasks=1 for one process");
	return err->code;
}

static int limit_reached(const struct nr_comm *c, int peer, struct nr_error *err)
{
	nr_fail(err, NR_EIO, "no answer from another rank", NULL, "rank %d on %s has waited %.0f s for rank %d on %s", c->rank,
		nr_comm_host(c, c->rank), c->limit, peer, nr_comm_host(c, peer));
	return nr_hint(err, "that process or the network is gone, or slow: see --rank-timeout");
}

static int cannot_reach(const struct nr_comm *c, int peer, struct nr_error *err)
{
	nr_fail(err, NR_EIO, "lost another rank", NULL, "rank %d on %s cannot reach rank %d on %s", c->rank, nr_comm_host(c, c->rank), peer,
		nr_comm_host(c, peer));
	return nr_hint(err, "that process or the network is gone; the last checkpoint is whole");
}

void nr_comm_pause(double waited)
{
	if (waited < 2e-4) return;
	if (waited < 2e-3) {
		sched_yield();
		return;
	}
	nanosleep(&(struct timespec){ .tv_nsec = waited < 0.1 ? 50000 : 1000000 }, NULL);
}

static void send(struct nr_comm *c, const void *p, size_t bytes, int peer, int tag, uint64_t *request)
{
	*request = 0;
	c->lost |= c->mpi.Isend(p, (int)bytes, c->byte, peer, tag, c->world, request) != 0;
}
static void receive(struct nr_comm *c, void *p, size_t bytes, int peer, int tag, uint64_t *request)
{
	*request = 0;
	c->lost |= c->mpi.Irecv(p, (int)bytes, c->byte, peer, tag, c->world, request) != 0;
}
static bool done(struct nr_comm *c, uint64_t *request)
{
	char status[STATUS];            /* larger than any kind's */
	int flag = 0;
	c->lost |= !c->lost && c->mpi.Test(request, &flag, status) != 0;
	return flag && !c->lost;
}

/* Both ways at once, in pieces whose size an int can say. */
static int swap(struct nr_comm *c, const char *mine, int to, char *theirs, int from, size_t bytes, struct nr_error *err)
{
	for (size_t at = 0; at < bytes || !at; at += SMALL) {
		const size_t n = bytes - at < SMALL ? bytes - at : SMALL;
		uint64_t out, in;
		bool sent = false, received = false;
		receive(c, theirs + at, n, from, 1, &in);
		send(c, mine + at, n, to, 1, &out);
		const double began = nr_clock();
		for (;;) {
			if (!sent) sent = done(c, &out);
			if (!received) received = done(c, &in);
			if (sent && received) break;
			if (c->lost) return cannot_reach(c, received ? to : from, err);
			const double waited = nr_clock() - began;
			if (waited > c->limit) return limit_reached(c, received ? to : from, err);
			nr_comm_pause(waited);
		}
	}
	return NR_OK;
}

static int out_of_memory(struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot speak to the other ranks", NULL, "out of memory");
}

/* The first time only; at least twice as much as before. NULL: out of memory. */
static char *room_for(struct nr_comm *c, struct room *r, size_t need)
{
	if (need > r->bytes) {
		const size_t more = need > 2 * r->bytes ? need : 2 * r->bytes;
		r->at = nr_arena_alloc(c->arena, more);
		r->bytes = r->at ? more : 0;
	}
	return r->at;
}

/* Bruck's: after step i a rank has the blocks of the 2^i ranks from its own on. */
int nr_comm_gather(struct nr_comm *c, const void *mine, size_t bytes, void *all, struct nr_error *err)
{
	if (!c) {
		memcpy(all, mine, bytes);
		return NR_OK;
	}
	char *room = room_for(c, &c->gathers, bytes * (size_t)c->size + 1);
	if (!room) return out_of_memory(err);
	memcpy(room, mine, bytes);
	for (int have = 1; have < c->size; have *= 2) {
		const int n = have < c->size - have ? have : c->size - have;
		if (swap(c, room, (c->rank - have + c->size) % c->size, room + (size_t)have * bytes, (c->rank + have) % c->size,
			    (size_t)n * bytes, err))
			return err->code;
	}
	for (int i = 0; i < c->size; i++)
		memcpy((char *)all + (size_t)((c->rank + i) % c->size) * bytes, room + (size_t)i * bytes, bytes);
	return NR_OK;
}

int nr_comm_every(struct nr_comm *c, bool *it, struct nr_error *err)
{
	const char mine = *it;
	if (!c) return NR_OK;
	if (nr_comm_gather(c, &mine, 1, c->said, err)) return err->code;
	*it = !memchr(c->said, 0, (size_t)c->size);
	return NR_OK;
}

int nr_comm_meet(struct nr_comm *c, bool patient, struct nr_error *err)
{
	bool here = true;
	if (!c) return NR_OK;
	const double limit = c->limit;
	if (patient) c->limit = INFINITY;
	const int code = nr_comm_every(c, &here, err);
	c->limit = limit;
	return code;
}

/* owner NULL: in turn, by batches. */
struct dealt { const int32_t *owner; int64_t batch; };
static int32_t owner_of(const struct nr_comm *c, const struct dealt *d, int64_t i)
{
	return d->owner ? d->owner[i] : nr_comm_owner(c, i / d->batch);
}

/* A rank's own items of a window, one after the other, from rank to rank. */
static int spread_window(struct nr_comm *c, int64_t from, int64_t to, size_t bytes, const struct dealt *d, char *items,
	struct nr_error *err)
{
	int64_t most = 0, *count = c->count;
	memset(count, 0, (size_t)c->size * sizeof *count);
	for (int64_t i = from; i < to; i++) {
		const int32_t o = owner_of(c, d, i);
		if (o >= 0 && ++count[o] > most) most = count[o];
	}
	const size_t all = (size_t)most * bytes;
	char *mine = room_for(c, &c->spreads, all * (size_t)(c->size + 1) + 1);
	if (!mine) return out_of_memory(err);
	char *theirs = mine + all;
	for (int64_t i = from, k = 0; i < to; i++)
		if (owner_of(c, d, i) == c->rank) memcpy(mine + (size_t)k++ * bytes, items + (size_t)i * bytes, bytes);
	if (most && nr_comm_gather(c, mine, all, theirs, err)) return err->code;
	memset(count, 0, (size_t)c->size * sizeof *count);
	for (int64_t i = from; i < to; i++) {
		const int32_t o = owner_of(c, d, i);
		if (o >= 0) memcpy(items + (size_t)i * bytes, theirs + (size_t)o * all + (size_t)count[o]++ * bytes, bytes);
	}
	return NR_OK;
}

static int spread(struct nr_comm *c, int64_t n, size_t bytes, const struct dealt *d, void *items, struct nr_error *err)
{
	const int64_t each = 1 + (int64_t)(WINDOW / (bytes ? bytes : 1));
	for (int64_t from = 0; c && from < n; from += each)
		if (spread_window(c, from, from + each < n ? from + each : n, bytes, d, items, err)) return err->code;
	return NR_OK;
}

int nr_comm_spread(struct nr_comm *c, int64_t n, size_t bytes, const int32_t *owner, void *items, struct nr_error *err)
{
	return spread(c, n, bytes, &(struct dealt){ owner, 1 }, items, err);
}

int nr_comm_spread_batches(struct nr_comm *c, int64_t n, int64_t batch, size_t bytes, void *items, struct nr_error *err)
{
	return spread(c, n, bytes, &(struct dealt){ NULL, batch }, items, err);
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------------- */

static int levels_of(const struct nr_comm *c) { return __builtin_ctz((unsigned)c->whole); }

/* What a rank does in a step: where it sends which values, whose it takes, and whether it adds them. */
struct move { int to, from; int64_t send, n_send, take, n_take; bool add; };

static struct move move_of(const struct nr_comm_sum *s)
{
	const struct nr_comm *c = s->comm;
	const int L = levels_of(c), r = c->rank, last = 2 * L + 1, n = (int)(r >= c->whole);
	const int64_t all = s->kept[0].n;
	struct move m = { .to = -1, .from = -1 };
	if (s->step == 0 || s->step == last) {          /* of the ranks beyond a power of two */
		const int other = n ? r - c->whole : r + c->whole;
		const bool gives = n == (s->step == 0);
		if (other >= c->size) return m;
		if (gives) m.to = other, m.n_send = all;
		else m.from = other, m.n_take = all, m.add = s->step == 0;
		return m;
	}
	if (n) return m;
	const bool down = s->step <= L;
	const int i = down ? s->step - 1 : last - 1 - s->step, peer = r ^ (1 << i), upper = r >> i & 1;
	const int64_t from = s->kept[i].from, half = s->kept[i].n / 2, rest = s->kept[i].n - half;
	m.to = m.from = peer;
	m.add = down;
	const bool sends_upper = down ? !upper : upper;
	m.send = sends_upper ? from + half : from;
	m.n_send = sends_upper ? rest : half;
	m.take = sends_upper ? from : from + half;
	m.n_take = sends_upper ? half : rest;
	return m;
}

static void start(struct nr_comm_sum *s)
{
	const struct move m = move_of(s);
	struct nr_comm *c = s->comm;
	const int tag = TAG + s->number;
	const int64_t n = s->kept[0].n;
	s->since = nr_clock();
	s->sent = !m.n_send || m.to < 0;
	s->received = !m.n_take || m.from < 0;
	uint16_t *half = (uint16_t *)s->room;           /* room for the whole of x, twice, as bf16 */
	const bool whole_take = !s->bf16 && !m.add;
	if (!s->received && s->bf16) receive(c, half + n + m.take, (size_t)m.n_take * sizeof *half, m.from, tag, &s->request[1]);
	else if (!s->received)
		receive(c, (whole_take ? s->x : s->room) + m.take, (size_t)m.n_take * sizeof(real), m.from, tag, &s->request[1]);
	if (s->sent) return;
	if (!s->bf16) {
		send(c, s->x + m.send, (size_t)m.n_send * sizeof(real), m.to, tag, &s->request[0]);
		return;
	}
	const bool whole = s->step > levels_of(c);      /* a finished sum: all ranks keep the same */
	for (int64_t i = m.send; i < m.send + m.n_send; i++) {
		half[i] = nr_bf16_of((float)s->x[i]);
		if (whole) s->x[i] = (real)nr_bf16_float(half[i]);
	}
	send(c, half + m.send, (size_t)m.n_send * sizeof *half, m.to, tag, &s->request[0]);
}

/* What arrived goes where it belongs. */
static void finish(struct nr_comm_sum *s)
{
	const struct move m = move_of(s);
	const int L = levels_of(s->comm), i = s->step - 1;
	const uint16_t *half = (const uint16_t *)s->room + s->kept[0].n;
	if (m.from >= 0 && m.n_take && s->bf16) {
		for (int64_t j = m.take; j < m.take + m.n_take; j++) s->x[j] = (m.add ? s->x[j] : 0) + (real)nr_bf16_float(half[j]);
	} else if (m.from >= 0 && m.n_take && m.add) nr_row_add(m.n_take, s->x + m.take, s->room + m.take, s->x + m.take);
	if (s->step >= 1 && s->step <= L) {
		s->kept[i + 1].from = m.take;
		s->kept[i + 1].n = m.n_take;
	}
	s->step++;
}

void nr_comm_sum_begin(struct nr_comm_sum *s, struct nr_comm *c, int64_t n, real *x, real *room, int number)
{
	*s = (struct nr_comm_sum){ .comm = c, .x = x, .room = room, .number = number, .bf16 = s->bf16 };
	s->kept[0].n = n;
	start(s);
}

int nr_comm_sum_poll(struct nr_comm_sum *s, struct nr_error *err)
{
	struct nr_comm *c = s->comm;
	const int last = 2 * levels_of(c) + 1;
	while (s->step <= last) {
		if (!s->sent) s->sent = done(c, &s->request[0]);
		if (!s->received) s->received = done(c, &s->request[1]);
		if (!s->sent || !s->received) {
			const struct move m = move_of(s);
			if (c->lost) return cannot_reach(c, s->received ? m.to : m.from, err);
			if (nr_clock() - s->since > c->limit) return limit_reached(c, s->received ? m.to : m.from, err);
			return 0;
		}
		finish(s);
		if (s->step <= last) start(s);
	}
	return 1;
}

int nr_comm_sum(struct nr_comm *c, int64_t n, real *x, real *room, struct nr_error *err)
{
	struct nr_comm_sum s = { 0 };
	int code = 1;
	if (c) nr_comm_sum_begin(&s, c, n, x, room, 0);
	while (c && !(code = nr_comm_sum_poll(&s, err))) nr_comm_pause(nr_clock() - s.since);
	return code < 0 ? code : NR_OK;
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------- */

static int no_library(int ranks, struct nr_error *err)
{
	nr_fail(err, NR_EIO, "cannot open MPI", getenv("NORMA_MPI"),
		"this process was started as one of %d ranks, but no MPI library was found", ranks);
	return nr_hint(err,
		"install the launcher's library (Open MPI, MPICH, or with the MPI 5 ABI), or name it: NORMA_MPI=/path/libmpi.so");
}

static int start_mpi(struct nr_comm *c, int kind, int ranks, struct nr_error *err)
{
	char version[16384] = "";
	int there = 0, level, n;
	c->mpi.Initialized(&there);
	if (!there && c->mpi.Init_thread(NULL, NULL, kinds[kind].serialized, &level))
		return nr_fail(err, NR_EIO, "cannot start MPI", NULL, "MPI_Init_thread failed");
	c->mpi.Comm_set_errhandler(c->world, c->errors_return);
	c->mpi.Comm_size(c->world, &c->size);
	c->mpi.Comm_rank(c->world, &c->rank);
	c->mpi.Get_library_version(version, &n);
	version[strcspn(version, "\n,")] = 0;
	char *colon = strstr(version, " Version:");               /* "MPICH Version:\t4.0.2" */
	const char *number = colon ? colon + strlen(" Version:") : "";
	if (colon) *colon = 0;
	snprintf(c->library, sizeof c->library, "%s%s%s", version, colon ? " " : "", number + strspn(number, "\t "));
	if (c->size == ranks) return NR_OK;
	nr_fail(err, NR_EUSAGE, "cannot speak to the other ranks", c->library, "the launcher started %d, but this library sees %d", ranks,
		c->size);
	return nr_hint(err, "launcher and library must be of one kind: NORMA_MPI=/path/libmpi.so names another library");
}

int nr_comm_open(struct nr_comm **out, double limit, bool all, struct nr_error *err)
{
	const int ranks = launched(all, err);
	*out = NULL;
	if (ranks <= 1) return ranks < 0 ? ranks : NR_OK;
	struct nr_arena *arena = nr_arena_make();
	struct nr_comm *c = arena ? nr_arena_alloc(arena, sizeof *c) : NULL;
	if (!c) {
		nr_arena_free(arena);
		return out_of_memory(err);
	}
	c->arena = arena;
	c->limit = limit;
	const int kind = load(c);
	int code = kind < 0 ? no_library(ranks, err) : start_mpi(c, kind, ranks, err);
	for (c->whole = 1; 2 * c->whole <= c->size;) c->whole *= 2;
	char host[HOST] = "";
	gethostname(host, sizeof host - 1);
	char(*hosts)[HOST] = code ? NULL : nr_arena_alloc(arena, (size_t)c->size * sizeof *hosts);
	c->said = code ? NULL : nr_arena_alloc(arena, (size_t)c->size);
	c->count = code ? NULL : nr_arena_alloc(arena, (size_t)c->size * sizeof *c->count);
	if (!code) code = hosts && c->said && c->count ? nr_comm_gather(c, host, sizeof host, hosts, err) : out_of_memory(err);
	c->host = hosts;
	if (!code) *out = c;
	else nr_arena_free(arena);      /* the caller has yet to say why; ending without MPI_Finalize ends the other ranks */
	return code;
}

void nr_comm_close(struct nr_comm *c, int status)
{
	if (!c) return;
	if (status && !c->agreed && c->world) c->mpi.Abort(c->world, status);
	else if (c->world) c->mpi.Finalize();
	nr_arena_free(c->arena);
}
