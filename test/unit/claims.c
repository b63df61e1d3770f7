/* base/claims.c: one process holds a name, a dead one does not, here or on another host. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/claims.h"
#include "unit/folder.h"

static struct nr_error err;
static const char *file(const char *name) { return made_path("claims/%s", name); }

static struct nr_claims *join(void)
{
	struct nr_claims *c;
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_claims_open(&c, made_path("claims"), &err), 0);
	return c;
}

static bool take(struct nr_claims *c, const char *name)
{
	bool taken = false;
	assert_int_equal(nr_claims_take(c, name, &taken, &err), 0);
	return taken;
}

static void put(const char *name, const char *text, long seconds_ago)
{
	FILE *f = fopen(file(name), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	const struct timespec when = { .tv_sec = time(NULL) - seconds_ago }, both[2] = { when, when };
	assert_int_equal(utimensat(AT_FDCWD, file(name), both, 0), 0);
}

/* A process of another host, last heard of so long ago. */
static void stranger(const char *name, long seconds_ago)
{
	char entry[100], text[200];
	snprintf(entry, sizeof entry, "%s.process", name);
	snprintf(text, sizeof text, "host %s\npid %ld\nstart 1\nsystem of another boot\nnumber 0\n", name, (long)getpid());
	put(entry, text, seconds_ago);
}

static void a_name_is_taken_once(void **state)
{
	(void)state;
	struct nr_claims *a = join(), *b = join();
	struct nr_holder holder;
	assert_false(nr_claims_held(a, "run", NULL));
	assert_true(take(a, "run"));
	assert_true(take(a, "run"));
	assert_false(take(b, "run"));
	assert_true(nr_claims_ours(a, "run") && !nr_claims_ours(b, "run"));
	assert_true(take(b, "run.1"));                  /* another name, though its file begins alike */
	assert_true(nr_claims_held(b, "run", &holder) && holder.here);
	assert_int_equal(holder.pid, getpid());
	nr_claims_drop(a, "run");
	assert_false(nr_claims_held(b, "run", NULL));
	assert_true(take(b, "run"));
	nr_claims_close(a);
	nr_claims_close(b);
	assert_int_equal(access(made_path("claims"), F_OK), -1);
}

static void one_of_many_processes_gets_it(void **state)
{
	(void)state;
	enum { MANY = 8, ROUNDS = 20 };
	for (int round = 0; round < ROUNDS; round++) {
		struct nr_claims *old = join();
		int go[2], done[2], gone[2], got = 0;
		stranger("dead", 1000);                 /* each of them has to take it over */
		put("run.1.claim", "dead\n", 1000);
		assert_int_equal(pipe(go) | pipe(done) | pipe(gone), 0);
		for (int i = 0; i < MANY; i++) {
			if (fork()) continue;
			char byte;
			struct nr_error mine = { 0 };
			struct nr_claims *c;
			bool taken = false;
			close(go[1]);
			close(gone[1]);
			const ssize_t ready = read(go[0], &byte, 1);
			int code = nr_claims_open(&c, made_path("claims"), &mine);
			if (!code) code = nr_claims_take(c, "run", &taken, &mine);
			const char result = code ? 99 : taken;
			const bool told = write(done[1], &result, 1) == 1;
			const ssize_t all = read(gone[0], &byte, 1);    /* it is kept until all have tried */
			_exit(ready || all || !told);
		}
		close(go[0]);
		close(gone[0]);
		close(go[1]);
		for (int i = 0; i < MANY; i++) {
			char result = 99;
			assert_int_equal(read(done[0], &result, 1), 1);
			got += result;
		}
		assert_int_equal(got, 1);
		close(gone[1]);
		for (int i = 0; i < MANY; i++) {
			int status;
			assert_true(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
		}
		close(done[0]);
		close(done[1]);
		assert_true(take(old, "run"));          /* it died with its process */
		nr_claims_close(old);
	}
}

static void a_silent_process_of_another_host_is_dead_after_a_minute(void **state)
{
	(void)state;
	struct nr_claims *c = join();
	struct nr_holder holder;
	stranger("node7", NR_CLAIM_PATIENCE / 2);
	put("run.4.claim", "node7\n", 3000);
	assert_false(take(c, "run"));
	assert_true(nr_claims_held(c, "run", &holder) && !holder.here);
	assert_string_equal(holder.host, "node7");
	stranger("node7", NR_CLAIM_PATIENCE + 30);
	assert_false(nr_claims_held(c, "run", NULL));
	assert_true(take(c, "run"));
	assert_int_equal(access(file("run.4.claim"), F_OK), -1);
	assert_int_equal(access(file("run.5.claim"), F_OK), 0);
	nr_claims_close(c);
}

static void a_process_that_left_no_file_is_dead(void **state)
{
	(void)state;
	struct nr_claims *c = join();
	put("run.1.claim", "nobody\n", 0);
	assert_true(take(c, "run"));
	put("half.1.claim", "", 0);                     /* somebody is about to write his name */
	assert_false(take(c, "half"));
	put("half.1.claim", "", NR_CLAIM_PATIENCE + 30);
	assert_true(take(c, "half"));
	nr_claims_close(c);
}

static void a_number_that_another_process_got_is_no_life_sign(void **state)
{
	(void)state;
	struct nr_claims *c = join();
	char text[1000] = "";
	glob_t found;                                   /* our own file, with another start */
	assert_int_equal(glob(made_path("claims/*.process"), 0, NULL, &found), 0);
	FILE *f = fopen(found.gl_pathv[0], "r");
	assert_non_null(f);
	const size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	globfree(&found);
	assert_true(n > 0);
	char *start = strstr(text, "start ");
	assert_non_null(start);
	put("same.process", text, 0);
	put("run.1.claim", "same\n", 0);
	assert_false(take(c, "run"));
	start[6] = start[6] == '9' ? '8' : '9';
	put("same.process", text, 0);
	assert_true(take(c, "run"));
	nr_claims_close(c);
}

static void what_was_taken_over_is_no_longer_ours(void **state)
{
	(void)state;
	struct nr_claims *c = join();
	assert_true(take(c, "run"));
	stranger("other", 0);
	put("run.1.claim", "other\n", 0);
	assert_false(nr_claims_ours(c, "run"));
	nr_claims_drop(c, "run");
	assert_int_equal(access(file("run.1.claim"), F_OK), 0);
	nr_claims_close(c);
	assert_int_equal(access(file("other.process"), F_OK), 0);
}

static void a_folder_that_cannot_be_written_is_said(void **state)
{
	(void)state;
	struct nr_claims *c;
	err = (struct nr_error){ 0 };
	assert_int_not_equal(nr_claims_open(&c, "/proc/nowhere/claims", &err), 0);
	assert_string_equal(err.subject, "/proc/nowhere/claims");
	nr_claims_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_taken_once),
		cmocka_unit_test(one_of_many_processes_gets_it),
		cmocka_unit_test(a_silent_process_of_another_host_is_dead_after_a_minute),
		cmocka_unit_test(a_process_that_left_no_file_is_dead),
		cmocka_unit_test(a_number_that_another_process_got_is_no_life_sign),
		cmocka_unit_test(what_was_taken_over_is_no_longer_ours),
		cmocka_unit_test(a_folder_that_cannot_be_written_is_said),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
