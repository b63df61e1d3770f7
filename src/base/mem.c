/* Arenas and slabs: see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/points.h"

enum { FIRST_BLOCK = 16 << 10, LAST_BLOCK = 1 << 20, HUGE_PAGE = 2 << 20, LINE = 64 };

struct block {
	struct block *prev;
	size_t size, used;  /* bytes after the header */
	char pad[LINE - 3 * sizeof(size_t)];
	char data[];        /* 64-byte aligned: the header is one line */
};
_Static_assert(sizeof(struct block) == LINE, "data must start on a cache line");

struct nr_arena {
	struct block *top;
	size_t next;  /* size of the next block; doubles, so that a big arena has few */
};

struct nr_arena *nr_arena_make(void)
{
	struct nr_arena *a = calloc(1, sizeof *a);
	if (a)
		a->next = FIRST_BLOCK;
	return a;
}

void nr_arena_free(struct nr_arena *a)
{
	if (!a)
		return;
	nr_arena_reset(a, (struct nr_mark){ 0 });
	free(a);
}

static _Atomic int64_t failures;
int64_t nr_memory_failures(void) { return failures; }
void nr_memory_note_failure(void) { failures++; }

int nr_memory_since(int64_t before, const char *what, const char *subject, struct nr_error *err)
{
	return nr_memory_failures() == before ? NR_OK : nr_fail(err, NR_EMEMORY, what, subject, "out of memory");
}

static struct block *push_block(struct nr_arena *a, size_t need)
{
	size_t size = need > a->next ? need : a->next;
	size = (size + LINE - 1) / LINE * LINE;
	struct block *b = aligned_alloc(LINE, sizeof *b + size);
	if (!b) {
		nr_memory_note_failure();
		return NULL;
	}
	*b = (struct block){ .prev = a->top, .size = size };
	a->top = b;
	if (a->next < LAST_BLOCK)
		a->next *= 2;
	return b;
}

void *nr_arena_alloc(struct nr_arena *a, size_t size)
{
	if (size > SIZE_MAX / 4)
		return NULL;
	size_t align = size >= LINE ? LINE : 16;
	struct block *b = a->top;
	size_t at = b ? (b->used + align - 1) / align * align : 0;
	if (!b || at > b->size || b->size - at < size) {
		b = push_block(a, size);
		if (!b)
			return NULL;
		at = 0;
	}
	b->used = at + size;
	return memset(b->data + at, 0, size);
}

char *nr_arena_strdup(struct nr_arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = nr_arena_alloc(a, n);
	return copy ? memcpy(copy, s, n) : NULL;
}

char *nr_arena_printf(struct nr_arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	const locale_t before = nr_points_begin();
	int n = vsnprintf(NULL, 0, fmt, ap);
	char *s = n < 0 ? NULL : nr_arena_alloc(a, (size_t)n + 1);
	if (s)
		vsnprintf(s, (size_t)n + 1, fmt, again);
	nr_points_end(before);
	va_end(again);
	va_end(ap);
	return s;
}

struct nr_mark nr_arena_mark(const struct nr_arena *a)
{
	return (struct nr_mark){ a->top, a->top ? a->top->used : 0 };
}

void nr_arena_reset(struct nr_arena *a, struct nr_mark m)
{
	while (a->top && a->top != m.block) {
		struct block *b = a->top;
		a->top = b->prev;
		free(b);
	}
	if (a->top)
		a->top->used = m.used;
}

/* Slabs of 2 MiB and more start on a huge page and fill whole ones, so that the kernel can back them all with
 * huge pages. */
static size_t slab_unit(size_t bytes)
{
	return bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;
}

void *nr_slab_make(size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		return NULL;
	size_t unit = slab_unit(bytes), size = (bytes + unit - 1) / unit * unit;
	if (size == 0)
		size = unit;
	size_t extra = unit == HUGE_PAGE ? HUGE_PAGE : 0;
	char *p = mmap(NULL, size + extra, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (!extra)
		return p;
	size_t head = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (head)
		munmap(p, head);
	if (extra - head)
		munmap(p + head + size, extra - head);
	madvise(p + head, size, MADV_HUGEPAGE);  /* a wish: the slab works without */
	return p + head;
}

void nr_slab_free(void *p, size_t bytes)
{
	if (!p)
		return;
	size_t unit = slab_unit(bytes), size = (bytes + unit - 1) / unit * unit;
	munmap(p, size ? size : unit);
}

int64_t nr_memory_most(void)
{
	struct sysinfo system;
	struct rlimit own;
	int64_t most = INT64_MAX;
	if (!sysinfo(&system))
		most = (int64_t)(system.totalram + system.totalswap) * (int64_t)system.mem_unit;
	if (!getrlimit(RLIMIT_AS, &own) && own.rlim_cur != RLIM_INFINITY && own.rlim_cur < (rlim_t)most)
		most = (int64_t)own.rlim_cur;
	return most;
}

int nr_memory_check(double bytes, const char *what, const char *subject, struct nr_error *err)
{
	const double most = (double)nr_memory_most();
	if (bytes <= most)
		return NR_OK;
	nr_fail(err, NR_EMEMORY, what, subject, "it needs at least %.1f GiB, and %.1f GiB are all there is", bytes / 0x1p30, most / 0x1p30);
	return NR_EMEMORY;
}
