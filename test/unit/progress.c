/* base/progress.c: the line by itself, and the bar on a pseudo terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/progress.h"
#include "base/str.h"

static struct nr_progress half(void)
{
	return (struct nr_progress){
		.label = "train", .total = 1000, .done = 500, .start = 100, .suffix = "loss 0.312"
	};
}

static void line_has_bar_rate_rest_and_metrics(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_progress p = half();
	nr_progress_line(&p, 150, 200, &s);
	assert_string_equal(nr_str_text(&s),
			    "train ############------------  50% 500/1000  10/s  50.0 s left  loss 0.312");
	nr_str_release(&s);
	p.utf8 = true;
	nr_progress_line(&p, 150, 200, &s);
	assert_non_null(strstr(nr_str_text(&s), "\xE2\x94\x81\xE2\x94\x80"));
	assert_int_equal(nr_utf8_width(nr_str_text(&s)), 75);
	nr_str_release(&s);
}

static void line_fits_any_width(void **state)
{
	(void)state;
	struct nr_progress p = half();
	for (int utf8 = 0; utf8 < 2; utf8++)
		for (int columns = 0; columns < 120; columns++) {
			struct nr_str s = { 0 };
			p.utf8 = utf8;
			nr_progress_line(&p, 150, columns, &s);
			assert_true(nr_utf8_width(nr_str_text(&s)) <= (size_t)columns);
			assert_true(nr_utf8_valid(nr_str_text(&s), s.len));
			nr_str_release(&s);
		}
}

static void resumed_run_counts_only_its_own_steps(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_progress p = half();
	p.first = 400;
	nr_progress_line(&p, 150, 200, &s);
	assert_non_null(strstr(nr_str_text(&s), "  2/s  4 min 10 s left"));
	nr_str_release(&s);
}

static void unknown_total_has_no_bar(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_progress p = { .label = "read", .done = 7, .start = 0 };
	nr_progress_line(&p, 1, 80, &s);
	assert_string_equal(nr_str_text(&s), "read  7  7/s");
	nr_str_release(&s);
}

static void off_a_terminal_nothing_is_written(void **state)
{
	(void)state;
	FILE *f = tmpfile();
	struct nr_progress p;
	nr_progress_init(&p, f, "train", 10, 0);
	nr_progress_update(&p, 10, "loss %g", 0.5);
	nr_progress_release(&p);
	assert_int_equal(ftell(f), 0);
	fclose(f);
	nr_progress_init(&p, NULL, "train", 10, 0);
	nr_progress_update(&p, 1, NULL);
	nr_progress_release(&p);
}

/* Whether the last update and the cleared line are there. */
static bool complete(const char *s)
{
	const char *last = strstr(s, "100000/100000");
	return last && strstr(last, "\r\033[K");
}

static void on_a_terminal_it_draws_seldom_and_clears(void **state)
{
	(void)state;
	setenv("TERM", "xterm", 1);
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip();
	FILE *tty = fopen(ptsname(master), "w");
	struct winsize size = { .ws_col = 60, .ws_row = 24 };
	ioctl(master, TIOCSWINSZ, &size);
	struct nr_progress p;
	nr_progress_init(&p, tty, "train", 100000, 0);
	for (int i = 1; i <= 1000; i++)
		nr_progress_update(&p, i, "loss %d", i);
	nr_log_open(tty, NR_LOG_INFO);
	nr_log_line(NR_LOG_INFO, "a line");
	nr_log_open(NULL, NR_LOG_ERROR);
	nr_progress_update(&p, 100000, NULL);
	nr_progress_release(&p);
	char buf[65536];
	size_t n = 0;
	struct pollfd ready = { .fd = master, .events = POLLIN };
	buf[0] = 0;
	while (n < sizeof buf - 1 && !complete(buf) && poll(&ready, 1, 60000) > 0) {  /* a terminal hands over piece by piece */
		ssize_t k = read(master, buf + n, sizeof buf - 1 - n);
		assert_true(k > 0);
		n += (size_t)k;
		buf[n] = 0;
	}
	int drawn = 0;
	for (const char *c = buf; (c = strstr(c, "\rtrain ")); c++)
		drawn++;
	assert_true(drawn >= 2 && drawn < 500);
	assert_non_null(strstr(buf, "\r\033[Ka line"));
	assert_non_null(strstr(buf, "100% 100000/100000"));
	assert_true(n > 4);
	assert_string_equal(buf + n - 4, "\r\033[K");
	fclose(tty);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_bar_rate_rest_and_metrics),
		cmocka_unit_test(line_fits_any_width),
		cmocka_unit_test(resumed_run_counts_only_its_own_steps),
		cmocka_unit_test(unknown_total_has_no_bar),
		cmocka_unit_test(off_a_terminal_nothing_is_written),
		cmocka_unit_test(on_a_terminal_it_draws_seldom_and_clears),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
