/* The planner: what is pruned, fused, aliased, rebuilt and packed. That the numbers stay right is gradcheck's part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "graph/plan.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "unit/values.h"

struct fixture { struct nr_store *store; struct nr_net *net; nr_t *x; };

static struct fixture begin(void)
{
	struct fixture f;
	struct nr_error err = { 0 };
	assert_int_equal(nr_store_make(&f.store, 1, &err), 0);
	f.net = nr_net_make(f.store);
	f.x = nr_input(f.net, "x", NR_REAL, NR_SHAPE(2, 9, 16));
	return f;
}
static struct nr_plan *plan(struct fixture *f, nr_t *loss, unsigned flags)
{
	struct nr_plan *p = NULL;
	struct nr_error err = { 0 };
	nr_plan_make(&p, f->net, loss, flags, &err);
	if (!p) fail_msg("%s %s", err.what, err.detail);
	return p;
}
static void end(struct fixture *f, struct nr_plan *p)
{
	nr_plan_free(p);
	nr_net_free(f->net);
	nr_store_free(f->store);
}
static nr_t *ln(struct nr_net *n, const char *scope, nr_t *x) { return nr_norm_make(n, scope, "layer", x); }
static nr_t *block(struct nr_net *n, nr_t *x, int i)
{
	nr_push(n, "blocks.%d", i);
	x = nr_add(n, x, nr_linear(n, "fc2", nr_linear_gelu(n, "fc1", ln(n, "norm", x), 4 * x->d[2]), x->d[2]));
	return nr_pop(n, x);
}
static int count_op(const struct nr_plan *p, const char *name)
{
	int n = 0;
	for (int32_t i = 0; i < p->n_instr; i++) n += !strcmp(p->instr[i].call.node->op->name, name);
	return n;
}

static void what_nobody_needs_does_not_run(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *y = nr_linear(f.net, "used", f.x, 4);
	nr_linear(f.net, "unused", y, 4);
	struct nr_plan *p = plan(&f, y, 0);
	assert_int_equal(count_op(p, "linear"), 1);
	end(&f, p);
}

static void a_tap_keeps_what_the_loss_does_not_need(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *y = nr_linear(f.net, "a", f.x, 4), *side = nr_tap(f.net, "side", nr_linear(f.net, "b", y, 4));
	struct nr_plan *p = plan(&f, y, 0);
	assert_int_equal(count_op(p, "linear"), 2);
	assert_non_null(nr_plan_data(p, side));
	struct nr_error err = { 0 };
	assert_ptr_equal(nr_plan_tap(p, "side", &err), side);
	assert_null(nr_plan_tap(p, "sibe", &err));
	assert_int_equal(err.code, NR_ENAME);
	assert_non_null(strstr(err.hint, "side"));
	end(&f, p);
}

static void residual_and_norm_become_one(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *y = ln(f.net, "final", block(f.net, block(f.net, f.x, 0), 1));
	struct nr_plan *p = plan(&f, y, NR_PLAN_TRAIN);
	assert_int_equal(count_op(p, "add"), 0);                /* two sums, each followed by a norm */
	assert_int_equal(count_op(p, "act"), 0);
	assert_int_equal(nr_plan_stats(p).fused, 4);
	struct nr_plan *q = plan(&f, y, NR_PLAN_TRAIN | NR_PLAN_NO_FUSE);
	assert_int_equal(nr_plan_stats(q).fused, 0);
	nr_plan_free(q);
	end(&f, p);
}

static void the_environment_turns_fusing_off(void **state)
{
	(void)state;
	struct fixture f = begin();
	setenv("NORMA_FUSE", "0", 1);
	struct nr_plan *p = plan(&f, nr_linear_gelu(f.net, "fc", f.x, 3), 0);
	unsetenv("NORMA_FUSE");
	assert_int_equal(nr_plan_stats(p).fused, 0);
	end(&f, p);
}

