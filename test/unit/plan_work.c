/* What an instruction computes and moves: each value that it reads or writes, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

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
	f.x = nr_input(f.net, "x", NR_REAL, 3, (int64_t)2, (int64_t)9, (int64_t)16);
	return f;
}
static void train(struct fixture *f, nr_t *y)
{
	struct nr_error err = { 0 };
	nr_t *w = nr_input(f->net, "w", NR_REAL, 3, y->d[0], y->d[1], y->d[2]);
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
	nr_t *ids = nr_input(f.net, "ids", NR_I32, 2, (int64_t)2, (int64_t)3);
	train(&f, nr_embedding(f.net, "table", ids, 1000, 8, -1));
	const int64_t y = 2 * 3 * 8, table = 1000 * 8, id = 2 * 3 * (int64_t)sizeof(int32_t);
	assert_values(work_of(&f, "embedding", NR_PASS_FORWARD).bytes - (double)id, 2 * y);
	assert_values(work_of(&f, "embedding", NR_PASS_BACKWARD).bytes - (double)id, y + table);        /* the other rows are set to zero */
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_linear_layer_moves_its_operands_once),
		cmocka_unit_test(a_gradient_that_is_added_to_is_read_as_well),
		cmocka_unit_test(a_view_in_place_moves_nothing),
		cmocka_unit_test(an_embedding_reads_the_rows_that_it_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
