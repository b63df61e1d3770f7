/* fetch/unpack.c: honest archives arrive whole, hostile ones never write outside their folder. */
#include "unit/datasets.h"

#include <archive.h>
#include <archive_entry.h>

static struct archive *start(const char *path, bool zip)
{
	struct archive *a = archive_write_new();
	if (zip) archive_write_set_format_zip(a);
	else archive_write_set_format_pax_restricted(a), archive_write_add_filter_gzip(a);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	return a;
}

/* text is the contents, or where a link points to. */
static void entry(struct archive *a, const char *name, unsigned type, const char *text)
{
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, 06777);
	if (type == AE_IFREG) archive_entry_set_size(e, (la_int64_t)strlen(text));
	if (type == AE_IFLNK) archive_entry_set_symlink(e, text);
	assert_true(archive_write_header(a, e) >= ARCHIVE_WARN);
	if (type == AE_IFREG) archive_write_data(a, text, strlen(text));
	archive_entry_free(e);
}

static void hard_link(struct archive *a, const char *name, const char *to)
{
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_hardlink(e, to);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_true(archive_write_header(a, e) >= ARCHIVE_WARN);
	archive_entry_free(e);
}

static int unpack(const char *inside, int64_t bytes, int64_t files, struct nr_error *err)
{
	mkdir(made_path("into"), 0777);
	const struct nr_unpack u = { .archive = made_path("a.tgz"), .into = made_path("into"), .inside = inside,
		.max_bytes = bytes, .max_files = files };
	return nr_unpack(&u, err);
}

static void refuses(const char *part)
{
	struct nr_error err = { 0 };
	assert_int_not_equal(unpack(NULL, 0, 0, &err), 0);
	if (!strstr(err.detail, part) || !strstr(err.subject, "a.tgz")) fail_msg("'%s' should say '%s'",
		err.detail, part);
	/* the canary beside the target is as it was */
	size_t n;
	uint8_t *b = made_read(made_path("canary"), &n);
	assert_string_equal((char *)b, "alive");
	free(b);
	assert_int_not_equal(access("/tmp/norma-escaped", F_OK), 0);
	assert_int_equal(nr_remove_tree(made_path("into"), NULL), 0);
}

static void contains(const char *name, const char *text)
{
	size_t n;
	uint8_t *b = made_read(made_path("into/%s", name), &n);
	assert_string_equal((char *)b, text);
	free(b);
}

static void honest_archives_arrive_whole(void **state)
{
	(void)state;
	for (int zip = 0; zip < 2; zip++) {
		struct archive *a = start(made_path("a.tgz"), zip);
		entry(a, "./set/", AE_IFDIR, "");
		entry(a, "./set/a.txt", AE_IFREG, "first");
		entry(a, "set//deep/./b.txt", AE_IFREG, "second");
		entry(a, "set/deep/link", AE_IFLNK, "../a.txt");
		entry(a, "other/c.txt", AE_IFREG, "third");
		archive_write_free(a);
		struct nr_error err = { 0 };
		if (unpack(NULL, 0, 0, &err)) fail_msg("%s", err.detail);
		contains("set/a.txt", "first");
		contains("set/deep/b.txt", "second");
		contains("set/deep/link", "first");
		contains("other/c.txt", "third");
		struct stat st;
		stat(made_path("into/set/a.txt"), &st);
		assert_int_equal(st.st_mode & 07111, 0);    /* no set-user-id, not executable */
		nr_remove_tree(made_path("into"), NULL);
		assert_int_equal(unpack("set", 0, 0, &err), 0);
		contains("a.txt", "first");
		assert_int_not_equal(access(made_path("into/other"), F_OK), 0);
		nr_remove_tree(made_path("into"), NULL);
	}
}

