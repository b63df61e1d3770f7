/* LD_PRELOAD: the allocation or the write with a given number fails, once. FAULT_ALLOC=N, FAULT_WRITE=N: which one (from 1);
 * FAULT_COUNT=FILE: how many there were of each is appended to it at the end. FAULT_PATHS=FILE: it gets the number of each allocation
 * that is the first one of its call path. FAULT_WHERE=FILE: it gets the call path of what failed, for `addr2line -f`. FAULT_IN=NAME: only
 * in processes of that command. Writes to standard streams do not count. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <unwind.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long allocations, writes;
static long bad_allocation, bad_write;
static const char *count_file, *where_file;
static int paths = -1;                      /* file; -1: not asked for */
static __thread int inside;                 /* the unwinder's own allocations do not count */

/* Whether the first argument of this process is `name`. */
static int runs(const char *name)
{
	char text[512] = "";
	const int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
	const long n = syscall(SYS_read, fd, text, sizeof text - 1);
	syscall(SYS_close, fd);
	const size_t first = strlen(text) + 1;
	return n > 0 && first < (size_t)n && !strcmp(text + first, name);
}

static int open_file(const char *path)
{
	return path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
}

static long number(const char *name)
{
	const char *text = getenv(name);
	return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *only = getenv("FAULT_IN");
	if (only && !runs(only)) return;
	bad_allocation = number("FAULT_ALLOC");
	bad_write = number("FAULT_WRITE");
	count_file = getenv("FAULT_COUNT");
	where_file = getenv("FAULT_WHERE");
	paths = open_file(getenv("FAULT_PATHS"));
	allocations = writes = 0;
}

__attribute__((destructor)) static void end(void)
{
	char line[64];
	const int n = snprintf(line, sizeof line, "%ld %ld\n", (long)allocations, (long)writes);
	const int fd = open_file(count_file);
	if (fd >= 0) syscall(SYS_write, fd, line, (size_t)n);
}

struct path { uint64_t hash; int depth; };

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *c, void *to)
{
	struct path *p = to;
	p->hash = (p->hash ^ _Unwind_GetIP(c)) * 0x100000001b3u;
	return ++p->depth < 16 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void note_path(long n)
{
	enum { SLOTS = 1 << 16 };
	static _Atomic uint64_t seen[SLOTS];
	struct path p = { 0xcbf29ce484222325u, 0 };
	char line[32];
	inside = 1;
	_Unwind_Backtrace(add_frame, &p);
	for (uint64_t i = p.hash, k = 0; k < SLOTS; i++, k++) {
		uint64_t empty = 0;
		if (atomic_compare_exchange_strong(&seen[i % SLOTS], &empty, p.hash)) {
			syscall(SYS_write, paths, line, (size_t)snprintf(line, sizeof line, "%ld\n", n));
			break;
		}
		if (empty == p.hash) break;
	}
	inside = 0;
}

static int fails(int why)
{
	void *frames[24];
	const int fd = open_file(where_file);
	if (fd >= 0) {
		inside = 1;
		backtrace_symbols_fd(frames, backtrace(frames, 24), fd);
		syscall(SYS_close, fd);
		inside = 0;
	}
	errno = why;
	return 1;
}

static int no_memory(void)
{
	if (inside) return 0;
	const long n = ++allocations;
	if (paths >= 0) note_path(n);
	return n == bad_allocation && fails(ENOMEM);
}

static int no_space(int fd)
{
	return fd >= 3 && ++writes == bad_write && fails(ENOSPC);
}

void *malloc(size_t n) { return no_memory() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return no_memory() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return no_memory() ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { return no_memory() ? NULL : __libc_memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = no_memory() ? NULL : __libc_memalign(align, n);
	if (got) *p = got;
	return got ? 0 : ENOMEM;
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_ANONYMOUS && no_memory()) return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
}

ssize_t write(int fd, const void *p, size_t n) { return no_space(fd) ? -1 : syscall(SYS_write, fd, p, n); }
ssize_t pwrite(int fd, const void *p, size_t n, off_t at) { return no_space(fd) ? -1 : syscall(SYS_pwrite64, fd, p, n, at); }
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at) { return no_space(fd) ? -1 : syscall(SYS_pwrite64, fd, p, n, at); }
int fsync(int fd) { return no_space(fd) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return no_space(fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }
int rename(const char *from, const char *to) { return no_space(3) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to); }
