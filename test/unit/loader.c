/* data/loader.c and mix.c: the same bytes for any number of threads, from any start; errors and ends in their places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/mix.h"
#include "unit/pictures.h"

#include "unit/sanitized.h"

/* Every allocation of the process, unless a sanitizer wants them for itself. */
static atomic_long allocations;
#ifndef SANITIZED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}
void *aligned_alloc(size_t alignment, size_t n)
{
	allocations++;
	return __libc_memalign(alignment, n);
}
#endif

enum { COUNT = 103, SIDE = 16, CLASSES = 7 };
static struct { int64_t bad; unsigned sleep; } set;

/* Pictures of different sizes, each told by its number. */
static int get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	if (set.sleep) usleep(set.sleep);
	if (i == set.bad) return nr_fail(err, NR_EFORMAT, "cannot decode", "broken.jpg", "it is broken");
	make_picture(p, SIDE + (int32_t)(i % 5), SIDE + (int32_t)(i % 3), 3, (int)(i % 4));
	for (int k = 0; k < 8; k++) p->pixels[100 + k] = (uint8_t)(i >> k);
	return NR_OK;
}

static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i) { return (int32_t)(i % CLASSES); }

static const struct nr_dataset dataset = { .name = "made", .get = get, .label = label };
static const struct nr_source source = {
	.of = &dataset, .count = { COUNT }, .classes = CLASSES, .channels = 3, .mean = { .4f, .5f, .6f }, .std = { .2f, .2f, .2f },
};

static struct nr_augment a;
static struct nr_loader_config c;
static struct nr_error err;

static int setup(void **state)
{
	(void)state;
	set.bad = -1, set.sleep = 0;
	err = (struct nr_error){ 0 };
	nr_option_defaults(nr_augment_options, &a);
	a.size = 12;
	a.crop = NR_CROP_RANDOM_RESIZED;
	a.flip = 0.5;
	c = (struct nr_loader_config){ .source = &source, .augment = &a, .batch = 10, .shuffle = true, .seed = 5, .threads = 1 };
	return 0;
}

static struct nr_loader *open_loader(void)
{
	struct nr_loader *l;
	if (nr_loader_open(&l, &c, &err)) fail_msg("%s: %s", err.what, err.detail);
	return l;
}

static struct nr_batch *next(struct nr_loader *l)
{
	struct nr_batch *b;
	if (nr_loader_next(l, &b, &err)) fail_msg("%s: %s", err.what, err.detail);
	return b;
}

static uint64_t batch_hash(const struct nr_batch *b)
{
	const size_t n = (size_t)b->samples;
	uint64_t h = fnv(b->image, n * 3 * 144 * sizeof(float)) ^ fnv(b->label, n * 4) * 3 ^ fnv(b->index, n * 4) * 5;
	if (b->target) h ^= fnv(b->target, n * CLASSES * sizeof(float)) * 7;
	return h ^ (uint64_t)b->number * 11 ^ (uint64_t)b->samples * 13 ^ (uint64_t)b->epoch * 17;
}

static void hashes(int n, uint64_t *to)
{
	struct nr_loader *l = open_loader();
	for (int i = 0; i < n; i++) {
		struct nr_batch *b = next(l);
		assert_int_equal(b->number, c.start + i);
		to[i] = batch_hash(b);
		nr_loader_give_back(l, b);
	}
	nr_loader_close(l);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
	(void)state;
	enum { N = 40 };
	uint64_t one[N], more[N];
	char text[] = "n=2,m=9";
	a.randaugment = text;
	a.erase = 0.3, a.hue = 0.1;
	for (int mixed = 0; mixed < 2; mixed++) {
		c.mixup = mixed * 0.8, c.cutmix = mixed, c.mix_prob = 0.9, c.mix_switch = 0.5, c.smoothing = 0.1;
		c.threads = 1;
		hashes(N, one);
		for (int i = 1; i < N; i++) assert_true(one[i] != one[i - 1]);
		for (c.threads = 2; c.threads <= 3; c.threads++) {
			hashes(N, more);
			assert_memory_equal(one, more, sizeof one);
		}
	}
}

