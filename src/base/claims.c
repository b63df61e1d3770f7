/* Claims in a shared folder: see claims.h. */
#include "base/claims.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/save.h"

enum { NAME = 256, MANY = 32 };             /* claims of one name: one, and what dead processes left */

struct own { struct own *next; int64_t number; char name[]; };
struct nr_claims {
	char *folder, me[NAME], system[128];
	char text[512];                     /* of our file */
	double beat_at;                     /* nr_clock of the last heartbeat */
	struct timespec beat;               /* the same by the clock of the file system */
	struct own *own;
};
struct claim { int64_t number; char owner[NAME]; };

static const char process_end[] = ".process", claim_end[] = ".claim";

static bool path_of(const struct nr_claims *c, char *path, size_t size, const char *name, const char *end)
{
	return snprintf(path, size, "%s/%s%s", c->folder, name, end) < (int)size;
}

static bool claim_path(const struct nr_claims *c, char *path, size_t size, const char *name, int64_t number)
{
	return snprintf(path, size, "%s/%s.%lld%s", c->folder, name, (long long)number, claim_end) < (int)size;
}

static int too_long(const struct nr_claims *c, struct nr_error *err)
{
	return nr_fail(err, NR_EIO, "cannot write", c->folder, "its path is too long");
}

/* The whole of a small file as text. false: it is not there. What cannot be read is empty. */
static bool slurp(const char *path, char *text, size_t size, struct timespec *changed)
{
	struct stat st = { 0 };
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	text[0] = 0;
	if (fd < 0) return errno != ENOENT && errno != ESTALE;
	const ssize_t n = read(fd, text, size - 1);
	text[n > 0 ? n : 0] = 0;
	if (!fstat(fd, &st) && changed) *changed = st.st_mtim;
	close(fd);
	return true;
}

/* ---- processes ---------------------------------------------------------------------------------------------------------------- */

/* In clock ticks since the system started; 0: unknown. */
static unsigned long long start_of(long pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	if (!slurp(path, text, sizeof text, NULL)) return 0;
	const char *s = strrchr(text, ')');             /* the name before it may have spaces */
	for (int field = 2; s && field < 22; field++) s = strchr(s + 1, ' ');
	return s && sscanf(s, "%llu", &start) == 1 ? start : 0;
}

/* Processes of one system see each other by their numbers: the same boot, the same name space. */
static void system_name(char *name, size_t size)
{
	char boot[64], space[64];
	if (!slurp("/proc/sys/kernel/random/boot_id", boot, sizeof boot, NULL)) boot[0] = 0;
	boot[strcspn(boot, "\n")] = 0;
	const ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
	space[n > 0 ? n : 0] = 0;
	snprintf(name, size, "%s %s", boot, space);
}