/* Every pointer of join and span is where its neighbour wants it: SepNorm's split and join copy nothing. */
static void split_and_join_copy_nothing(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *t = nr_linear(f.net, "fc", f.x, 16);
	nr_t *y = nr_join(f.net, ln(f.net, "cls", nr_span(f.net, t, 0, 1)), ln(f.net, "tok", nr_span(f.net, t, 1, NR_END)));
	struct nr_plan *p = plan(&f, nr_linear(f.net, "out", y, 2), NR_PLAN_TRAIN);
	for (int32_t i = 0; i < p->n_instr; i++) {
		const struct nr_call *c = &p->instr[i].call;
		const int back = i >= p->n_forward;
		const struct nr_view *whole, *part[2];
		if (c->node->op == &nr_op_join) {
			whole = back ? &c->dy[0] : &c->y[0];
			part[0] = back ? &c->dx[0] : &c->x[0], part[1] = back ? &c->dx[1] : &c->x[1];
			assert_ptr_equal(part[0]->p, whole->p);
			assert_ptr_equal(part[1]->p, (real *)whole->p + 16);
		} else if (c->node->op == &nr_op_span) {
			const struct nr_span_attr *a = c->node->attr;
			whole = back ? &c->dx[0] : &c->x[0];
			assert_ptr_equal((back ? c->dy : c->y)[0].p, (real *)whole->p + a->from * 16);
		}
	}
	end(&f, p);
}

/* The gradient of a residual stream is one buffer: no sum copies it. */
static void skips_share_one_gradient(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *x = nr_linear(f.net, "embed", f.x, 16);
	for (int i = 0; i < 4; i++) x = block(f.net, x, i);
	struct nr_plan *p = plan(&f, ln(f.net, "final", x), NR_PLAN_TRAIN | NR_PLAN_NO_FUSE);
	const void *at = NULL;
	for (int32_t i = p->n_forward; i < p->n_instr; i++) {
		const struct nr_call *c = &p->instr[i].call;
		if (c->node->op != &nr_op_add) continue;
		assert_ptr_equal(c->dx[0].p, c->dy[0].p);
		assert_ptr_equal(c->dx[1].p, c->dy[0].p);
		if (at) assert_ptr_equal(c->dy[0].p, at);
		at = c->dy[0].p;
	}
	assert_non_null(at);
	end(&f, p);
}

static void dead_buffers_are_used_again(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *x = nr_linear(f.net, "embed", f.x, 16);
	for (int i = 0; i < 6; i++) x = block(f.net, x, i);
	struct nr_plan *infer = plan(&f, x, 0), *train = plan(&f, x, NR_PLAN_TRAIN), *less = plan(&f, x, NR_PLAN_TRAIN | NR_PLAN_REBUILD);
	const struct nr_plan_stats i = nr_plan_stats(infer), t = nr_plan_stats(train), l = nr_plan_stats(less);
	assert_true(i.arena_bytes * 4 < i.no_reuse_bytes);
	assert_true(t.arena_bytes < t.no_reuse_bytes);
	assert_true(i.arena_bytes < t.arena_bytes);
	assert_true(l.rebuilt > 0 && l.arena_bytes < t.arena_bytes);
	nr_plan_free(infer);
	nr_plan_free(less);
	end(&f, train);
}

/* No two buffers that live at the same time overlap. */
static void living_buffers_never_overlap(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *x = nr_linear(f.net, "embed", f.x, 16);
	for (int i = 0; i < 3; i++) x = block(f.net, x, i);
	struct nr_plan *p = plan(&f, x, NR_PLAN_TRAIN | NR_PLAN_REBUILD);
	for (int32_t a = 0; a < p->n_buf; a++)
		for (int32_t b = 0; b < a; b++) {
			const struct buffer *u = &p->buf[a], *v = &p->buf[b];
			if (u->root != a || v->root != b || u->first > u->last || v->first > v->last) continue;
			if (u->first > v->last || v->first > u->last) continue;
			assert_true(u->offset + u->bytes <= v->offset || v->offset + v->bytes <= u->offset);
		}
	end(&f, p);
}

