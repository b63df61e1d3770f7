/* The recorder: scopes, names, and errors that stick and say where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "norma/nn.h"
#include "norma/norm.h"

static struct nr_store *store;
static struct nr_net *net;

static int begin(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	nr_store_make(&store, 1, &err);
	net = nr_net_make(store);
	return 0;
}
static int end(void **state)
{
	(void)state;
	nr_net_free(net);
	nr_store_free(store);
	return 0;
}
static nr_t *input(void) { return nr_input(net, "x", NR_REAL, NR_SHAPE(2, 5, 8)); }
static const char *message(void)
{
	static char text[1024];
	return nr_error_text(nr_net_error(net), text, sizeof text);
}

static void scopes_name_the_parameters(void **state)
{
	(void)state;
	nr_t *x = input();
	nr_push(net, "blocks.%d", 3);
	nr_push(net, "attn");
	nr_linear(net, "qkv", x, 24);
	nr_pop(net, x);
	nr_norm_make(net, "norm1", "layer", x);
	nr_pop(net, x);
	nr_linear(net, "head", x, 2);
	assert_non_null(nr_store_find(store, "blocks.3.attn.qkv.weight"));
	assert_non_null(nr_store_find(store, "blocks.3.norm1.bias"));
	assert_non_null(nr_store_find(store, "head.weight"));
}

static void a_shape_error_names_scope_file_and_sizes(void **state)
{
	(void)state;
	nr_t *x = input();
	nr_push(net, "blocks.%d", 7);
	assert_null(nr_add(net, x, nr_linear(net, "fc", x, 9)));
	assert_int_equal(nr_net_error(net)->code, NR_ESHAPE);
	assert_non_null(strstr(message(), "blocks.7"));
	assert_non_null(strstr(message(), "net.c:"));
	assert_non_null(strstr(message(), "2x5x8"));
	assert_non_null(strstr(message(), "2x5x9"));
}

static void the_first_error_sticks_and_builders_pass_null(void **state)
{
	(void)state;
	nr_t *x = input();
	nr_t *bad = nr_span(net, x, 4, 9);
	assert_null(bad);
	char first[1024];
	nr_error_text(nr_net_error(net), first, sizeof first);
	assert_null(nr_linear(net, "fc", bad, 3));
	assert_null(nr_add(net, bad, x));
	assert_null(nr_norm_make(net, "n", "nosuch", x));
	assert_string_equal(first, message());
	struct nr_plan *p;
	struct nr_error err = { 0 };
	assert_int_equal(nr_plan_make(&p, net, NULL, 0, &err), NR_ESHAPE);
	assert_null(p);
}

static void an_unknown_norm_names_the_nearest(void **state)
{
	(void)state;
	assert_null(nr_norm_make(net, "norm1", "layr", input()));
	assert_non_null(strstr(message(), "layer"));
}

static void an_unknown_norm_option_names_the_nearest(void **state)
{
	(void)state;
	assert_null(nr_norm_make(net, "norm1", "layer:esp=1e-6", input()));
	assert_non_null(strstr(message(), "eps"));
}

static void sizes_that_cannot_be_are_refused(void **state)
{
	(void)state;
	assert_null(nr_input(net, "x", NR_REAL, NR_SHAPE(0, 3)));
	assert_int_equal(nr_net_error(net)->code, NR_ESHAPE);
}

static void sizes_that_overflow_are_refused(void **state)
{
	(void)state;
	assert_null(nr_input(net, "x", NR_REAL, NR_SHAPE((int64_t)1 << 40, (int64_t)1 << 40, 8)));
	assert_int_equal(nr_net_error(net)->code, NR_ESHAPE);
}

static void a_shape_counts_its_sizes(void **state)
{
	(void)state;
	const int32_t narrow = 5;
	const struct nr_shape s = NR_SHAPE(2, narrow, (int64_t)8), scalar = NR_SHAPE(1);
	assert_int_equal(s.nd, 3);
	assert_int_equal(s.d[1], 5);
	assert_int_equal(scalar.nd, 1);
	const struct nr_shape same = nr_shape_of(input());
	assert_int_equal(same.nd, 3);
	assert_int_equal(same.d[2], 8);
	const nr_t *flat = nr_reshape(net, input(), NR_SHAPE(-1, 4));
	assert_int_equal(flat->d[0], 20);
	assert_null(nr_reshape(net, input(), (struct nr_shape){ .nd = NR_MAXD + 1 }));
	assert_int_equal(nr_net_error(net)->code, NR_ELIMIT);
}

static void one_name_is_one_parameter(void **state)
{
	(void)state;
	nr_t *x = input();
	nr_linear(net, "fc", nr_linear(net, "fc", x, 8), 8);
	assert_int_equal(nr_store_count(store), 2);
	assert_null(nr_linear(net, "fc", x, 4)); /* another shape */
	assert_int_equal(nr_net_error(net)->code, NR_ESHAPE);
}

static void endless_scopes_are_refused(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) nr_push(net, "deep");
	assert_int_equal(nr_net_error(net)->code, NR_ELIMIT);
}

static void a_span_keeps_the_meaning_of_its_tokens(void **state)
{
	(void)state;
	nr_t *x = nr_with_tokens(net, input(), (struct nr_tokens){ .special = 1, .h = 2, .w = 2, .heads = 4 });
	const nr_t *cls = nr_span(net, x, 0, 1), *rest = nr_span(net, x, 1, NR_END);
	assert_int_equal(cls->tok->special, 1);
	assert_int_equal(cls->tok->h, 0);
	assert_int_equal(rest->tok->special, 0);
	assert_int_equal(rest->tok->h, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
		T(scopes_name_the_parameters), T(a_shape_error_names_scope_file_and_sizes),
		T(the_first_error_sticks_and_builders_pass_null),
		T(an_unknown_norm_names_the_nearest), T(an_unknown_norm_option_names_the_nearest), T(sizes_that_cannot_be_are_refused),
		T(sizes_that_overflow_are_refused), T(a_shape_counts_its_sizes), T(one_name_is_one_parameter),
		T(endless_scopes_are_refused),
		T(a_span_keeps_the_meaning_of_its_tokens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