static double seconds_between(struct timespec from, struct timespec to)
{
	return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Clocks of hosts differ: both times are the file system's, ours as of our last heartbeat. */
static bool silent(const struct nr_claims *c, struct timespec since)
{
	return seconds_between(since, c->beat) + (nr_clock() - c->beat_at) > NR_CLAIM_PATIENCE;
}

static bool process_lives(const struct nr_claims *c, const char *owner, struct nr_holder *holder)
{
	char path[PATH_MAX], text[512], system[128] = "";
	unsigned long long start = 0;
	struct nr_holder h = { .pid = 0 };
	if (!path_of(c, path, sizeof path, owner, process_end) || !slurp(path, text, sizeof text, &h.beat)) return false;
	sscanf(text, "host %127s pid %ld start %llu system %127[^\n]", h.host, &h.pid, &start, system);
	h.here = h.pid > 0 && !strcmp(system, c->system);
	if (holder) *holder = h;
	if (!h.here) return !silent(c, h.beat);
	if (kill((pid_t)h.pid, 0) && errno == ESRCH) return false;
	const unsigned long long now = start_of(h.pid);
	return !now || now == start;                    /* another process may have got its number */
}

/* Our file, and what time the file system thinks it is. */
static int join(struct nr_claims *c, struct nr_error *err)
{
	char path[PATH_MAX];
	struct stat st;
	if (!path_of(c, path, sizeof path, c->me, process_end)) return too_long(c, err);
	int fd = -1;
	for (int tries = 0; fd < 0 && tries < 5; tries++) {    /* the last one of others who leave removes the folder */
		if (nr_folder_make(c->folder, err)) return err->code;
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
		if (fd < 0 && errno != ENOENT) break;
	}
	const size_t n = strlen(c->text);
	bool fine = fd >= 0 && write(fd, c->text, n) == (ssize_t)n && !futimens(fd, NULL) && !fstat(fd, &st);
	const int number = errno;
	if (fd >= 0 && close(fd)) fine = false;
	if (!fine) return nr_fail(err, NR_EIO, "cannot write", path, "%s", strerror(number ? number : EIO));
	c->beat = st.st_mtim;
	c->beat_at = nr_clock();
	return NR_OK;
}

static const char *ends_with(const char *name, const char *end)
{
	const size_t n = strlen(name), k = strlen(end);
	return n > k && !strcmp(name + n - k, end) ? name + n - k : NULL;
}

/* Files of processes that are dead. Their claims are dead with them. */
static void sweep(const struct nr_claims *c)
{
	DIR *d = opendir(c->folder);
	for (const struct dirent *f; d && (f = readdir(d));) {
		char owner[NAME], path[PATH_MAX];
		const char *end = ends_with(f->d_name, process_end);
		if (!end || snprintf(owner, sizeof owner, "%.*s", (int)(end - f->d_name), f->d_name) >= (int)sizeof owner) continue;
		const bool dead = strcmp(owner, c->me) && !process_lives(c, owner, NULL);
		if (dead && path_of(c, path, sizeof path, owner, process_end)) unlink(path);
	}
	if (d) closedir(d);
}

int nr_claims_open(struct nr_claims **to, const char *folder, struct nr_error *err)
{
	char host[100] = "";
	struct nr_claims *c = calloc(1, sizeof *c);
	*to = c;
	if (c) c->folder = strdup(folder);
	if (!c || !c->folder) return nr_fail(err, NR_EMEMORY, "cannot share", folder, "out of memory");
	if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "host");
	for (char *s = host; *s; s++)
		if (*s == '/' || (unsigned char)*s <= ' ') *s = '_';
	system_name(c->system, sizeof c->system);
	const long pid = (long)getpid();
	static atomic_uint serial;                      /* one process may join twice */
	snprintf(c->text, sizeof c->text, "host %s\npid %ld\nstart %llu\nsystem %s\nnumber %u\n", host, pid, start_of(pid),
		c->system, atomic_fetch_add(&serial, 1));
	snprintf(c->me, sizeof c->me, "%s.%ld.%08x", host, pid, (unsigned)nr_crc32c(0, c->text, strlen(c->text)));
	if (join(c, err)) return err->code;
	sweep(c);
	return NR_OK;
}

bool nr_claims_beat(struct nr_claims *c)
{
	char path[PATH_MAX];
	struct stat st;
	struct nr_error ignored = { 0 };
	if (nr_clock() - c->beat_at < NR_CLAIM_BEAT) return false;
	if (!path_of(c, path, sizeof path, c->me, process_end) || utimensat(AT_FDCWD, path, NULL, 0) || stat(path, &st)) {
		join(c, &ignored);                      /* we were silent for long: somebody swept it */
		c->beat_at = nr_clock();
		return true;
	}
	c->beat = st.st_mtim;
	c->beat_at = nr_clock();
	return true;
}

/* ---- claims ------------------------------------------------------------------------------------------------------------------- */

/* N of "NAME.N.claim"; 0: it is none of this name. */
static int64_t number_of(const char *file, const char *name)
{
	const size_t n = strlen(name);
	if (strncmp(file, name, n) || file[n] != '.') return 0;
	const char *digits = file + n + 1;
	const size_t count = strspn(digits, "0123456789");
	return count && count < 16 && !strcmp(digits + count, claim_end) ? strtoll(digits, NULL, 10) : 0;
}

static int list(const struct nr_claims *c, const char *name, struct claim *all)
{
	int count = 0;
	DIR *d = opendir(c->folder);
	for (const struct dirent *f; d && count < MANY && (f = readdir(d));) {
		char path[PATH_MAX];
		struct claim one = { .number = number_of(f->d_name, name) };
		if (!one.number || !claim_path(c, path, sizeof path, name, one.number)) continue;
		if (!slurp(path, one.owner, sizeof one.owner, NULL)) continue;       /* dropped just now */
		one.owner[strcspn(one.owner, "\n")] = 0;
		all[count++] = one;
	}
	if (d) closedir(d);
	return count;
}

/* Before its text is in it, a claim lives by its own time. */
static bool claim_lives(const struct nr_claims *c, const char *name, const struct claim *one, struct nr_holder *holder)
{
	char path[PATH_MAX], text[NAME];
	struct timespec changed = { 0 };
	if (*one->owner) return process_lives(c, one->owner, holder);
	return claim_path(c, path, sizeof path, name, one->number) && slurp(path, text, sizeof text, &changed) && !silent(c, changed);
}