static void views_follow_each_other_and_are_drawn_apart(void **state)
{
	(void)state;
	struct nr_augment view[3] = { a, a, a };
	enum { FIRST = 3 * 144, SECOND = 3 * 25 };
	float alone[FIRST];
	struct nr_augment_scratch *scratch;
	struct nr_picture p = { 0 };
	const struct nr_pixel_stats stats = nr_source_pixel_stats(&source);
	view[1].flip = 0, view[2].size = 5;
	c.view = view, c.views = 3;
	assert_int_equal(nr_augment_scratch_make(&scratch, &err), 0);
	for (c.threads = 1; c.threads <= 3; c.threads++) {
		struct nr_loader *l = open_loader();
		const struct nr_batch *b = next(l);
		for (int64_t i = 0; i < b->samples; i++)
			for (int v = 0; v < 3; v++) {
				const size_t n = v < 2 ? FIRST : SECOND;
				const float *got = b->image + v * c.batch * FIRST + i * (int64_t)n;
				assert_int_equal(nr_source_get(&source, c.split, b->index[i], &p, NULL, &err), 0);
				const int64_t number = b->index[i] * 3 + v;
				assert_int_equal(nr_augment_run(&view[v], &stats, &p, c.seed, 0, number, alone, scratch, &err), 0);
				assert_memory_equal(got, alone, n * sizeof(float));
			}
		nr_loader_close(l);
	}
	nr_picture_release(&p);
	nr_augment_scratch_free(scratch);
	c.mixup = 0.5, c.threads = 1;
	struct nr_loader *l;
	assert_int_equal(nr_loader_open(&l, &c, &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "one view"));
}

static void a_resumed_loader_goes_on_where_it_was(void **state)
{
	(void)state;
	enum { N = 30 };
	uint64_t all[N], rest[N];
	c.mixup = 0.2, c.mix_prob = 1, c.threads = 2;
	hashes(N, all);
	for (c.start = 1; c.start < N; c.start += 3) {
		hashes((int)(N - c.start), rest);
		assert_memory_equal(all + c.start, rest, (size_t)(N - c.start) * sizeof *all);
	}
}

static void an_epoch_is_a_permutation_and_each_is_another(void **state)
{
	(void)state;
	int32_t order[3][COUNT];
	struct nr_loader *l = open_loader();
	assert_int_equal(nr_loader_batches(l), 11);
	for (int e = 0; e < 3; e++) {
		int seen[COUNT] = { 0 };
		for (int i = 0, at = 0; i < 11; i++) {
			struct nr_batch *b = next(l);
			assert_int_equal(b->epoch, e);
			assert_int_equal(b->samples, i < 10 ? 10 : 3);
			for (int k = 0; k < b->samples; k++) {
				assert_int_equal(b->label[k], b->index[k] % CLASSES);
				seen[b->index[k]]++;
				order[e][at++] = b->index[k];
			}
			nr_loader_give_back(l, b);
		}
		for (int i = 0; i < COUNT; i++) assert_int_equal(seen[i], 1);
	}
	nr_loader_close(l);
	assert_memory_not_equal(order[0], order[1], sizeof order[0]);
	assert_memory_not_equal(order[1], order[2], sizeof order[0]);
}

static void without_shuffling_samples_come_in_order_until_the_stop(void **state)
{
	(void)state;
	c.shuffle = false;
	c.drop_last = true;
	c.stop = 10;
	c.threads = 2;
	struct nr_loader *l = open_loader();
	assert_int_equal(nr_loader_batches(l), 10);
	for (int i = 0; i < 10; i++) {
		struct nr_batch *b = next(l);
		for (int k = 0; k < 10; k++) assert_int_equal(b->index[k], 10 * i + k);
		nr_loader_give_back(l, b);
	}
	for (int i = 0; i < 3; i++) assert_null(next(l));
	nr_loader_close(l);
}

static void samples_may_be_listed(void **state)
{
	(void)state;
	static const int32_t list[] = { 100, 3, 3, 50, 7 };
	c.index = list, c.count = 5, c.batch = 2, c.shuffle = false;
	struct nr_loader *l = open_loader();
	assert_int_equal(nr_loader_batches(l), 3);
	for (int i = 0; i < 5; i += 2) {
		struct nr_batch *b = next(l);
		for (int k = 0; k < b->samples; k++) assert_int_equal(b->index[k], list[i + k]);
		nr_loader_give_back(l, b);
	}
	nr_loader_close(l);
	static const int32_t wrong[] = { 1, COUNT };
	c.index = wrong, c.count = 2;
	assert_int_equal(nr_loader_open(&l, &c, &err), NR_EVALUE);
	assert_null(l);
}

