/* Time: see clock.h. */
#include "base/clock.h"

#include <stdint.h>
#include <stdio.h>

double nr_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *nr_duration_text(double seconds, char *buf, size_t size)
{
	if (!(seconds >= 0 && seconds < 1e15)) {
		snprintf(buf, size, "?");
		return buf;
	}
	/* thresholds lie where the rounded text would spill over: 59.96 s is not "60.0 s" */
	if (seconds < 0.9995)
		snprintf(buf, size, seconds < 0.00995 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
	else if (seconds < 59.95)
		snprintf(buf, size, "%.1f s", seconds);
	else if (seconds < 3599.5)
		snprintf(buf, size, "%d min %02d s", (int)(seconds + 0.5) / 60, (int)(seconds + 0.5) % 60);
	else {
		int64_t minutes = (int64_t)(seconds / 60 + 0.5), hours = minutes / 60;
		if (hours < 24)
			snprintf(buf, size, "%d h %02d min", (int)hours, (int)(minutes % 60));
		else
			snprintf(buf, size, "%lld d %02d h", (long long)(hours / 24), (int)(hours % 24));
	}
	return buf;
}

const char *nr_time_text(time_t t, char *buf, size_t size)
{
	struct tm utc;
	if (size)
		buf[0] = 0;
	if (gmtime_r(&t, &utc))
		strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return buf;
}
