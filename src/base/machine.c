/* Facts about this machine and this process: see machine.h. */
#include "base/machine.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/str.h"
#include "base/threads.h"

/* The first line of a file, without its newline; false if there is none. */
static bool first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");
	const bool ok = f && fgets(buf, (int)size, f);
	if (f) fclose(f);
	if (ok) buf[strcspn(buf, "\n")] = 0;
	return ok;
}

static void read_cpu(struct nr_machine *m)
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

static void read_memory(struct nr_machine *m)
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

void nr_machine_read(struct nr_machine *m)
{
	*m = (struct nr_machine){ .threads = omp_get_max_threads() };
	read_cpu(m);
	read_memory(m);
	struct nr_str libraries = { 0 };
	nr_host_libraries(&libraries);
	snprintf(m->libraries, sizeof m->libraries, "%s", nr_str_text(&libraries));
	nr_str_release(&libraries);
}