static void repeats_follow_each_other_and_differ(void **state)
{
	(void)state;
	a.repeats = 3;
	c.batch = 9;
	c.drop_last = true;
	struct nr_loader *l = open_loader();
	assert_int_equal(nr_loader_batches(l), 11);     /* the epoch keeps its length */
	struct nr_batch *b = next(l);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(b->index[i], b->index[i / 3 * 3]);
		if (i % 3) assert_memory_not_equal(b->image + i * 432, b->image + (i - 1) * 432, 432 * sizeof(float));
	}
	assert_int_not_equal(b->index[0], b->index[3]);
	nr_loader_give_back(l, b);
	nr_loader_close(l);
}

static void an_unreadable_sample_is_an_error_in_its_place(void **state)
{
	(void)state;
	c.shuffle = false;
	set.bad = 37;
	for (c.threads = 1; c.threads <= 3; c.threads++) {
		struct nr_loader *l = open_loader();
		struct nr_batch *b;
		for (int i = 0; i < 3; i++) nr_loader_give_back(l, next(l));
		for (int i = 0; i < 2; i++) {
			err = (struct nr_error){ 0 };
			assert_int_equal(nr_loader_next(l, &b, &err), NR_EFORMAT);
			assert_null(b);
			assert_string_equal(err.subject, "broken.jpg");
			assert_non_null(strstr(err.detail, "sample 37"));
		}
		nr_loader_close(l);
		err = (struct nr_error){ 0 };
	}
}

static void it_can_be_closed_at_any_moment(void **state)
{
	(void)state;
	set.sleep = 300;
	for (int i = 0; i < 24; i++) {
		c.threads = 1 + i % 3;
		struct nr_loader *l = open_loader();
		for (int k = 0; k < i % 4; k++) {
			struct nr_batch *b = next(l);
			if (k % 2) nr_loader_give_back(l, b);
		}
		if (i % 2) usleep((unsigned)i * 200);
		nr_loader_close(l);
	}
	nr_loader_close(NULL);
}

static void three_batches_may_be_held_and_no_more(void **state)
{
	(void)state;
	struct nr_loader *l = open_loader();
	struct nr_batch *b[3], *none;
	for (int i = 0; i < 3; i++) b[i] = next(l);
	assert_int_equal(nr_loader_next(l, &none, &err), NR_EUSAGE);
	nr_loader_give_back(l, b[1]);
	struct nr_batch *fourth = next(l);
	assert_int_equal(fourth->number, 3);
	assert_int_equal(b[0]->number, 0);
	assert_true(nr_loader_waited(l) >= 0);
	nr_loader_close(l);
}

static void nothing_is_allocated_once_it_runs(void **state)
{
	(void)state;
	char text[] = "n=2,m=9,prob=1";
	a.randaugment = text;
	a.crop = NR_CROP_CENTER;
	a.brightness = a.hue = 0.2, a.erase = 0.5;
	c.mixup = c.cutmix = 1, c.mix_prob = 1, c.mix_switch = 0.5, c.threads = 2;
	struct nr_loader *l = open_loader();
	long before = 0;
	for (int i = 0; i < 150; i++) {
		if (i == 60) before = allocations;
		nr_loader_give_back(l, next(l));
	}
	assert_int_equal(allocations - before, 0);
	nr_loader_close(l);
}

static void mixing_in_place_is_what_the_reference_does(void **state)
{
	(void)state;
	enum { B = 5, N = 3 * 12 * 12 };
	static real x[B * N], y[B * N], soft[B * CLASSES];
	static float image[B * N], target[B * CLASSES];
	static const int32_t labels[B] = { 1, 4, 4, 0, 6 };
	const struct nr_mixing mixes[] = { { NR_MIX_NONE, 1, { 0 } }, { NR_MIX_UP, 0.3, { 0 } }, { NR_MIX_CUT, 0.75, { 2, 8, 3, 9 } } };
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < B * N; i++) image[i] = (float)(x[i] = (real)((i * 37) % 101) / 10);
		if (k == 1)
			nr_mixup(B, N, x, NR_MIX_FLIP, (real)(float)mixes[k].lam, y);
		else if (k == 2)
			nr_cutmix(B, 3, 12, 12, 1, x, NR_MIX_FLIP, mixes[k].box, y);
		else
			memcpy(y, x, sizeof y);
		nr_mix_run(&mixes[k], B, 3, 12, 12, image);
		for (int i = 0; i < B * N; i++) assert_true(fabs((double)image[i] - (double)y[i]) < 2e-6);
		nr_mix_targets(B, CLASSES, labels, (real)0.1f, NR_MIX_FLIP, (real)(float)mixes[k].lam, soft);
		nr_mix_soften(&mixes[k], B, CLASSES, labels, 0.1, target);
		for (int i = 0; i < B * CLASSES; i++) assert_true(fabs((double)target[i] - (double)soft[i]) < 1e-6);
	}
}

