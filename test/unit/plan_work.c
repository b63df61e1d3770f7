/* What an instruction computes and moves: each value that it reads or writes, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "graph/plan.h"
#include "norma/nn.h"
#include "norma/norm.h"

struct fixture { struct nr_store *store; struct nr_net *net; struct nr_plan *plan; nr_t *x; };

/* Inputs x (2,9,16) and, for the loss sum(y w), w like y. */
static struct fixture begin(void)
{
	struct fixture f = { 0 };
	struct nr_error err = { 0 };
	assert_int_equal(nr_store_make(&f.store, 1, &err), 0);
	f.net = nr_net_make(f.store);
	f.x = nr_input(f.net, "x", NR_REAL, NR_SHAPE(2, 9, 16));
	return f;
}
static void train(struct fixture *f, nr_t *y)
{
	struct nr_error err = { 0 };
	nr_t *w = nr_input(f->net, "w", NR_REAL, NR_SHAPE(y->d[0], y->d[1], y->d[2]));
	assert_int_equal(nr_plan_make(&f->plan, f->net, nr_weighted_sum(f->net, y, w), NR_PLAN_TRAIN, &err), 0);
}
static void end(struct fixture *f)
{
	nr_plan_free(f->plan);
	nr_net_free(f->net);
	nr_store_free(f->store);
}
/* The first instruction of this op in this pass. */
static struct nr_work work_of(const struct fixture *f, const char *op, enum nr_instr_pass pass)
{
	for (int32_t i = 0; i < f->plan->n_instr; i++) {
		const struct nr_work w = nr_instr_work(f->plan, i);
		if (w.pass == pass && !strcmp(f->plan->instr[i].call.node->op->name, op)) return w;
	}
	fail_msg("no %s in pass %d", op, (int)pass);
	return (struct nr_work){ 0 };
}
static void assert_values(double bytes, int64_t values) { assert_int_equal((int64_t)bytes, values * (int64_t)sizeof(real)); }

static void a_linear_layer_moves_its_operands_once(void **state)
{
	(void)state;
	struct fixture f = begin();
	const int64_t x = 2 * 9 * 16, w = 4 * 16, b = 4, y = 2 * 9 * 4;
	train(&f, nr_linear(f.net, "fc", f.x, 4));
	const struct nr_work forward = work_of(&f, "linear", NR_PASS_FORWARD), backward = work_of(&f, "linear", NR_PASS_BACKWARD);
	assert_values(forward.bytes, x + w + b + y);
	assert_int_equal((int64_t)forward.flops, 2 * 18 * 64);
	/* x and w are kept; dy is read, dw and db are written, dx is not asked for */
	assert_values(backward.bytes, x + w + y + w + b);
	assert_int_equal((int64_t)backward.flops, 2 * 2 * 18 * 64);
	end(&f);
}

static void a_gradient_that_is_added_to_is_read_as_well(void **state)
{
	(void)state;
	struct fixture f = begin();
	f.x->flags |= NR_GRAD;
	const int64_t x = 2 * 9 * 16, w = 16 * 16, b = 16;
	/* what is recorded last comes first in backward and overwrites; the norm adds to the same gradient */
	nr_t *norm = nr_norm_make(f.net, "norm", "layer", f.x), *linear = nr_linear(f.net, "fc", f.x, 16);
	train(&f, nr_mul(f.net, norm, linear));
	const double first = work_of(&f, "linear", NR_PASS_BACKWARD).bytes, second = work_of(&f, "layer", NR_PASS_BACKWARD).bytes;
	assert_values(first, x + w + x + x + w + b);
	double stash = 0;
	for (int32_t i = 0; i < f.plan->n_instr; i++) {
		const struct nr_node *k = f.plan->instr[i].call.node;
		if (!strcmp(k->op->name, "layer")) stash = (double)k->stash;
	}
	assert_values(second - stash, x + 16 + x + 2 * x + 16 + 16);   /* x, gain; dy; dx twice; the gradients of gain and shift */
	end(&f);
}

static void a_view_in_place_moves_nothing(void **state)
{
	(void)state;
	struct fixture f = begin();
	train(&f, nr_linear(f.net, "b", nr_span(f.net, nr_linear(f.net, "a", f.x, 8), 0, 9), 4));
	for (int32_t i = 0; i < f.plan->n_instr; i++)
		if (f.plan->instr[i].call.node->op->flags & NR_VIEW) assert_values(nr_instr_work(f.plan, i).bytes, 0);
	end(&f);
}

