/* The progress bar: see progress.h. */
#include "base/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum { BAR = 24, BAR_LEAST = 6 };
static const double INTERVAL = 0.1;

static void clear(void *p)
{
	struct nr_progress *bar = p;
	if (!bar->shown)
		return;
	fputs("\r\033[K", bar->out);
	fflush(bar->out);
	bar->shown = false;
	bar->drawn = -INFINITY;  /* the next update draws it again */
}

/* What the locale variables promise; setlocale is the application's to call. */
static bool speaks_utf8(void)
{
	static const char *const vars[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof vars / sizeof *vars; i++) {
		const char *v = getenv(vars[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

void nr_progress_init(struct nr_progress *p, FILE *out, const char *label, int64_t total, int64_t first)
{
	const char *term = getenv("TERM");
	bool terminal = out && isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
	*p = (struct nr_progress){
		.out = terminal ? out : NULL, .label = label, .total = total, .first = first, .done = first,
		.start = nr_clock(), .drawn = -INFINITY, .utf8 = speaks_utf8(),
	};
	if (terminal)
		nr_log_before(clear, p);
}

static void add_bar(const struct nr_progress *p, double share, size_t width, struct nr_str *s)
{
	size_t full = (size_t)(share * (double)width + 0.5);
	for (size_t i = 0; i < width; i++)
		nr_str_add(s, p->utf8 ? (i < full ? "\xE2\x94\x81" : "\xE2\x94\x80") : i < full ? "#" : "-");
}

/* Drops whole characters until the text fits. */
static void cut_to(struct nr_str *s, size_t from, int columns)
{
	while (!s->failed && s->len > from && nr_utf8_width(s->text + from) > (size_t)columns) {
		do
			s->len--;
		while (s->len > from && (s->text[s->len] & 0xC0) == 0x80);
		s->text[s->len] = 0;
	}
}

void nr_progress_line(const struct nr_progress *p, double now, int columns, struct nr_str *s)
{
	double elapsed = now - p->start, share = p->total > 0 ? (double)p->done / (double)p->total : 0;
	double rate = elapsed > 0 ? (double)(p->done - p->first) / elapsed : 0;
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	struct nr_str tail = { 0 };
	char left[32];
	if (p->total > 0)
		nr_str_printf(&tail, " %3d%% %lld/%lld", (int)(share * 100), (long long)p->done,
			      (long long)p->total);
	else
		nr_str_printf(&tail, " %lld", (long long)p->done);
	if (rate > 0) {
		nr_str_printf(&tail, rate < 100 ? "  %.3g/s" : "  %.0f/s", rate);
		if (p->total > p->done)
			nr_str_printf(
				&tail, "  %s left",
				nr_duration_text((double)(p->total - p->done) / rate, left, sizeof left));
	}
	if (p->suffix[0])
		nr_str_printf(&tail, "  %s", p->suffix);
	size_t from = s->len;
	nr_str_printf(s, "%s ", p->label);
	size_t used = nr_utf8_width(p->label) + 1 + nr_utf8_width(nr_str_text(&tail));
	size_t room = (size_t)columns > used ? (size_t)columns - used : 0;
	if (p->total > 0 && room >= BAR_LEAST)
		add_bar(p, share, room < BAR ? room : BAR, s);
	nr_str_add(s, nr_str_text(&tail));
	nr_str_release(&tail);
	cut_to(s, from, columns);
}

void nr_progress_update(struct nr_progress *p, int64_t done, const char *fmt, ...)
{
	p->done = done;
	if (!p->out)
		return;
	if (fmt) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(p->suffix, sizeof p->suffix, fmt, ap);
		va_end(ap);
	}
	double now = nr_clock();
	if (now - p->drawn < INTERVAL && done != p->total)
		return;
	struct winsize size;
	int columns = ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
	struct nr_str s = { 0 };
	nr_str_add(&s, "\r");
	nr_progress_line(p, now, columns - 1, &s);  /* the last column would wrap on some terminals */
	nr_str_add(&s, "\033[K");
	fputs(nr_str_text(&s), p->out);
	fflush(p->out);
	nr_str_release(&s);
	p->drawn = now;
	p->shown = true;
}

void nr_progress_release(struct nr_progress *p)
{
	if (!p->out)
		return;
	clear(p);
	nr_log_before(NULL, NULL);
	p->out = NULL;
}
