/* data/mat.c: what is read, what is refused, and that a small file cannot take much memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/mat.h"
#include "unit/mats.h"

static char path[64];

static void refuses(const char *name, int64_t max, const char *part)
{
	struct nr_mat m;
	struct nr_error err = { 0 };
	assert_int_equal(nr_mat_read(&m, path, name, max, &err), NR_EFORMAT);
	if (!strstr(err.detail, part)) fail_msg("'%s' should say '%s'", err.detail, part);
	assert_null(m.data);
}

static void numbers_are_read_plain_and_compressed(void **state)
{
	(void)state;
	const double x[6] = { 1, 2, 3, 4, 5, -6.5 };
	const uint8_t few[3] = { 7, 8, 9 };
	for (int packed = 0; packed < 2; packed++) {
		FILE *f = mat_begin(path);
		mat_put(f, "text", MAT_CLASS_CHAR, MAT_UINT8, 2, (int32_t[]){ 1, 3 }, "abc", 3, packed);
		mat_put(f, "x", MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 2, 3 }, x, sizeof x, packed);
		mat_put(f, "few", MAT_CLASS_DOUBLE, MAT_UINT8, 2, (int32_t[]){ 1, 3 }, few, sizeof few, packed);
		mat_put(f, "complex", 0x800 | MAT_CLASS_DOUBLE, MAT_DOUBLE, 2, (int32_t[]){ 1, 1 }, x, 8, packed);
		fclose(f);
		struct nr_mat m;
		assert_int_equal(nr_mat_read(&m, path, "x", 100, NULL), NR_OK);
		assert_int_equal(m.count, 6);
		assert_int_equal(m.dim[1], 3);
		assert_true(nr_mat_at(&m, 5) == -6.5);
		assert_null(nr_mat_bytes(&m));
		nr_mat_release(&m);
		assert_int_equal(nr_mat_read(&m, path, "few", 100, NULL), NR_OK);    /* doubles that fit into bytes are kept as bytes */
		assert_true(nr_mat_at(&m, 2) == 9);
		assert_null(nr_mat_bytes(&m));
		nr_mat_release(&m);
		refuses("text", 100, "not an array of numbers");
		refuses("complex", 100, "complex");
		refuses("x", 5, "too large");
		refuses("y", 100, "missing");
	}
}

static void a_small_element_lies_in_its_tag(void **state)
{
	(void)state;
	static const uint8_t body[] = { 14, 0, 0, 0, 48, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0,
		1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 0, 'y', 0, 0, 0, 2, 0, 2, 0, 40, 2, 0, 0 };
	FILE *f = mat_begin(path);
	fwrite(body, 1, sizeof body, f);
	fclose(f);
	struct nr_mat m;
	assert_int_equal(nr_mat_read(&m, path, "y", 100, NULL), NR_OK);
	assert_int_equal(nr_mat_bytes(&m)[0], 40);
	assert_int_equal(nr_mat_bytes(&m)[1], 2);
	nr_mat_release(&m);
}

static void a_file_that_claims_more_than_it_holds_is_refused_at_once(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		const uint32_t tag[2] = { MAT_UINT8, 1u << 31 };
		struct nr_str s = { 0 }, whole = { 0 };
		mat_element(&s, 6, (uint32_t[]){ MAT_CLASS_UINT8, 0 }, 8);
		mat_element(&s, 5, (int32_t[]){ 1 << 16, 1 << 15 }, 8);
		mat_element(&s, 1, "X", 1);
		nr_str_add_n(&s, (const char *)tag, sizeof tag);
		nr_str_fill(&s, 0, 64);
		mat_element(&whole, 14, s.text, s.len);
		uLongf room = compressBound(whole.len);
		Bytef *z = malloc(room);
		compress(z, &room, (const Bytef *)whole.text, whole.len);
		FILE *f = mat_begin(path);
		if (packed) fwrite((uint32_t[]){ 15, (uint32_t)room }, 4, 2, f);
		fwrite(packed ? (const char *)z : whole.text, 1, packed ? room : whole.len, f);
		fclose(f);
		refuses("X", INT64_MAX, "damaged or incomplete");
		free(z);
		nr_str_release(&s);
		nr_str_release(&whole);
	}
}

static int begin(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/norma-mat-%ld.mat", (long)getpid());
	return 0;
}
static int end(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_plain_and_compressed),
		cmocka_unit_test(a_small_element_lies_in_its_tag),
		cmocka_unit_test(a_file_that_claims_more_than_it_holds_is_refused_at_once),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
