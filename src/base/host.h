/* What this program runs on and was built with, as texts for records and reports. */
#ifndef NR_HOST_H
#define NR_HOST_H

#include <stddef.h>

struct nr_str;

/* The CPU's name from /proc/cpuinfo, "unknown" if it has none; returns buf. */
const char *nr_host_cpu(char *buf, size_t size);
/* "gcc 12.2.0" */
const char *nr_host_compiler(void);
/* "glibc 2.36, libyaml 0.2.5, ..., libgomp.so.1.0.0" */
void nr_host_libraries(struct nr_str *);

#endif