static void an_embedding_reads_the_rows_that_it_writes(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *ids = nr_input(f.net, "ids", NR_I32, NR_SHAPE(2, 3));
	train(&f, nr_embedding(f.net, "table", ids, 1000, 8, -1));
	const int64_t y = 2 * 3 * 8, table = 1000 * 8, id = 2 * 3 * (int64_t)sizeof(int32_t);
	assert_values(work_of(&f, "embedding", NR_PASS_FORWARD).bytes - (double)id, 2 * y);
	assert_values(work_of(&f, "embedding", NR_PASS_BACKWARD).bytes - (double)id, y + table);        /* the other rows are set to zero */
	end(&f);
}

/* ---- who is woken ------------------------------------------------------------------------------------------------ */

static int threads_seen, threads_after;
static int look_shape(struct nr_node *k) { return nr_out_like(k, 0, k->in[0]), 0; }
static void look(const struct nr_call *k)
{
	threads_seen = omp_get_max_threads();
	memcpy(k->y[0].p, k->x[0].p, (size_t)(k->x[0].rows * k->x[0].c) * sizeof(real));
}
static void look_after(void *context, int32_t i)
{
	(void)context, (void)i;
	threads_after = omp_get_max_threads();
}
static const struct nr_op op_look = { .name = "look", .shape = look_shape, .forward = look };

/* The threads that an instruction of so many values may use, of three. */
static int threads_of(int64_t values, unsigned flags)
{
	struct nr_store *store = NULL;
	struct nr_plan *p = NULL;
	struct nr_error err = { 0 };
	const int before = omp_get_max_threads();
	omp_set_num_threads(3);
	assert_int_equal(nr_store_make(&store, 1, &err), 0);
	struct nr_net *net = nr_net_make(store);
	nr_t *x = nr_input(net, "x", NR_REAL, NR_SHAPE(values / 16, 16));
	assert_int_equal(nr_plan_make(&p, net, nr_apply(net, &op_look, NULL, 0, x), flags, &err), 0);
	nr_plan_run(p, &(struct nr_exec){ .after = look_after }, NR_RUN_FORWARD);
	assert_int_equal(threads_after, 3);             /* who looks on has them all */
	assert_int_equal(omp_get_max_threads(), 3);     /* and so has the caller, afterwards */
	omp_set_num_threads(before);
	nr_plan_free(p);
	nr_net_free(net);
	nr_store_free(store);
	return threads_seen;
}

static void small_work_wakes_nobody(void **state)
{
	(void)state;
	assert_int_equal(threads_of(16, 0), 1);
	assert_int_equal(threads_of(1600, 0), 1);
	assert_int_equal(threads_of(1 << 20, 0), 3);
	assert_int_equal(threads_of(16, NR_PLAN_SHARE), 3);
	setenv("NORMA_SHARE", "1", 1);
	assert_int_equal(threads_of(16, 0), 3);
	unsetenv("NORMA_SHARE");
}

/* A step of a small MLP hands over nothing; the products of a larger one are shared. */
static void a_small_network_stays_on_its_thread(void **state)
{
	(void)state;
	for (int64_t rows = 32; rows <= 2048; rows *= 64) {
		struct fixture f = { 0 };
		struct nr_error err = { 0 };
		assert_int_equal(nr_store_make(&f.store, 1, &err), 0);
		f.net = nr_net_make(f.store);
		f.x = nr_input(f.net, "x", NR_REAL, NR_SHAPE(1, rows, 32));
		train(&f, nr_linear(f.net, "b", nr_norm_make(f.net, "norm", "layer", nr_linear_gelu(f.net, "a", f.x, 64)), 10));
		int shared = 0, products = 0;
		for (int32_t i = 0; i < f.plan->n_instr; i++) {
			shared += !f.plan->instr[i].alone;
			products += !strncmp(f.plan->instr[i].call.node->op->name, "linear", 6);
		}
		assert_true(products >= 4);
		if (rows == 32) assert_int_equal(shared, 0);
		else assert_true(shared >= products);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_linear_layer_moves_its_operands_once),
		cmocka_unit_test(a_gradient_that_is_added_to_is_read_as_well),
		cmocka_unit_test(a_view_in_place_moves_nothing),
		cmocka_unit_test(an_embedding_reads_the_rows_that_it_writes),
		cmocka_unit_test(small_work_wakes_nobody),
		cmocka_unit_test(a_small_network_stays_on_its_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
