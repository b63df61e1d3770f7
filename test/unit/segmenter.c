/* src/infer/{segmenter,segment_score,weights}.c, src/picture/overlay.c: classes of pixels of pictures of any size, against a plain way. */
#include "unit/datasets.h"
#include "unit/values.h"

#include <math.h>
#include <omp.h>

#include "base/mem.h"
#include "infer/segmenter.h"
#include "math/resample.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norma/safetensors.h"
#include "picture/overlay.h"

enum { SIDE = 8, PATCH = 4, CLASSES = 3 };

/* A small model with a decoder in a file, read again. */
static struct nr_weights *opened(void)
{
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_store *store;
	struct nr_model_spec model;
	struct nr_weights *w;
	char line[1200];
	const struct nr_segmentation o = { .decoder = NR_SEGMENT_BN, .classes = CLASSES };
	const struct nr_st_meta meta[] = { { "norma", "1" }, { "norma.model", "vit:image=8,patch=4,dim=8,depth=1,heads=2,classes=3" },
		{ "norma.norms", "ln" }, { "norma.segment", "decoder=bn,level=0" }, { "norma.segment.norms",
			"ln segment.bn=batch:eps=1e-3" },
		{ "norma.segment.view", "view=slide,side=0,stride=3" }, { "norma.colours", "1 2 3 40 50 60 7 8 9" },
		{ "norma.normalize", "1" }, { "norma.mean", "0.4 0.5 0.6" }, { "norma.std", "0.2 0.2 0.25" } };
	const char *path = made_path("weights.safetensors");
	assert_int_equal(nr_model_parse(&model, meta[1].value, arena, &err), 0);
	assert_int_equal(nr_segment_settle(&model, &o, arena, &err), 0);
	assert_int_equal(nr_store_make(&store, 3, &err), 0);
	struct nr_net *n = nr_net_make(store);
	assert_int_equal(nr_norms_use(n, meta[4].value, &model.norms, &err), 0);
	const struct nr_inputs in = nr_model_inputs(n, &model, 1);
	assert_non_null(nr_segment_logits(n, &model, &o, &in));
	assert_int_equal(nr_norms_done(n, &err), 0);
	assert_int_equal(nr_store_seal(store, &err), 0);
	value_seed = 1;
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i);
		for (int64_t k = 0; k < e->count && !e->buffer; k++) nr_value(e)[k] += value();
	}
	assert_int_equal(nr_model_export(store, model.of, path, "norma", meta, sizeof meta / sizeof *meta, &err), 0);
	nr_net_free(n);
	nr_store_free(store);
	nr_arena_free(arena);
	if (nr_weights_open(&w, path, NULL, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return w;
}

static void a_checkpoint_has_its_decoder(void **state)
{
	(void)state;
	struct nr_weights *w = opened();
	assert_non_null(w->segment);
	assert_int_equal(w->segment->decoder, NR_SEGMENT_BN);
	assert_int_equal(w->segment->classes, CLASSES);
	assert_int_equal(w->segment_view->view, NR_SEGMENT_SLIDE);
	assert_int_equal(w->segment_view->stride, 3);
	assert_string_equal(w->whole_norms, "ln segment.bn=batch:eps=1e-3");
	assert_string_equal(w->norms, "ln");
	assert_int_equal(w->colour[1][2], 60);
	assert_non_null(nr_store_find(w->store, "segment.bn.running_mean"));
	assert_false(nr_weights_has_head(w));
	nr_weights_close(w);
}

/* ---- a plain way --------------------------------------------------------------------------------------------------------------- */

/* Logits (side,side,K) of the square at (y,x), enlarged. */
static void square(const struct nr_weights *w, const struct nr_picture *p, int64_t y, int64_t x, real *out)
{
	struct nr_plan *plan;
	struct nr_net *n = nr_net_make(w->store);
	struct nr_inputs in = { .image = nr_input(n, "image", NR_REAL, NR_SHAPE(1, 3, SIDE, SIDE)) };
	assert_int_equal(nr_norms_use(n, w->whole_norms, &w->model.norms, NULL), 0);
	nr_t *logits = nr_tap(n, "logits", nr_segment_logits(n, &w->model, w->segment, &in));
	assert_int_equal(nr_plan_make(&plan, n, logits, 0, NULL), 0);
	real *image = nr_plan_data(plan, in.image);
	for (int c = 0; c < 3; c++)
		for (int64_t i = 0; i < SIDE; i++)
			for (int64_t j = 0; j < SIDE; j++) {
				const bool there = y + i < p->h && x + j < p->w;
				const real v = there ? (real)p->pixels[((y + i) * p->w + x + j) * 3 + c] / 255 : 0;
				image[(c * SIDE + i) * SIDE + j] = there ? (v - (real)w->mean[c]) * (real)(1 / w->std[c]) : 0;
			}
	nr_plan_run(plan, &(struct nr_exec){ .no_dropout = 1 }, NR_RUN_FORWARD);
	const struct nr_axis axis = nr_axis_init(NR_RESAMPLE_BILINEAR, SIDE / PATCH, SIDE, malloc(nr_axis_bytes(SIDE / PATCH, SIDE)));
	real *tmp = blank(SIDE * SIDE / PATCH * CLASSES);
	nr_resample_forward(&axis, &axis, CLASSES, nr_plan_data(plan, logits), out, tmp);
	free(tmp);
	free(axis.weight);
	nr_plan_free(plan);
	nr_net_free(n);
}

/* Means of squares at every 3 pixels, and at the ends. */
static void slide(const struct nr_weights *w, const struct nr_picture *p, real *sum)
{
	real one[SIDE * SIDE * CLASSES];
	int *count = calloc((size_t)p->h * (size_t)p->w, sizeof *count);
	memset(sum, 0, (size_t)(p->h * p->w * CLASSES) * sizeof *sum);
	for (int64_t y = 0, last_y = 0; !last_y; y += 3)
		for (int64_t x = 0, last_x = 0; !last_x; x += 3) {
			const int64_t ey = p->h > SIDE ? p->h - SIDE : 0, ex = p->w > SIDE ? p->w - SIDE : 0;
			const int64_t ay = y < ey ? y : ey, ax = x < ex ? x : ex;
			last_y = y >= ey, last_x = x >= ex;
			square(w, p, ay, ax, one);
			for (int64_t i = 0; i < SIDE && ay + i < p->h; i++)
				for (int64_t j = 0; j < SIDE && ax + j < p->w; j++) {
					const int64_t at = (ay + i) * p->w + ax + j;
					for (int k = 0; k < CLASSES; k++) sum[at * CLASSES + k] += one[(i * SIDE + j) * CLASSES + k];
					count[at]++;
				}
		}
	for (int64_t i = 0; i < (int64_t)p->h * p->w * CLASSES; i++) sum[i] /= (real)count[i / CLASSES];
	free(count);
}

static struct nr_picture noise(int32_t h, int32_t w, uint32_t below)
{
	struct nr_picture p = { 0 };
	assert_int_equal(nr_picture_resize(&p, h, w, below ? 1 : 3, NULL), 0);
	for (int64_t i = 0; i < (int64_t)h * w * p.channels; i++)
		p.pixels[i] = (uint8_t)((value() + (real).5) * (real)(below ? below : 256));
	return p;
}

struct result { struct nr_picture map; double loss; int64_t pixels; };

static struct result run(const struct nr_weights *w, struct nr_segment_view view, const struct nr_picture *p,
	const struct nr_picture *truth)
{
	struct nr_segmenter *s;
	struct result r = { .loss = 0 };
	struct nr_error err = { 0 };
	char line[1200];
	assert_int_equal(nr_segmenter_open(&s, w, w->segment, w->whole_norms, &view, &w->view, NULL, &err), 0);
	if (nr_segmenter_run(s, p, truth, &r.map, &r.loss, &r.pixels, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	nr_segmenter_close(s);
	return r;
}

static void check_against(const struct result *r, const struct nr_picture *truth, const real *logits)
{
	double loss = 0;
	int64_t pixels = 0;
	for (int64_t i = 0; i < (int64_t)r->map.h * r->map.w; i++) {
		const real *x = logits + i * CLASSES;
		double sum = 0;
		for (int k = 0; k < CLASSES; k++) {
			sum += exp((double)x[k]);
			assert_true(x[k] <= x[r->map.pixels[i]] + (real)1e-4);
		}
		if (truth->pixels[i] == NR_NO_CLASS) continue;
		loss += log(sum) - (double)x[truth->pixels[i]];
		pixels++;
	}
	assert_int_equal(r->pixels, pixels);
	assert_true(fabs(r->loss - loss) < 1e-4 * loss);
}

static const struct nr_segment_view sliding = { .view = NR_SEGMENT_SLIDE, .stride = 3 };

static void squares_that_slide_are_averaged(void **state)
{
	(void)state;
	static const int32_t sizes[][2] = { { 8, 8 }, { 13, 21 }, { 11, 5 }, { 3, 4 } };
	struct nr_weights *w = opened();
	for (int i = 0; i < 4; i++) {
		struct nr_picture p = noise(sizes[i][0], sizes[i][1], 0), truth = noise(sizes[i][0], sizes[i][1], CLASSES);
		real *logits = blank((int64_t)p.h * p.w * CLASSES);
		truth.pixels[3] = NR_NO_CLASS;
		struct result r = run(w, sliding, &p, &truth);
		slide(w, &p, logits);
		check_against(&r, &truth, logits);
		free(logits);
		nr_picture_release(&r.map);
		nr_picture_release(&p);
		nr_picture_release(&truth);
	}
	nr_weights_close(w);
}

static void a_picture_of_the_models_size_is_the_same_in_every_view(void **state)
{
	(void)state;
	struct nr_weights *w = opened();
	struct nr_picture p = noise(SIDE, SIDE, 0), truth = noise(SIDE, SIDE, CLASSES);
	real logits[SIDE * SIDE * CLASSES];
	square(w, &p, 0, 0, logits);
	for (int v = NR_SEGMENT_WHOLE; v <= NR_SEGMENT_SQUARE; v++) {
		struct result r = run(w, (struct nr_segment_view){ .view = v }, &p, &truth);
		check_against(&r, &truth, logits);
		nr_picture_release(&r.map);
	}
	nr_picture_release(&p);
	nr_picture_release(&truth);
	nr_weights_close(w);
}

static void maps_have_the_pictures_size_and_threads_change_no_bit(void **state)
{
	(void)state;
	static const int32_t sizes[][2] = { { 20, 12 }, { 7, 30 }, { 1, 1 }, { 64, 48 } };
	struct nr_weights *w = opened();
	for (int i = 0; i < 4; i++)
		for (int v = NR_SEGMENT_WHOLE; v <= NR_SEGMENT_SQUARE; v++) {
			struct nr_picture p = noise(sizes[i][0], sizes[i][1], 0), truth = noise(sizes[i][0], sizes[i][1], CLASSES);
			const struct nr_segment_view view = { .view = v, .side = i == 1 ? 10 : 0 };
			omp_set_num_threads(1);
			struct result one = run(w, view, &p, &truth);
			assert_int_equal(one.map.h, p.h);
			assert_int_equal(one.map.w, p.w);
			for (int t = 2; t <= 3; t++) {
				omp_set_num_threads(t);
				struct result more = run(w, view, &p, &truth);
				assert_memory_equal(&more.loss, &one.loss, sizeof one.loss);
				assert_memory_equal(more.map.pixels, one.map.pixels, (size_t)p.h * (size_t)p.w);
				nr_picture_release(&more.map);
			}
			nr_picture_release(&one.map);
			nr_picture_release(&p);
			nr_picture_release(&truth);
		}
	nr_weights_close(w);
}

/* ---- scores --------------------------------------------------------------------------------------------------------------------- */

static int get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	(void)s, (void)split;
	value_seed = (uint32_t)i + 1;
	struct nr_picture own = noise(9 + (int32_t)i, 8, 0);
	const int code = nr_picture_resize(p, own.h, own.w, 3, err);
	if (!code) memcpy(p->pixels, own.pixels, (size_t)own.h * (size_t)own.w * 3);
	nr_picture_release(&own);
	return code;
}
static int map(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	(void)s, (void)split;
	const int code = nr_picture_resize(p, 9 + (int32_t)i, 8, 1, err);
	for (int64_t k = 0; !code && k < (int64_t)p->h * p->w; k++) p->pixels[k] = k % 5 == 4 ? NR_NO_CLASS : (uint8_t)(k % CLASSES);
	return code;
}
static const struct nr_dataset made = { .name = "made", .get = get, .label = NULL, .map = map };
static int32_t no_label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	(void)s, (void)split, (void)i;
	return -1;
}

struct looks { int64_t count; int32_t h[8]; };
static int see(void *out, int64_t i, const struct nr_picture *p, const struct nr_picture *truth, const struct nr_picture *m,
	struct nr_error *err)
{
	struct looks *l = out;
	(void)truth, (void)m, (void)err;
	assert_int_equal(i, l->count);
	l->h[l->count++] = p->h;
	return 0;
}

static void scores_are_those_of_all_pixels_together(void **state)
{
	(void)state;
	struct nr_dataset set = made;
	set.label = no_label;
	struct nr_source source = { .of = &set, .classes = CLASSES, .channels = 3, .count = { [NR_VAL] = 6 } };
	struct nr_weights *w = opened();
	struct nr_segmenter *s;
	struct nr_segment_score score;
	struct looks looks = { 0 };
	int64_t confusion[CLASSES * CLASSES], want[CLASSES * CLASSES] = { 0 }, right = 0, all = 0;
	double loss = 0;
	const struct nr_evaluation e = { .source = &source, .split = NR_VAL, .confusion = confusion };
	assert_int_equal(nr_segmenter_open(&s, w, w->segment, w->whole_norms, &sliding, &w->view, NULL, NULL), 0);
	assert_int_equal(nr_segmenter_score(s, &e, &(struct nr_segment_each){ 2, see, &looks }, &score, NULL), 0);
	for (int64_t i = 0; i < 6; i++) {
		struct nr_picture p = { 0 }, truth = { 0 };
		get(NULL, NR_VAL, i, &p, NULL), map(NULL, NR_VAL, i, &truth, NULL);
		struct result r = run(w, sliding, &p, &truth);
		loss += r.loss;
		for (int64_t k = 0; k < (int64_t)p.h * p.w; k++)
			if (truth.pixels[k] != NR_NO_CLASS) want[truth.pixels[k] * CLASSES + r.map.pixels[k]]++;
		nr_picture_release(&r.map);
		nr_picture_release(&p);
		nr_picture_release(&truth);
	}
	assert_memory_equal(confusion, want, sizeof want);
	double miou = 0;
	for (int k = 0; k < CLASSES; k++) {
		int64_t either = -want[k * CLASSES + k];
		for (int q = 0; q < CLASSES; q++) either += want[k * CLASSES + q] + want[q * CLASSES + k], all += want[k * CLASSES + q];
		right += want[k * CLASSES + k];
		miou += (double)want[k * CLASSES + k] / (double)either / CLASSES;
	}
	assert_true(fabs(score.miou - miou) < 1e-12);
	assert_true(fabs(score.pixel_acc - (double)right / (double)all) < 1e-12);
	assert_true(fabs(score.loss - loss / (double)all) < 1e-12);
	assert_int_equal(score.samples, 6);
	assert_int_equal(looks.count, 2);               /* spread over all */
	assert_int_equal(looks.h[0], 10);
	assert_int_equal(looks.h[1], 13);
	nr_segmenter_close(s);
	nr_weights_close(w);
}

/* ---- colours --------------------------------------------------------------------------------------------------------------------- */

static void an_overlay_leaves_pixels_without_a_class_alone(void **state)
{
	(void)state;
	uint8_t rgb[6] = { 10, 20, 30, 200, 100, 0 }, k[2] = { NR_NO_CLASS, 1 }, colour[2][3] = { { 0, 0, 0 }, { 255, 0, 100 } };
	const struct nr_picture p = { .h = 1, .w = 2, .channels = 3, .pixels = rgb }, m = { .h = 1, .w = 2, .channels = 1, .pixels = k };
	struct nr_picture out = { 0 };
	assert_int_equal(nr_overlay(&p, &m, (const uint8_t(*)[3])colour, 2, 1, &out, NULL), 0);
	assert_memory_equal(out.pixels, ((const uint8_t[]){ 10, 20, 30, 255, 0, 100 }), 6);
	assert_int_equal(nr_overlay(&p, &m, (const uint8_t(*)[3])colour, 2, 0, &out, NULL), 0);
	assert_true(out.pixels[3] == out.pixels[4] && out.pixels[4] == out.pixels[5]);
	nr_picture_release(&out);
}

static void classes_without_colours_get_different_ones(void **state)
{
	(void)state;
	uint8_t colour[255][3];
	nr_class_colours(NULL, 255, colour);
	for (int i = 0; i < 255; i++)
		for (int j = 0; j < i; j++) assert_memory_not_equal(colour[i], colour[j], 3);
	nr_class_colours((const uint8_t(*)[3])colour[3], 1, colour);
	assert_memory_equal(colour[0], colour[3], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checkpoint_has_its_decoder),
		cmocka_unit_test(squares_that_slide_are_averaged),
		cmocka_unit_test(a_picture_of_the_models_size_is_the_same_in_every_view),
		cmocka_unit_test(maps_have_the_pictures_size_and_threads_change_no_bit),
		cmocka_unit_test(scores_are_those_of_all_pixels_together),
		cmocka_unit_test(an_overlay_leaves_pixels_without_a_class_alone),
		cmocka_unit_test(classes_without_colours_get_different_ones),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
