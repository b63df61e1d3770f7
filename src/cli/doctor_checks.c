/* What `norma doctor` measures and warns of: see doctor_checks.h. */
#include "doctor_checks.h"

#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/isa.h"

void doctor_measure(struct doctor_speed *s)
{
	const struct bench_load load = bench_load_start();
	bench_limits_measure(&s->limits, false);
	s->sgemm = bench_ref_gflops(false);
	bench_limits_measure(&s->limits, false);
	s->foreign = bench_load_share(&load);
}

static void __attribute__((format(printf, 2, 3))) warn(struct doctor_warnings *w, const char *fmt, ...)
{
	if (w->count == DOCTOR_WARNINGS) return;
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
static void check_openmp(const struct nr_machine *m, struct doctor_warnings *w)
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

void doctor_check(const struct nr_machine *m, const struct doctor_speed *s, struct doctor_warnings *w)
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
	if (s->foreign > 0.2)
		warn(w, "other processes used %.1f CPUs during the measurement: its figures are low", s->foreign);
}
