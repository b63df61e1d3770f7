/* train/scaling.c: limits, monotony and the formulas themselves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/scaling.h"

static const int64_t channels[] = { 192, 192, 64 };
static const struct nr_scaling plain = { .forward = 0.1, .backward = 0.2, .update = 0.01, .latency = 20e-6, .bandwidth = 1.25e9,
	.memory = 10e9, .params = 5000000, .held = 1e6, .bucket = 4 << 20, .shards = 1 };

static struct nr_scaled at(const struct nr_scaling *s, int64_t ranks)
{
	struct nr_scaled r;
	nr_scaling_at(s, ranks, &r);
	return r;
}

static void near(double value, double want) { assert_true(fabs(value - want) <= 1e-12 * (1 + fabs(want))); }

static void one_rank_sends_nothing_and_waits_for_nobody(void **state)
{
	(void)state;
	for (int reduce = 0; reduce < 3; reduce++) {
		struct nr_scaling s = plain;
		s.reduce = (enum nr_reduce)reduce;
		s.jitter = 0.1;
		s.channels = channels;
		s.layers = 3;
		s.overlap = reduce == 1;
		const struct nr_scaled r = at(&s, 1);
		near(r.step, 0.31);
		near(r.efficiency, 1);
		near(r.memory, 16.0 * 5000000 + 1e6);
		assert_true(r.sent == 0 && r.messages == 0 && r.exposed == 0 && r.sync == 0 && r.wait == 0);
		near(nr_scaling_sum(&s, 1, 1e9), 0);
	}
}

static void sums_cost_what_the_formulas_say(void **state)
{
	(void)state;
	struct nr_scaling s = plain;
	s.memory = INFINITY;
	const double n = 20e6;
	near(nr_scaling_sum(&s, 8, n), 6 * 20e-6 + 2 * 7.0 / 8 * n / 1.25e9);
	near(at(&s, 8).sent, 2 * 7.0 / 8 * n);
	near(nr_scaling_sum(&s, 6, n), (4 + 2) * 20e-6 + (2 * 3.0 / 4 + 2) * n / 1.25e9);       /* 4 ranks, and two that hand over */
	s.reduce = NR_REDUCE_RING;
	near(nr_scaling_sum(&s, 8, n), 14 * 20e-6 + 2 * 7.0 / 8 * n / 1.25e9);
	s.reduce = NR_REDUCE_TREE;
	near(nr_scaling_sum(&s, 8, n), 6 * (20e-6 + n / 1.25e9));
	s.bandwidth = INFINITY;
	s.latency = 0;
	s.memory = 10e9;
	near(nr_scaling_sum(&s, 8, n), 3 * 3 * n / 10e9);          /* three levels, each of which reads two and writes one */
}

static void more_ranks_are_never_faster_by_themselves(void **state)
{
	(void)state;
	for (int reduce = 0; reduce < 3; reduce++)
		for (int overlap = 0; overlap < 2; overlap++) {
			struct nr_scaling s = plain;
			s.reduce = (enum nr_reduce)reduce;
			s.overlap = overlap;
			s.channels = channels;
			s.layers = 3;
			s.jitter = 0.02;
			struct nr_scaled before = at(&s, 1);
			for (int64_t ranks = 2; ranks <= 1024; ranks *= 2) {
				const struct nr_scaled r = at(&s, ranks);
				assert_true(r.step > before.step && r.efficiency < before.efficiency && r.sent > before.sent);
				assert_true(r.efficiency > 0 && r.efficiency < 1);
				before = r;
			}
		}
}

static void nothing_is_lost_on_a_perfect_network(void **state)
{
	(void)state;
	struct nr_scaling s = plain;
	s.latency = 0;
	s.bandwidth = s.memory = INFINITY;
	s.channels = channels;
	s.layers = 3;
	for (int overlap = 0; overlap < 2; overlap++) {
		s.overlap = overlap;
		near(at(&s, 1000).efficiency, 1);
	}
}

static void latency_decides_between_ring_and_halving(void **state)
{
	(void)state;
	struct nr_scaling ring = plain;
	ring.reduce = NR_REDUCE_RING;
	assert_true(fabs(at(&ring, 2).step - at(&plain, 2).step) < 1e-12);      /* the same at two ranks */
	near(at(&ring, 512).step - at(&plain, 512).step, (2 * 511 - 2 * 9) * plain.latency);
	near(at(&ring, 1024).sent, at(&plain, 1024).sent);
	assert_true(at(&plain, 1 << 20).sent < 8.0 * 5000000);
}

static void overlap_hides_what_backward_has_time_for(void **state)
{
	(void)state;
	struct nr_scaling s = plain;
	const struct nr_scaled bare = at(&s, 4);
	s.overlap = true;
	const struct nr_scaled r = at(&s, 4);
	assert_int_equal(r.buckets, 5);                 /* 20 MB in pieces of 4 MiB */
	assert_true(r.exposed < bare.exposed && r.exposed > 0);
	near(r.exposed, nr_scaling_sum(&s, 4, 20e6 - 4.0 * (4 << 20)));         /* all but the last one are gone by then */
	s.bucket = 1e9;                                 /* one bucket is no overlap */
	near(at(&s, 4).exposed, bare.exposed);
	s = plain;
	s.overlap = true;
	s.bandwidth = 1e7;                              /* the network alone decides: it starts when the first bucket is there */
	const struct nr_scaled slow = at(&s, 4);
	near(slow.exposed, slow.sum + s.backward / (double)slow.buckets - s.backward);
	s.bandwidth = plain.bandwidth;
	s.steal = 1;                                    /* a message that takes the CPU away hides nothing */
	assert_true(at(&s, 4).exposed >= bare.exposed);
}

static void half_as_many_bytes_travel_as_bf16(void **state)
{
	(void)state;
	struct nr_scaling s = plain;
	s.bf16 = true;
	near(at(&s, 16).sent * 2, at(&plain, 16).sent);
	assert_true(at(&s, 16).step < at(&plain, 16).step);
}

static void shared_statistics_wait_twice_for_each_layer(void **state)
{
	(void)state;
	struct nr_scaling s = plain;
	s.channels = channels;
	s.layers = 3;
	const struct nr_scaled r = at(&s, 8), bare = at(&plain, 8);
	near(r.sync, 3 * 2 * 3 * 20e-6 + 2 * 7 * 8.0 * (3 + 2 * (192 + 192 + 64)) / 1.25e9);
	near(r.step - bare.step, r.sync);
	assert_int_equal(r.messages - bare.messages, 3 * 2 * 3);
	s.shards = 4;
	assert_true(at(&s, 8).sync > r.sync);
	near(at(&s, 8).memory - r.memory, 2 * 4.0 * 5000000);   /* four shards: two sums wait */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_sends_nothing_and_waits_for_nobody),
		cmocka_unit_test(sums_cost_what_the_formulas_say),
		cmocka_unit_test(more_ranks_are_never_faster_by_themselves),
		cmocka_unit_test(nothing_is_lost_on_a_perfect_network),
		cmocka_unit_test(latency_decides_between_ring_and_halving),
		cmocka_unit_test(overlap_hides_what_backward_has_time_for),
		cmocka_unit_test(half_as_many_bytes_travel_as_bf16),
		cmocka_unit_test(shared_statistics_wait_twice_for_each_layer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