static void files_are_read_out_of_archives(void **state)
{
	(void)state;
	struct archive *a = start(made_path("a.tgz"), false);
	entry(a, "./set/", AE_IFDIR, "");
	entry(a, "./set/a.txt", AE_IFREG, "first");
	entry(a, "set/b.txt", AE_IFREG, "second");
	archive_write_free(a);
	struct nr_error err = { 0 };
	struct nr_bytes b;
	assert_int_equal(nr_unpack_bytes(&b, made_path("a.tgz"), "set/b.txt", 6, &err), 0);
	assert_int_equal(b.size, 6);
	assert_memory_equal(b.data, "second", 6);
	nr_bytes_release(&b);
	assert_int_equal(nr_unpack_bytes(&b, made_path("a.tgz"), "set/a.txt", 4, &err), NR_ELIMIT);
	assert_null(b.data);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_unpack_bytes(&b, made_path("a.tgz"), "a.txt", 100, &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "no file 'a.txt'"));
	assert_int_not_equal(nr_unpack_bytes(&b, made_path("canary"), "a.txt", 100, NULL), 0);
}

static void hard_links_inside_are_made(void **state)
{
	(void)state;
	struct archive *a = start(made_path("a.tgz"), false);
	entry(a, "set/a.txt", AE_IFREG, "first");
	hard_link(a, "set/b.txt", "set/a.txt");
	archive_write_free(a);
	struct nr_error err = { 0 };
	if (unpack("set", 0, 0, &err)) fail_msg("%s", err.detail);
	contains("b.txt", "first");
}

static void hostile(const char *name, unsigned type, const char *text, const char *part)
{
	made_text(made_path("canary"), "alive");
	struct archive *a = start(made_path("a.tgz"), false);
	entry(a, "ok.txt", AE_IFREG, "x");
	entry(a, name, type, text);
	archive_write_free(a);
	refuses(part);
}

static void paths_that_leave_the_folder_are_refused(void **state)
{
	(void)state;
	hostile("../canary", AE_IFREG, "dead", "leaves the folder");
	hostile("a/../../canary", AE_IFREG, "dead", "leaves the folder");
	hostile("a/..", AE_IFDIR, "", "leaves the folder");
	hostile("/tmp/norma-escaped", AE_IFREG, "dead", "absolute path");
	hostile("//tmp/norma-escaped", AE_IFREG, "dead", "absolute path");
	hostile("\\tmp\\norma-escaped", AE_IFREG, "dead", "absolute path");
}

static void links_that_leave_the_folder_are_refused(void **state)
{
	(void)state;
	hostile("link", AE_IFLNK, "/etc/passwd", "outside the folder");
	hostile("link", AE_IFLNK, "../canary", "outside the folder");
	hostile("a/link", AE_IFLNK, "../../canary", "outside the folder");
	hostile("a/link", AE_IFLNK, "b/../../../canary", "outside the folder");
	hostile("a/link", AE_IFLNK, "b/../b", "outside the folder");         /* b may be a link that leads up */
	made_text(made_path("canary"), "alive");
	struct archive *a = start(made_path("a.tgz"), false);
	hard_link(a, "copy", "../canary");
	archive_write_free(a);
	refuses("leaves the folder");
	a = start(made_path("a.tgz"), false);
	hard_link(a, "copy", "/etc/passwd");
	archive_write_free(a);
	refuses("absolute path");
	a = start(made_path("a.tgz"), false);
	hard_link(a, "copy", "nosuch");
	archive_write_free(a);
	refuses("copy");
	/* through an inner link, whose ".." is that of the place it leads to */
	a = start(made_path("a.tgz"), false);
	entry(a, "l", AE_IFLNK, ".");
	entry(a, "passwd", AE_IFLNK, "l/l/../../etc/passwd");
	archive_write_free(a);
	refuses("outside the folder");
	/* a symbolic link has another meaning in another folder */
	a = start(made_path("a.tgz"), false);
	entry(a, "a/b/up", AE_IFLNK, "../../x");
	hard_link(a, "up", "a/b/up");
	archive_write_free(a);
	refuses("not a regular file");
}

/* A link first, then an entry that would be written through it. */
static void nothing_is_written_through_links(void **state)
{
	(void)state;
	made_text(made_path("canary"), "alive");
	struct archive *a = start(made_path("a.tgz"), false);
	entry(a, "dir", AE_IFDIR, "");
	entry(a, "link", AE_IFLNK, "dir");
	entry(a, "link/file", AE_IFREG, "dead");
	archive_write_free(a);
	refuses("inside a file or link");
	a = start(made_path("a.tgz"), false);
	entry(a, "x", AE_IFREG, "one");
	entry(a, "link", AE_IFLNK, "x");
	entry(a, "link", AE_IFREG, "two");
	archive_write_free(a);
	refuses("occurs twice");
	/* a link that was in the folder before */
	a = start(made_path("a.tgz"), false);
	entry(a, "out/canary", AE_IFREG, "dead");
	archive_write_free(a);
	mkdir(made_path("into"), 0777);
	assert_int_equal(symlink("..", made_path("into/out")), 0);
	refuses("inside a file or link");
}

