/* The store: initial values, layout, and safetensors in and out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/real.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/safetensors.h"

struct model { struct nr_store *store; struct nr_net *net; struct nr_error err; };

static struct model make(uint64_t seed, int64_t width)
{
	struct model m = { 0 };
	nr_store_make(&m.store, seed, &m.err);
	m.net = nr_net_make(m.store);
	nr_t *x = nr_input(m.net, "x", NR_REAL, NR_SHAPE(3, 100));
	nr_norm_make(m.net, "norm", "layer", nr_linear(m.net, "fc", x, width));
	nr_push(m.net, "bn");
	nr_buffer(m.net, "running_var", NR_ONES, NR_SHAPE(width));
	nr_pop(m.net, x);
	assert_int_equal(nr_store_seal(m.store, &m.err), 0);
	return m;
}
static void drop(struct model *m)
{
	nr_net_free(m->net);
	nr_store_free(m->store);
}
static const char *file(void)
{
	static char path[64];
	snprintf(path, sizeof path, "/tmp/norma-store-%d.safetensors", (int)getpid());
	return path;
}

static void a_seed_means_the_same_weights(void **state)
{
	(void)state;
	struct model a = make(4, 50), b = make(4, 50), c = make(5, 50);
	int64_t n;
	const real *va = nr_store_values(a.store, &n), *vb = nr_store_values(b.store, &n), *vc = nr_store_values(c.store, &n);
	assert_memory_equal(va, vb, (size_t)n * sizeof(real));
	assert_true(memcmp(va, vc, (size_t)n * sizeof(real)) != 0);
	drop(&a), drop(&b), drop(&c);
}

static void xavier_fills_its_bounds(void **state)
{
	(void)state;
	struct model m = make(4, 50);
	const struct nr_entry *e = nr_store_find(m.store, "fc.weight");
	const real bound = nr_sqrt((real)6 / (100 + 50)), *v = nr_value(e);
	double sum = 0, most = 0;
	for (int64_t i = 0; i < e->count; i++) sum += (double)v[i], most = fmax(most, fabs((double)v[i]));
	assert_true(most <= (double)bound && most > 0.99 * (double)bound);
	assert_true(fabs(sum / (double)e->count) < 0.01);
	drop(&m);
}

static void every_one_of_many_names_is_found(void **state)
{
	(void)state;
	struct model m = { 0 };
	char name[32];
	nr_t *first[1000];
	nr_store_make(&m.store, 1, &m.err);
	m.net = nr_net_make(m.store);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "blocks.%d.weight", i);
		assert_null(nr_store_find(m.store, name));
		assert_non_null(first[i] = nr_param(m.net, name, NR_ONES, NR_SHAPE(i + 1)));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "blocks.%d.weight", i);
		assert_ptr_equal(nr_store_find(m.store, name), nr_store_at(m.store, i));
		assert_int_equal(nr_store_at(m.store, i)->count, i + 1);
		assert_ptr_equal(nr_param(m.net, name, NR_ONES, NR_SHAPE(i + 1)), first[i]);
	}
	assert_int_equal(nr_store_count(m.store), 1000);
	assert_null(nr_store_find(m.store, "blocks.1000.weight"));
	drop(&m);
}

static void entries_begin_at_whole_lines(void **state)
{
	(void)state;
	struct model m = make(4, 7);
	for (int64_t i = 0; i < nr_store_count(m.store); i++) assert_int_equal(nr_store_at(m.store, i)->offset % 16, 0);
	assert_true(nr_store_find(m.store, "bn.running_var")->offset > nr_store_find(m.store, "norm.bias")->offset);
	assert_null(nr_grad(nr_store_find(m.store, "bn.running_var")));
	drop(&m);
}

static void what_is_saved_is_loaded(void **state)
{
	(void)state;
	struct model a = make(4, 7), b = make(9, 7);
	assert_int_equal(nr_store_save(a.store, file(), &a.err), 0);
	assert_int_equal(nr_store_load(b.store, file(), &b.err), 0);
	int64_t n;
	const real *va = nr_store_values(a.store, &n), *vb = nr_store_values(b.store, &n);
	assert_memory_equal(va, vb, (size_t)n * sizeof(real));
	unlink(file());
	drop(&a), drop(&b);
}

static void another_shape_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	struct model a = make(4, 7), b = make(9, 8), c = make(9, 8);
	assert_int_equal(nr_store_save(a.store, file(), &a.err), 0);
	assert_int_equal(nr_store_load(b.store, file(), &b.err), NR_ESHAPE);
	assert_non_null(strstr(b.err.detail, "fc.weight"));
	int64_t n;
	const real *vb = nr_store_values(b.store, &n), *vc = nr_store_values(c.store, &n);
	assert_memory_equal(vb, vc, (size_t)n * sizeof(real));
	unlink(file());
	drop(&a), drop(&b), drop(&c);
}

static void a_left_over_tensor_is_named(void **state)
{
	(void)state;
	struct model a = make(4, 7);
	const float v = 1;
	struct nr_st_tensor t[5];
	for (int64_t i = 0; i < 5; i++) {
		const struct nr_entry *e = nr_store_at(a.store, i);
		t[i] = (struct nr_st_tensor){ .name = e->name, .dtype = NR_ST_F32, .nd = e->nd,
					      .data = nr_value(e), .bytes = (size_t)e->count * 4 };
		memcpy(t[i].shape, e->d, (size_t)e->nd * sizeof *e->d);
	}
	struct nr_st_tensor all[6];
	memcpy(all, t, sizeof t);
	all[5] = (struct nr_st_tensor){ .name = "norm.biass", .dtype = NR_ST_F32, .nd = 1, .shape = { 1 }, .data = &v, .bytes = 4 };
	assert_int_equal(nr_st_write(file(), all, 6, NULL, 0, &a.err), 0);
	assert_int_equal(nr_store_load(a.store, file(), &a.err), NR_ENAME);
	assert_non_null(strstr(a.err.detail, "norm.biass"));
	assert_non_null(strstr(a.err.hint, "norm.bias"));
	unlink(file());
	drop(&a);
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	struct model a = make(4, 7);
	assert_int_equal(nr_store_load(a.store, "/nonexistent/x.safetensors", &a.err), NR_EIO);
	assert_string_equal(a.err.subject, "/nonexistent/x.safetensors");
	drop(&a);
}

static void a_sealed_store_takes_no_new_names(void **state)
{
	(void)state;
	struct model a = make(4, 7);
	assert_null(nr_param(a.net, "late", NR_ZEROS, NR_SHAPE(3)));
	assert_int_equal(nr_net_error(a.net)->code, NR_EUSAGE);
	drop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_means_the_same_weights), cmocka_unit_test(xavier_fills_its_bounds),
		cmocka_unit_test(every_one_of_many_names_is_found), cmocka_unit_test(entries_begin_at_whole_lines),
		cmocka_unit_test(what_is_saved_is_loaded),
		cmocka_unit_test(another_shape_is_refused_and_changes_nothing), cmocka_unit_test(a_left_over_tensor_is_named),
		cmocka_unit_test(a_missing_file_is_named), cmocka_unit_test(a_sealed_store_takes_no_new_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
