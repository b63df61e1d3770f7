/* The parts of norma serve that need no network: what a request may ask for, the backlog of events, what a viewer gets of it, and
 * which scripts of a report are allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/web.h"
#include "serve/policy.h"
#include "serve/backlog.h"
#include "serve/route.h"
#include "serve/viewers.h"

static void names_are_decoded_and_odd_ones_refused(void **state)
{
	(void)state;
	char name[NR_NAME_MAX], longest[2 * NR_NAME_MAX] = "/run/";
	assert_int_equal(nr_route_find("/", name), NR_ROUTE_INDEX);
	assert_int_equal(nr_route_find("/run/a%20b/c%2Bd", name), NR_ROUTE_RUN);
	assert_string_equal(name, "a b/c+d");
	assert_int_equal(nr_route_find("/events", name), NR_ROUTE_EVENTS);
	assert_string_equal(name, "");
	assert_int_equal(nr_route_find("/live.js", name), NR_ROUTE_LIVE_JS);
	assert_int_equal(nr_route_find("/live.jsx", name), NR_ROUTE_NONE);
	assert_int_equal(nr_route_find("/runs", name), NR_ROUTE_NONE);
	static const char *const bad[] = { "", "run/a", "/run/", "/run/..", "/run/../a", "/run/%2e%2e/a", "/run/a/./b", "/run/a//b",
		"/run/a%00", "/run/a%0a", "/run/a\\b", "/run/a%5Cb", "/run/%", "/run/%4", "/run/%4g", "/run/%ff", "/run/%C0%AF", "/%2e%2e/",
		NULL };
	for (int i = 0; bad[i]; i++) {
		if (nr_route_find(bad[i], name) != NR_ROUTE_BAD) fail_msg("'%s' is not refused", bad[i]);
	}
	assert_int_equal(nr_route_find("/run/...", name), NR_ROUTE_RUN);
	memset(longest + 5, 'x', NR_NAME_MAX);
	assert_int_equal(nr_route_find(longest, name), NR_ROUTE_BAD);
}

static void only_loopback_names_with_the_port_are_hosts(void **state)
{
	(void)state;
	assert_true(nr_host_ours("localhost:7317", 7317) && nr_host_ours("LOCALHOST:7317", 7317) && nr_host_ours("127.0.0.1:7317", 7317));
	assert_true(nr_host_ours("[::1]:7317", 7317) && nr_host_ours("localhost", 80));
	static const char *const bad[] = { "", "localhost", "localhost:", "localhost:73170", "localhost:731", "127.0.0.1", "127.0.0.2:7317",
		"evil.example:7317", "localhost.evil.example:7317", "localhost:7317.evil.example", " localhost:7317", "::1:7317", NULL };
	for (int i = 0; bad[i]; i++) assert_false(nr_host_ours(bad[i], 7317));
	assert_false(nr_host_ours(NULL, 7317));
	assert_true(nr_origin_ours(NULL, 7317) && nr_origin_ours("http://localhost:7317", 7317));
	assert_false(nr_origin_ours("null", 7317) || nr_origin_ours("https://localhost:7317", 7317));
	assert_false(nr_origin_ours("http://evil.example", 7317));
	assert_true(nr_fetch_ours(NULL) && nr_fetch_ours("same-origin") && nr_fetch_ours("none"));
	assert_false(nr_fetch_ours("cross-site") || nr_fetch_ours("same-site"));
}

static struct nr_backlog *new_backlog(void)
{
	struct nr_backlog *r = calloc(1, sizeof *r);
	assert_non_null(r);
	r->session = 0x5f;
	return r;
}

static void free_backlog(struct nr_backlog *r)
{
	nr_backlog_release(r);
	assert_int_equal(r->bytes, 0);
	free(r);
}

static void the_ring_forgets_the_oldest(void **state)
{
	(void)state;
	struct nr_backlog *r = new_backlog();
	uint64_t next;
	char mark[32], *large = calloc(1, NR_BACKLOG_BYTES / 2 + 1);
	for (int i = 0; i < NR_BACKLOG_EVENTS + 10; i++) nr_backlog_add(r, NULL, true, "rows", "{}");
	assert_int_equal(r->next, NR_BACKLOG_EVENTS + 10);
	assert_int_equal(r->first, 10);
	assert_null(nr_backlog_at(r, 9));
	assert_non_null(nr_backlog_at(r, 10));
	assert_true(nr_backlog_after(r, nr_backlog_mark(r, 10, mark, sizeof mark), &next) && next == 10);
	assert_false(nr_backlog_after(r, nr_backlog_mark(r, 9, mark, sizeof mark), &next));
	assert_false(nr_backlog_after(r, nr_backlog_mark(r, r->next + 1, mark, sizeof mark), &next));
	assert_false(nr_backlog_after(r, "5e.20", &next) || nr_backlog_after(r, "5f.-1", &next));
	assert_false(nr_backlog_after(r, "5f.", &next) || nr_backlog_after(r, NULL, &next));
	assert_non_null(large);
	memset(large, 'x', NR_BACKLOG_BYTES / 2);
	for (int i = 0; i < 5; i++) {
		nr_backlog_add(r, NULL, true, "rows", large);
		assert_true(r->bytes <= NR_BACKLOG_BYTES);
	}
	assert_int_equal(r->next - r->first, 1);
	free(large);
	free_backlog(r);
}

/* All that it gets, in pieces of so many bytes. */
static char *read_all(struct nr_viewer *v, const struct nr_backlog *r, size_t piece)
{
	static char all[8192];
	size_t n = 0, k;
	bool lost;
	while ((k = nr_viewer_read(v, r, all + n, piece, &lost)) > 0) n += k;
	assert_false(lost);
	all[n] = 0;
	return all;
}