static void devices_and_doubles_are_refused(void **state)
{
	(void)state;
	hostile("null", AE_IFCHR, "", "device");
	hostile("disk", AE_IFBLK, "", "device");
	hostile("pipe", AE_IFIFO, "", "device");
	hostile("ok.txt", AE_IFREG, "again", "occurs twice");
	hostile("./ok.txt", AE_IFREG, "again", "occurs twice");
	hostile("ok.txt/below", AE_IFREG, "x", "inside a file");
}

static void absurd_sizes_are_refused(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	char *zeros = calloc(1, 3000001);
	memset(zeros, '0', 3000000);
	struct archive *a = start(made_path("a.tgz"), false);
	entry(a, "zeros", AE_IFREG, zeros);
	archive_write_free(a);
	free(zeros);
	assert_int_equal(unpack(NULL, 100000, 0, &err), NR_ELIMIT);
	assert_non_null(strstr(err.detail, "3000000 bytes"));
	nr_remove_tree(made_path("into"), NULL);
	err = (struct nr_error){ 0 };
	assert_int_equal(unpack(NULL, 0, 0, &err), 0);
	nr_remove_tree(made_path("into"), NULL);
	a = start(made_path("a.tgz"), false);
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "%d", i);
		entry(a, name, AE_IFREG, "x");
	}
	archive_write_free(a);
	assert_int_equal(unpack(NULL, 0, 10, &err), NR_ELIMIT);
	assert_non_null(strstr(err.detail, "more than 10 entries"));
	nr_remove_tree(made_path("into"), NULL);
	struct nr_str deep = { 0 };
	for (int i = 0; i < 100; i++) nr_str_add(&deep, "d/");
	nr_str_add(&deep, "x");
	hostile(deep.text, AE_IFREG, "x", "too deep");
	nr_str_release(&deep);
}

static void broken_archives_are_refused(void **state)
{
	(void)state;
	made_text(made_path("canary"), "alive");
	made_text(made_path("a.tgz"), "this is no archive at all, only a sentence");
	refuses("");
	made_text(made_path("a.tgz"), "");
	refuses("");
	struct archive *a = start(made_path("a.tgz"), false);
	char text[100000];
	for (size_t i = 0; i < sizeof text - 1; i++) text[i] = (char)(33 + (i * i * 7 + i / 13) % 90);
	text[sizeof text - 1] = 0;
	entry(a, "file", AE_IFREG, text);
	archive_write_free(a);
	struct stat st;
	stat(made_path("a.tgz"), &st);
	made_cut(made_path("a.tgz"), st.st_size / 2);
	refuses("");
	unlink(made_path("a.tgz"));
	struct nr_error err = { 0 };
	assert_int_equal(unpack(NULL, 0, 0, &err), NR_EIO);
}

static void trees_are_removed_without_following_links(void **state)
{
	(void)state;
	made_text(made_path("tree/a/b/c"), "x");
	made_text(made_path("canary"), "alive");
	mkdir(made_path("outside"), 0777);
	made_text(made_path("outside/file"), "stays");
	assert_int_equal(symlink("../outside", made_path("tree/out")), 0);
	assert_int_equal(nr_remove_tree(made_path("tree"), NULL), 0);
	assert_int_not_equal(access(made_path("tree"), F_OK), 0);
	assert_int_equal(access(made_path("outside/file"), F_OK), 0);
	assert_int_equal(nr_remove_tree(made_path("tree"), NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(honest_archives_arrive_whole), TEST(files_are_read_out_of_archives), TEST(hard_links_inside_are_made),
			TEST(paths_that_leave_the_folder_are_refused),
		TEST(links_that_leave_the_folder_are_refused), TEST(nothing_is_written_through_links),
			TEST(devices_and_doubles_are_refused),
		TEST(absurd_sizes_are_refused), TEST(broken_archives_are_refused),
			TEST(trees_are_removed_without_following_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