/* Largest first, each at the lowest offset that is free during its life: the plan of before, found by trying every place. */
static int placed_before(const struct buffer *a, const struct buffer *b)
{
	if (a->bytes != b->bytes) return a->bytes > b->bytes;
	return a->first != b->first ? a->first < b->first : a->root < b->root;
}
static int is_free(const struct nr_plan *p, const struct buffer *x, int64_t at)
{
	for (int32_t b = 0; b < p->n_buf; b++) {
		const struct buffer *y = &p->buf[b];
		if (y->root != b || y->first > y->last || !placed_before(y, x) || y->first > x->last || x->first > y->last) continue;
		if (y->offset < at + x->bytes && at < y->offset + y->bytes) return 0;
	}
	return 1;
}
static void every_buffer_lies_as_low_as_it_can(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *x = nr_linear(f.net, "embed", f.x, 16);
	for (int i = 0; i < 7; i++) {
		x = block(f.net, x, i);
		if (i % 3 == 1)
			x = nr_add(f.net, x, nr_linear(f.net, i == 1 ? "a" : "b", nr_linear(f.net, i == 1 ? "c" : "d", x, 5 + 9 * i), 16));
	}
	struct nr_plan *p = plan(&f, ln(f.net, "final", x), NR_PLAN_TRAIN | NR_PLAN_REBUILD);
	int64_t checked = 0, moved = 0;
	for (int32_t b = 0; b < p->n_buf; b++) {
		const struct buffer *y = &p->buf[b];
		if (y->root != b || y->first > y->last) continue;
		assert_true(is_free(p, y, y->offset));
		for (int64_t at = 0; at < y->offset; at += 64) assert_false(is_free(p, y, at));
		checked++;
		moved += y->offset > 0;
	}
	assert_true(checked > 40 && moved > 20);
	end(&f, p);
}

static void flops_of_a_linear_layer_are_counted(void **state)
{
	(void)state;
	struct fixture f = begin();
	struct nr_plan *p = plan(&f, nr_linear(f.net, "fc", f.x, 4), NR_PLAN_TRAIN);
	assert_true(nr_plan_stats(p).forward_flops == 2.0 * 18 * 16 * 4);
	assert_true(nr_plan_stats(p).backward_flops == 4.0 * 18 * 16 * 4);
	assert_int_equal(nr_plan_stats(p).param_count, 16 * 4 + 4);
	end(&f, p);
}

static void the_print_names_the_peak(void **state)
{
	(void)state;
	struct fixture f = begin();
	struct nr_plan *p = plan(&f, block(f.net, f.x, 0), NR_PLAN_TRAIN);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	nr_plan_print(p, out, 1);
	fclose(out);
	assert_non_null(strstr(text, "linear_act"));
	assert_non_null(strstr(text, "blocks.0"));
	assert_non_null(strstr(text, "peak: "));
	free(text);
	end(&f, p);
}

static void training_without_parameters_is_refused(void **state)
{
	(void)state;
	struct fixture f = begin();
	struct nr_error err = { 0 };
	struct nr_plan *p;
	assert_int_equal(nr_plan_make(&p, f.net, nr_add(f.net, f.x, f.x), NR_PLAN_TRAIN, &err), NR_EVALUE);
	assert_null(p);
	end(&f, NULL);
}

static void a_frozen_parameter_gets_no_gradient(void **state)
{
	(void)state;
	struct fixture f = begin();
	nr_t *y = nr_linear(f.net, "b", nr_linear(f.net, "a", f.x, 4), 4);
	nr_store_find(f.store, "a.weight")->frozen = nr_store_find(f.store, "a.bias")->frozen = 1;
	struct nr_plan *p = plan(&f, y, NR_PLAN_TRAIN);
	assert_int_equal(p->n_instr - p->n_forward, 2); /* the seed and one linear */
	end(&f, p);
}

