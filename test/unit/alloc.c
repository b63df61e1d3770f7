/* A step allocates nothing: every allocation of the process goes through the counters below.
 *
 * libgomp keeps one team and makes a new one whenever a region has another number of threads (an `if` clause that is
 * false makes it one), so its own calls are counted apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The benchmark cases as they are, without the command around them. */
#include "../../bench/backbone.c"
#include "../../bench/block.c"
#include "../../bench/cases.c"
#include "../../bench/detect.c"
#include "../../bench/dino.c"
#include "../../bench/graphormer.c"
#include "../../bench/longtext.c"
#include "../../bench/mae.c"
#include "../../bench/run.c"
#include "../../bench/simcse.c"
#include "../../bench/vit.c"

#include "unit/sanitized.h"

#ifndef SANITIZED
#define SHOWN __attribute__((visibility("default"))) /* so that libgomp uses them, too */
static atomic_int counting, count, teams;
static uintptr_t gomp_from, gomp_to;    /* where libgomp's code is */

static int find_gomp(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!strstr(info->dlpi_name, "libgomp") && !strstr(info->dlpi_name, "libomp")) return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X)) continue;
		gomp_from = info->dlpi_addr + h->p_vaddr;
		gomp_to = gomp_from + h->p_memsz;
	}
	return 1;
}

static void note(const void *caller)
{
	if (!atomic_load_explicit(&counting, memory_order_relaxed)) return;
	const uintptr_t at = (uintptr_t)caller;
	atomic_fetch_add_explicit(at >= gomp_from && at < gomp_to ? &teams : &count, 1, memory_order_relaxed);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

SHOWN void *malloc(size_t n)
{
	note(__builtin_return_address(0));
	return __libc_malloc(n);
}
SHOWN void *calloc(size_t n, size_t size)
{
	note(__builtin_return_address(0));
	return __libc_calloc(n, size);
}
SHOWN void *realloc(void *p, size_t n)
{
	note(__builtin_return_address(0));
	return __libc_realloc(p, n);
}
SHOWN void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n)
{
	note(__builtin_return_address(0));
	return __libc_memalign(align, n);
}
SHOWN void *aligned_alloc(size_t align, size_t n)
{
	note(__builtin_return_address(0));
	return __libc_memalign(align, n);
}
SHOWN int posix_memalign(void **p, size_t align, size_t n)
{
	note(__builtin_return_address(0));
	*p = __libc_memalign(align, n);
	return *p ? 0 : ENOMEM;
}
SHOWN void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
	note(__builtin_return_address(0));
	return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd, offset);
}

static void steps_allocate_nothing(const char *name, bool tiny)
{
	struct nr_error err = { 0 };
	struct bench_target t;
	struct bench *b;
	assert_int_equal(bench_target_parse(&t, name, tiny, &err), NR_OK);
	assert_int_equal(bench_open(&b, &t, 0, &err), NR_OK);
	bench_step(b);
	atomic_store(&count, 0);
	atomic_store(&teams, 0);
	atomic_store(&counting, 1);
	bench_step(b);
	atomic_store(&counting, 0);
	assert_true(isfinite(bench_loss(b)));
	bench_close(b);
	print_message("%s%s: %d, and %d teams of libgomp in a step\n", name, tiny ? " (tiny)" : "",
		atomic_load(&count), atomic_load(&teams));
	assert_int_equal(atomic_load(&count), 0);
}

static void the_counter_counts(void **state)
{
	(void)state;
	atomic_store(&count, 0);
	atomic_store(&counting, 1);
	void *volatile p = malloc(100);
	void *volatile q = calloc(3, 100);
	void *volatile r = aligned_alloc(64, 128);
	atomic_store(&counting, 0);
	free(p);
	free(q);
	free(r);
	assert_int_equal(atomic_load(&count), 3);
}

static void a_vit_step_allocates_nothing(void **state)
{
	(void)state;
	steps_allocate_nothing("vit_tiny_bs8/train", true);
	steps_allocate_nothing("vit_tiny_bs8/train", false);
}
static void a_mae_step_allocates_nothing(void **state)
{
	(void)state;
	steps_allocate_nothing("mae32_bs128/train", true);
	steps_allocate_nothing("mae32_bs128/train", false);
}
static void inference_allocates_nothing(void **state)
{
	(void)state;
	steps_allocate_nothing("vit_tiny_bs8/infer", true);
	steps_allocate_nothing("mae32_bs128/infer", false);
}

int main(void)
{
	dl_iterate_phdr(find_gomp, NULL);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_counter_counts),
		cmocka_unit_test(a_vit_step_allocates_nothing),
		cmocka_unit_test(a_mae_step_allocates_nothing),
		cmocka_unit_test(inference_allocates_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 77; /* skipped: the sanitizers bring their own allocator */
}
#endif