/* One more link in our list; the claim's file is there already. */
static int keep(struct nr_claims *c, const char *name, int64_t number, struct nr_error *err)
{
	struct own *o = malloc(sizeof *o + strlen(name) + 1);
	if (!o) return nr_fail(err, NR_EMEMORY, "cannot share", c->folder, "out of memory");
	o->number = number;
	strcpy(o->name, name);
	o->next = c->own;
	c->own = o;
	return NR_OK;
}

/* 1: made; 0: somebody was faster; or an error. */
static int make(struct nr_claims *c, const char *name, int64_t number, struct nr_error *err)
{
	char path[PATH_MAX], text[NAME + 1];
	if (!claim_path(c, path, sizeof path, name, number)) return too_long(c, err);
	int fd = -1;
	for (int tries = 0; fd < 0 && tries < 2; tries++) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno == EEXIST) return 0;
		if (fd < 0 && errno == ENOENT && join(c, err)) return err->code;     /* the folder was removed */
	}
	const int n = snprintf(text, sizeof text, "%s\n", c->me);
	const bool whole = fd >= 0 && write(fd, text, (size_t)n) == n;
	const int number_of_error = errno;
	if (fd >= 0 && (close(fd) || !whole)) unlink(path);
	return whole ? 1 : nr_fail(err, NR_EIO, "cannot write", path, "%s", strerror(number_of_error));
}

static bool among(const struct claim *one, const struct claim *all, int count)
{
	for (int i = 0; i < count; i++)
		if (all[i].number == one->number && !strcmp(all[i].owner, one->owner)) return true;
	return false;
}

int nr_claims_take(struct nr_claims *c, const char *name, bool *taken, struct nr_error *err)
{
	struct claim dead[MANY], now[MANY];
	char path[PATH_MAX];
	int64_t last = 0;
	*taken = false;
	const int old = list(c, name, dead);
	for (int i = 0; i < old; i++) {
		if (!strcmp(dead[i].owner, c->me)) return *taken = true, NR_OK;
		if (claim_lives(c, name, &dead[i], NULL)) return NR_OK;
		if (dead[i].number > last) last = dead[i].number;
	}
	const int code = make(c, name, last + 1, err);
	if (code <= 0) return code;
	const struct claim mine = { .number = last + 1 };
	const int count = list(c, name, now);
	bool alone = count < MANY;
	for (int i = 0; i < count; i++) alone &= now[i].number == mine.number || among(&now[i], dead, old);
	if (!alone || keep(c, name, mine.number, err)) {
		if (claim_path(c, path, sizeof path, name, mine.number)) unlink(path);
		return err && err->code ? (int)err->code : NR_OK;
	}
	for (int i = 0; i < old; i++)
		if (claim_path(c, path, sizeof path, name, dead[i].number)) unlink(path);
	*taken = true;
	return NR_OK;
}

static bool is_ours(const struct nr_claims *c, const struct own *o)
{
	char path[PATH_MAX], owner[NAME];
	if (!claim_path(c, path, sizeof path, o->name, o->number) || !slurp(path, owner, sizeof owner, NULL)) return false;
	owner[strcspn(owner, "\n")] = 0;
	return !strcmp(owner, c->me);
}

bool nr_claims_ours(const struct nr_claims *c, const char *name)
{
	for (const struct own *o = c->own; o; o = o->next)
		if (!strcmp(o->name, name)) return is_ours(c, o);
	return false;
}

void nr_claims_drop(struct nr_claims *c, const char *name)
{
	char path[PATH_MAX];
	for (struct own **at = &c->own; *at; at = &(*at)->next) {
		struct own *o = *at;
		if (strcmp(o->name, name)) continue;
		if (is_ours(c, o) && claim_path(c, path, sizeof path, o->name, o->number)) unlink(path);
		*at = o->next;
		free(o);
		return;
	}
}

bool nr_claims_held(struct nr_claims *c, const char *name, struct nr_holder *holder)
{
	struct claim all[MANY];
	const int count = list(c, name, all);
	if (holder) *holder = (struct nr_holder){ .pid = 0 };
	for (int i = 0; i < count; i++)
		if (claim_lives(c, name, &all[i], holder)) return true;
	return false;
}

void nr_claims_close(struct nr_claims *c)
{
	char path[PATH_MAX];
	if (!c) return;
	while (c->own) nr_claims_drop(c, c->own->name);
	if (*c->me && path_of(c, path, sizeof path, c->me, process_end)) unlink(path);
	if (*c->me) sweep(c);                           /* what killed ones left is nobody's */
	if (c->folder) rmdir(c->folder);
	free(c->folder);
	free(c);
}
