/* Facts about this machine: see machine.h. */
#include "machine.h"

#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/str.h"
#include "base/threads.h"
#include "bench/bench.h"
#include "math/isa.h"

/* The first line of a file, without its newline; false if there is none. */
static bool first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	const bool ok = f && fgets(buf, (int)size, f);
	if (f) fclose(f);
	if (ok) buf[strcspn(buf, "\n")] = 0;
	return ok;
}

static void read_cpu(struct machine *m)
{
	char line[512];
	nr_host_cpu(m->cpu, sizeof m->cpu);
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	m->allowed = nr_threads_cpus(&set) ? CPU_COUNT(&set) : m->cpus;
	m->l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
	m->l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
	m->l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	double quota, period;
	if (first_line("/sys/fs/cgroup/cpu.max", line, sizeof line) &&
		sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0)
		m->quota = quota / period;
}

static void read_memory(struct machine *m)
{
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		long long kib;
		if (sscanf(line, "MemTotal: %lld", &kib) == 1) m->memory = kib * 1024;
		if (sscanf(line, "MemAvailable: %lld", &kib) == 1) m->available = kib * 1024;
	}
	if (f) fclose(f);
	if (!first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) return;
	const char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
	if (close) snprintf(m->huge_pages, sizeof m->huge_pages, "%.*s", (int)(close - open - 1), open + 1);
}

void machine_read(struct machine *m)
{
	*m = (struct machine){ .threads = omp_get_max_threads() };
	read_cpu(m);
	read_memory(m);
	struct nr_str libraries = { 0 };
	nr_host_libraries(&libraries);
	snprintf(m->libraries, sizeof m->libraries, "%s", nr_str_text(&libraries));
	nr_str_release(&libraries);
}

void machine_measure(struct machine *m)
{
	const struct bench_load load = bench_load_start();
	bench_limits_measure(&m->limits, false);
	m->sgemm = bench_ref_gflops(false);
	bench_limits_measure(&m->limits, false);
	m->foreign = bench_load_share(&load);
}

static void __attribute__((format(printf, 2, 3))) warn(struct warnings *w, const char *fmt, ...)
{
	if (w->count == MACHINE_MAX_WARNINGS) return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(w->text[w->count++], sizeof w->text[0], fmt, ap);
	va_end(ap);
}

static const char *env(const char *name)
{
	const char *v = getenv(name);
	return v ? v : "";
}

/* What OpenMP was told. The wait policies are explained in docs/performance.md. */
static void check_openmp(const struct machine *m, struct warnings *w)
{
	if (!strcasecmp(env("OMP_WAIT_POLICY"), "passive"))
		warn(w, "OMP_WAIT_POLICY=passive: threads sleep after every kernel; steps take 1.3 to 1.5 times as "
			"long. Unset it");
	if (!strcasecmp(env("OMP_WAIT_POLICY"), "active"))
		warn(w, "OMP_WAIT_POLICY=active: threads never sleep; steps collapse when another process holds a "
			"core. Unset it");
	if (!strcasecmp(env("GOMP_SPINCOUNT"), "infinite") || !strcasecmp(env("GOMP_SPINCOUNT"), "infinity"))
		warn(w, "GOMP_SPINCOUNT=%s: threads never sleep; steps collapse when another process holds a core",
			env("GOMP_SPINCOUNT"));
	if (!strcmp(env("GOMP_SPINCOUNT"), "0"))
		warn(w, "GOMP_SPINCOUNT=0: threads sleep after every kernel; steps take longer");
	if (!strcasecmp(env("OMP_DYNAMIC"), "true"))
		warn(w, "OMP_DYNAMIC=true: the number of threads changes with the load. Unset it");
	if (m->threads > m->allowed)
		warn(w, "%d threads on %ld CPUs: they slow each other down. Use --threads %ld", m->threads,
			m->allowed, m->allowed);
	if (m->threads > omp_get_thread_limit())
		warn(w, "OMP_THREAD_LIMIT=%d is below %d threads", omp_get_thread_limit(), m->threads);
	if (m->allowed < m->cpus) warn(w, "this process may use %ld of %ld CPUs (affinity)", m->allowed, m->cpus);
	if (m->quota > 0 && m->quota < m->threads)
		warn(w, "the control group grants %.1f CPUs to %d threads, which are throttled. Use --threads %d",
			m->quota, m->threads, m->quota < 2 ? 1 : (int)m->quota);
}

void machine_check(const struct machine *m, struct warnings *w)
{
	w->count = 0;
	const char *isa = env("NORMA_ISA");
	if (*isa && strcmp(isa, "auto") && strcmp(isa, nr_isa_name(nr_isa_active()))) warn(w, "%s", nr_isa_reason());
	else if (nr_isa_active() < nr_isa_best()) warn(w, "slower kernels than possible: %s", nr_isa_reason());
	if (!strcmp(env("NORMA_FUSE"), "0")) warn(w, "NORMA_FUSE=0: ops are not fused; steps take longer");
	if (!strcmp(env("NORMA_NARROW"), "0"))
		warn(w, "NORMA_NARROW=0: tokens that nothing reads are computed; steps take longer");
	if (!strcmp(env("NORMA_SHARE"), "1")) warn(w, "NORMA_SHARE=1: threads share even the smallest instructions; steps may take longer");
	check_openmp(m, w);
	if (!strcmp(m->huge_pages, "never")) warn(w, "huge pages are off: large buffers take longer to touch");
	if (m->foreign > 0.2)
		warn(w, "other processes used %.1f CPUs during the measurement: its figures are low", m->foreign);
}
