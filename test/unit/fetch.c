/* fetch/fetch.c against a server on the loopback that behaves as badly as real ones. */
#include "unit/server.h"

#include "fetch/checksum.h"
#include "fetch/fetch.h"

enum { SIZE = 300000 };

static char sum[33], strong[65];

/* 300000 bytes that no two places share. */
static void put_file(void)
{
	uint8_t *b = malloc(SIZE);
	for (uint32_t i = 0; i < SIZE; i++) b[i] = (uint8_t)((i * 2654435761u) >> 24);
	made_file(made_path("file"), b, SIZE);
	nr_checksum_bytes(b, SIZE, NR_MD5, sum);
	nr_checksum_bytes(b, SIZE, NR_SHA256, strong);
	free(b);
}

static int get(const char *kind, const char *name, const char *md5, int64_t bytes, struct nr_error *err)
{
	char url[200];
	snprintf(url, sizeof url, "http://127.0.0.1:%d/%s/%s", server.port, kind, name);
	server.requests = 0;
	const struct nr_fetch f = { .url = url, .path = made_path("got"), .md5 = md5, .bytes = bytes,
		.tries = 4, .pause = .01 };
	return nr_fetch(&f, err);
}

static void arrived(void)
{
	char hex[65];
	assert_int_equal(nr_checksum_file(made_path("got"), NR_SHA256, hex, NULL), 0);
	assert_string_equal(hex, strong);
	assert_int_not_equal(access(made_path("got.part"), F_OK), 0);
	unlink(made_path("got"));
}

static void fetches(const char *kind)
{
	struct nr_error err = { 0 };
	if (get(kind, "file", sum, SIZE, &err)) fail_msg("%s: %s", kind, err.detail);
	arrived();
}

/* The first n bytes of the file, or of another one. */
static void put_part(long n, bool other)
{
	size_t size;
	uint8_t *b = made_read(made_path("file"), &size);
	if (other) b[5] ^= 1;
	made_file(made_path("got.part"), b, (size_t)n);
	free(b);
}

static void refuses(int e, const struct nr_error *err, const char *part)
{
	char line[1500];
	assert_int_equal(e, err->code);
	if (!e || !strstr(nr_error_text(err, line, sizeof line), part)) fail_msg("'%s' should say '%s'", line, part);
	assert_int_not_equal(access(made_path("got"), F_OK), 0);
}

static void a_file_is_fetched_and_checked(void **state)
{
	(void)state;
	put_file();
	fetches("range");
	fetches("plain");
	fetches("move");
	struct nr_error err = { 0 };
	assert_int_equal(get("range", "file", NULL, 0, &err), 0);    /* neither size nor sum known */
	assert_int_equal(get("range", "file", sum, SIZE, &err), 0);
	assert_int_equal(server.requests, 0);                        /* it is there: nobody is asked */
	arrived();
}

static void half_a_file_is_gone_on_with(void **state)
{
	(void)state;
	put_file();
	put_part(SIZE / 2, false);
	fetches("range");
	assert_int_equal(server.requests, 1);
	assert_true(server.ranged);
	put_part(SIZE, false);                                       /* whole, only the name is missing */
	fetches("range");
	assert_int_equal(server.requests, 0);
	put_part(SIZE, false);
	struct nr_error err = { 0 };
	assert_int_equal(get("range", "file", sum, 0, &err), 0);     /* whole, but the size is not known: 416 */
	arrived();
}

static void a_server_without_ranges_sends_it_all_again(void **state)
{
	(void)state;
	put_file();
	put_part(SIZE / 2, false);
	fetches("plain");
}

static void a_cut_connection_is_gone_on_with(void **state)
{
	(void)state;
	put_file();
	fetches("cut");
	assert_int_equal(server.requests, 3);                        /* 100000 bytes each */
}

static void what_came_stays_after_a_failure(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct stat st;
	put_file();
	put_part(1000, false);
	refuses(get("dead", "file", sum, SIZE, &err), &err, "resumes at byte 1000");
	assert_int_equal(server.requests, 4);
	assert_int_equal(stat(made_path("got.part"), &st), 0);
	assert_int_equal(st.st_size, 1000);
	fetches("range");
}

static void a_beginning_of_another_file_is_dropped(void **state)
{
	(void)state;
	put_file();
	put_part(SIZE / 2, true);
	fetches("range");
	assert_int_equal(server.requests, 2);                        /* the rest of it, then all of it */
	put_part(SIZE / 2, true);
	fetches("cut");
}

static void a_wrong_checksum_is_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	put_file();
	refuses(get("range", "file", "0123456789abcdef0123456789abcdef", SIZE, &err), &err,
		"instead of 0123456789abcdef0123456789abcdef");
	assert_int_not_equal(access(made_path("got.part"), F_OK), 0);
	err = (struct nr_error){ 0 };
	refuses(get("range", "file", sum, SIZE + 5, &err), &err, "300000 bytes instead of 300005");
	err = (struct nr_error){ 0 };
	refuses(get("long", "file", sum, SIZE, &err), &err, "longer than the expected 300000 bytes");
	err = (struct nr_error){ 0 };
	refuses(get("range", "file", sum, 1000, &err), &err, "longer than the expected 1000 bytes");
}

static void a_missing_file_is_said_to_be_missing(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	put_file();
	refuses(get("range", "nosuch", sum, SIZE, &err), &err, "the server answered 404");
	assert_int_equal(server.requests, 1);                        /* asking again would not help */
	assert_int_not_equal(access(made_path("got.part"), F_OK), 0);
	fetches("busy");                                             /* 503, then well */
	assert_int_equal(server.requests, 2);
}

static void a_folder_that_cannot_be_written_is_named(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	put_file();
	mkdir(made_path("got.part"), 0777);
	refuses(get("range", "file", sum, SIZE, &err), &err, "got.part");
	rmdir(made_path("got.part"));
	char url[200];
	snprintf(url, sizeof url, "http://127.0.0.1:%d/range/file", server.port);
	err = (struct nr_error){ 0 };
	const struct nr_fetch f = { .url = url, .path = "/nosuch/folder/got" };
	refuses(nr_fetch(&f, &err), &err, "cannot write '/nosuch/folder/got.part'");
}

static void other_protocols_are_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	put_file();
	const struct nr_fetch f = { .url = "file:///etc/passwd", .path = made_path("got"), .tries = 1 };
	refuses(nr_fetch(&f, &err), &err, "file:///etc/passwd");
}

static bool stop(void *arg, const char *name, int64_t done, int64_t total)
{
	(void)name;
	*(int64_t *)arg = total;
	return done == 0;
}

static void the_watcher_may_stop_it(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	char url[200];
	int64_t total = 0;
	put_file();
	snprintf(url, sizeof url, "http://127.0.0.1:%d/range/file", server.port);
	const struct nr_fetch f = { .url = url, .path = made_path("got"), .watch = { stop, &total } };
	refuses(nr_fetch(&f, &err), &err, "are kept in");
	assert_int_equal(total, SIZE);
	fetches("range");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, server_start, server_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_fetched_and_checked), TEST(half_a_file_is_gone_on_with),
			TEST(a_server_without_ranges_sends_it_all_again),
		TEST(a_cut_connection_is_gone_on_with), TEST(what_came_stays_after_a_failure),
			TEST(a_beginning_of_another_file_is_dropped),
		TEST(a_wrong_checksum_is_refused), TEST(a_missing_file_is_said_to_be_missing),
			TEST(a_folder_that_cannot_be_written_is_named),
		TEST(other_protocols_are_refused), TEST(the_watcher_may_stop_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
