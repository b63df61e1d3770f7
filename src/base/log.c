/* The log: see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

static const char *const names[] = { "error", "warning", "info", "debug", NULL };

static struct {
	FILE *sink;
	enum nr_level level;
	double start;
	void (*before)(void *);
	void *arg;
} out;

void nr_log_open(FILE *sink, enum nr_level level)
{
	out.sink = sink;
	out.level = level;
	out.start = nr_clock();
}

bool nr_log_wants(enum nr_level level)
{
	return out.sink && level <= out.level;
}

void nr_log_line(enum nr_level level, const char *fmt, ...)
{
	if (!nr_log_wants(level))
		return;
	va_list ap;
	va_start(ap, fmt);
	flockfile(out.sink);  /* lines of several threads do not mix */
	if (out.before)
		out.before(out.arg);
	if (level == NR_LOG_DEBUG)
		fprintf(out.sink, "norma: %.3f s: ", nr_clock() - out.start);
	else if (level != NR_LOG_INFO)
		fprintf(out.sink, "norma: %s: ", names[level]);
	vfprintf(out.sink, fmt, ap);
	fputc('\n', out.sink);
	fflush(out.sink);
	funlockfile(out.sink);
	va_end(ap);
}

void nr_log_before(void (*fn)(void *), void *arg)
{
	out.before = fn;
	out.arg = arg;
}