/* One model at two lengths in one memory gives what each gives in its own. */
static void a_guest_shares_the_memory_of_its_host(void **state)
{
	(void)state;
	struct fixture f = begin();
	struct nr_net *small = nr_net_make(f.store);
	nr_t *x = nr_input(small, "x", NR_REAL, NR_SHAPE(2, 3, 16));
	nr_t *large_loss = block(f.net, f.x, 0), *small_loss = block(small, x, 0);
	struct nr_plan *host = plan(&f, large_loss, NR_PLAN_TRAIN), *guest, *alone;
	assert_int_equal(nr_plan_make_beside(&guest, small, small_loss, NR_PLAN_TRAIN, host, NULL), 0);
	assert_int_equal(nr_plan_make(&alone, small, small_loss, NR_PLAN_TRAIN, NULL), 0);
	assert_ptr_equal(guest->memory, host->memory);
	const struct nr_exec ex = { .train = 1 };
	struct nr_plan *const both[] = { guest, alone };
	real loss[2], grad[2];
	for (int k = 0; k < 2; k++) {
		real *values = nr_plan_data(host, f.x);
		for (int64_t i = 0; i < nr_len(f.x); i++) values[i] = 9;
		nr_plan_run(host, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		values = nr_plan_data(both[k], x);
		for (int64_t i = 0; i < nr_len(x); i++) values[i] = (real)(i % 7) - 3;
		nr_plan_run(both[k], &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		loss[k] = *(real *)nr_plan_data(both[k], small_loss);
		grad[k] = nr_grad(nr_store_find(f.store, "blocks.0.fc1.weight"))[5];
	}
	assert_true(loss[0] == loss[1] && grad[0] == grad[1] && loss[0] != 0);
	nr_plan_free(alone);
	nr_plan_free(guest);
	nr_net_free(small);
	end(&f, host);
}

static uint32_t turned_anywhere(const struct nr_plan *p)
{
	uint32_t any = 0;
	for (int32_t i = 0; i < p->n_instr; i++) any |= p->instr[i].call.turned;
	return any;
}

static const real *run_on_steps(struct nr_plan *p, const nr_t *x, const nr_t *y)
{
	real *values = nr_plan_data(p, x);
	for (int64_t i = 0; i < nr_len(x); i++) values[i] = (real)(i % 23 - 11) / 7;
	nr_plan_run(p, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	return nr_plan_data(p, y);
}

/* Several rows of tiles, panels that are not full, and a second plan that finds the copies made. */
static void weights_that_stay_are_turned_and_change_no_bit(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		struct fixture f = begin();
		nr_t *h = nr_linear_gelu(f.net, "a", f.x, 301), *y = nr_linear_no_bias(f.net, "c", nr_linear(f.net, "b", h, 70), 3);
		struct nr_plan *before = plan(&f, y, 0);
		assert_int_equal(turned_anywhere(before), 0);
		nr_store_fix(f.store);
		struct nr_plan *train = plan(&f, y, NR_PLAN_TRAIN);
		assert_int_equal(turned_anywhere(train), 0);
		const real *want = run_on_steps(before, f.x, y);
		for (int k = 0; k < 2; k++) {
			struct nr_plan *after = plan(&f, y, 0);
			for (int32_t i = 0; i < after->n_instr; i++) assert_int_equal(after->instr[i].call.turned, 1 << 1);
			assert_memory_equal(run_on_steps(after, f.x, y), want, (size_t)nr_len(y) * sizeof(real));
			nr_plan_free(after);
		}
		nr_plan_free(train);
		end(&f, before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_needs_does_not_run), cmocka_unit_test(a_tap_keeps_what_the_loss_does_not_need),
		cmocka_unit_test(residual_and_norm_become_one), cmocka_unit_test(the_environment_turns_fusing_off),
		cmocka_unit_test(split_and_join_copy_nothing), cmocka_unit_test(skips_share_one_gradient),
		cmocka_unit_test(dead_buffers_are_used_again), cmocka_unit_test(living_buffers_never_overlap),
		cmocka_unit_test(every_buffer_lies_as_low_as_it_can),
		cmocka_unit_test(flops_of_a_linear_layer_are_counted), cmocka_unit_test(the_print_names_the_peak),
		cmocka_unit_test(training_without_parameters_is_refused), cmocka_unit_test(a_frozen_parameter_gets_no_gradient),
		cmocka_unit_test(a_guest_shares_the_memory_of_its_host),
		cmocka_unit_test(weights_that_stay_are_turned_and_change_no_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