static void mixing_happens_as_often_as_asked(void **state)
{
	(void)state;
	int count[3] = { 0 };
	c.mixup = 0.8, c.cutmix = 1, c.mix_prob = 0.7, c.mix_switch = 0.3;
	for (int64_t i = 0; i < 10000; i++) {
		const struct nr_mixing m = nr_mix_draw(&c, i, 20, 30);
		assert_true(m.lam >= 0 && m.lam <= 1);
		assert_true(m.box.y0 <= m.box.y1 && m.box.y1 <= 20 && m.box.x0 <= m.box.x1 && m.box.x1 <= 30);
		count[m.kind]++;
	}
	assert_true(abs(count[NR_MIX_NONE] - 3000) < 200);
	assert_true(abs(count[NR_MIX_CUT] - 2100) < 200);
	c.mix_prob = 1, c.mixup = 0;
	assert_int_equal(nr_mix_draw(&c, 1, 20, 30).kind, NR_MIX_CUT);
	c.cutmix = 0;
	assert_int_equal(nr_mix_draw(&c, 1, 20, 30).kind, NR_MIX_NONE);
}

/* What a task makes itself: the first byte of the picture everywhere, and what it was told. */
struct told { int64_t sample, epoch, number; int32_t h, w; };

static int make_told(const void *maker, const struct nr_picture *p, const struct nr_draw_of *m, float *image, void *extra,
	struct nr_error *failed)
{
	struct told *t = extra;
	(void)failed;
	assert_int_equal(t->sample | t->epoch | t->number, 0);
	for (int i = 0; i < 3 * 5 * 9; i++) image[i] = (float)p->pixels[100] + (float)*(const int *)maker;
	*t = (struct told){ m->sample, m->epoch, m->number, p->h, p->w };
	return NR_OK;
}

static void a_task_makes_its_own_samples(void **state)
{
	(void)state;
	const int shift = 3;
	c.make = make_told, c.maker = &shift, c.height = 5, c.width = 9, c.extra = sizeof(struct told);
	for (c.threads = 1; c.threads <= 3; c.threads++) {
		struct nr_loader *l = open_loader();
		for (int n = 0; n < 15; n++) {
			struct nr_batch *b = next(l);
			const struct told *t = b->extra;
			for (int64_t i = 0; i < b->samples; i++) {
				assert_int_equal(t[i].sample, b->index[i]);
				assert_int_equal(t[i].epoch, b->epoch);
				assert_int_equal(t[i].h, SIDE + b->index[i] % 5);
				for (int k = 0; k < 3 * 5 * 9; k++)
					assert_true(b->image[i * 3 * 5 * 9 + k] == (float)((b->index[i] & 255) + shift));
			}
			nr_loader_give_back(l, b);
		}
		nr_loader_close(l);
	}
}

static void wrong_settings_are_refused(void **state)
{
	(void)state;
	const struct nr_loader_config good = c;
	struct nr_loader *l;
#define REFUSED(change) \
	c = good, change; \
	err = (struct nr_error){ 0 }; \
	assert_int_not_equal(nr_loader_open(&l, &c, &err), NR_OK); \
	assert_null(l); \
	assert_true(err.detail[0])
	REFUSED(c.batch = 0);
	REFUSED(c.split = NR_TEST);
	REFUSED(c.count = COUNT + 1);
	REFUSED(c.threads = -1);
	REFUSED((c.batch = COUNT + 1, c.drop_last = true));
	REFUSED(c.mix_prob = 2);
	REFUSED(c.mixup = -1);
	REFUSED((c.make = make_told, c.height = 0, c.width = 4));
	REFUSED((c.make = make_told, c.height = c.width = 4, c.mixup = 1));
	a.size = 0;
	REFUSED(c.start = 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		T(any_number_of_threads_gives_the_same_bits),
		T(views_follow_each_other_and_are_drawn_apart),
		T(a_resumed_loader_goes_on_where_it_was),
		T(an_epoch_is_a_permutation_and_each_is_another),
		T(without_shuffling_samples_come_in_order_until_the_stop),
		T(samples_may_be_listed),
		T(repeats_follow_each_other_and_differ),
		T(an_unreadable_sample_is_an_error_in_its_place),
		T(it_can_be_closed_at_any_moment),
		T(three_batches_may_be_held_and_no_more),
		T(nothing_is_allocated_once_it_runs),
		T(mixing_in_place_is_what_the_reference_does),
		T(mixing_happens_as_often_as_asked),
		T(a_task_makes_its_own_samples),
		T(wrong_settings_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