static void a_viewer_gets_what_it_asked_for(void **state)
{
	(void)state;
	struct nr_backlog *r = new_backlog();
	struct nr_served study = { .study = true }, run = { .part_of = &study }, other = { 0 };
	struct nr_viewer list, one, all;
	nr_viewer_init(&list, r, NULL, "5f.0");
	nr_viewer_init(&one, r, &other, "5f.0");
	nr_viewer_init(&all, r, &study, "5f.0");
	nr_backlog_add(r, &run, false, "rows", "1");
	nr_backlog_add(r, &other, true, "state", "2");
	nr_backlog_add(r, NULL, false, "reload", "3");
	const char *most = "retry: 3000\n\nid: 5f.2\nevent: state\ndata: 2\n\nid: 5f.3\nevent: reload\ndata: 3\n\n";
	assert_string_equal(read_all(&list, r, 7), most);
	assert_string_equal(read_all(&one, r, 1), most);
	assert_string_equal(read_all(&all, r, 4096),
		"retry: 3000\n\nid: 5f.1\nevent: rows\ndata: 1\n\nid: 5f.3\nevent: reload\ndata: 3\n\n");
	assert_false(nr_viewer_ready(&list, r));
	nr_backlog_add(r, &run, false, "rows", "4");
	assert_false(nr_viewer_ready(&list, r) || nr_viewer_ready(&one, r));
	assert_true(nr_viewer_ready(&all, r));
	nr_viewer_beat(&list);
	assert_string_equal(read_all(&list, r, 4096), ":\n\n");
	free_backlog(r);
}

static void a_slow_viewer_begins_anew(void **state)
{
	(void)state;
	struct nr_backlog *r = new_backlog();
	struct nr_viewer v, half;
	char buf[64];
	bool lost;
	nr_viewer_init(&v, r, NULL, "5f.0");
	nr_viewer_init(&half, r, NULL, "5f.0");
	nr_backlog_add(r, NULL, true, "rows", "first");
	read_all(&v, r, 4096);
	assert_int_equal(nr_viewer_read(&half, r, buf, 20, &lost), 20);
	for (int i = 0; i < NR_BACKLOG_EVENTS + 5; i++) nr_backlog_add(r, NULL, true, "rows", "{}");
	assert_string_equal(read_all(&v, r, 4096), "id: 5f.4102\nevent: reload\ndata: {}\n\n");
	assert_int_equal(nr_viewer_read(&half, r, buf, sizeof buf, &lost), 0);      /* in the middle of one: the stream ends */
	assert_true(lost);
	nr_viewer_init(&v, r, NULL, "77.3");
	assert_string_equal(read_all(&v, r, 4096), "id: 5f.4102\nevent: reload\ndata: {}\n\n");
	free_backlog(r);
}

static void only_scripts_of_ours_are_allowed(void **state)
{
	(void)state;
	struct nr_str page = { 0 }, policy = { 0 };
	nr_str_printf(&page, "<style>\n%s</style><script>alert(1)</script><script>\n//<![CDATA[\n%s//]]>\n</script>", nr_web_report_css,
		nr_web_report_js);
	nr_report_policy(&policy, nr_str_text(&page));
	const char *script = strstr(nr_str_text(&policy), "; script-src 'sha256-");
	const char *style = strstr(nr_str_text(&policy), "; style-src 'sha256-");
	assert_true(script && style);
	assert_int_equal(style - script, strlen("; script-src 'sha256-'") + 44);        /* one sum only */
	assert_null(strstr(nr_str_text(&policy), "unsafe"));
	nr_str_release(&page);
	nr_str_release(&policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_decoded_and_odd_ones_refused), cmocka_unit_test(only_loopback_names_with_the_port_are_hosts),
		cmocka_unit_test(the_ring_forgets_the_oldest), cmocka_unit_test(a_viewer_gets_what_it_asked_for),
		cmocka_unit_test(a_slow_viewer_begins_anew), cmocka_unit_test(only_scripts_of_ours_are_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
