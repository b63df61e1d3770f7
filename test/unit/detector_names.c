/* src/models/detector_names.c: a detector's entries under the names of two libraries, on any number of levels. */
#include "models/detector.h"
#include "unit/built.h"

#include "norma/safetensors.h"

#define PVT "pvt:image=64,patch=4,dims=8-8-8-8,depths=1-1-1-1,heads=1-1-1-1,mlp=2-2-2-2,sr=2-1-1-1,classes=3"

/* RetinaNet on the levels of the backbone from this one on; 4 in all. */
static struct built detector_from(int64_t first, double start)
{
	struct built b = { .arena = nr_arena_make() };
	struct nr_error err = { 0 };
	struct nr_detector d;
	struct nr_detector_graph g;
	char line[1200];
	nr_option_defaults(nr_detector_options, &d);
	d.neck_dim = 8, d.head_convs = 1, d.first_level = first;
	assert_int_equal(nr_model_parse(&b.model, PVT, b.arena, &err), 0);
	assert_int_equal(nr_store_make(&b.store, 1, &err), 0);
	struct nr_net *n = nr_net_make(b.store);
	assert_int_equal(nr_norms_use(n, "", &b.model.norms, &err), 0);
	if (!nr_detector_loss(n, &b.model, &d, 1, 1, &g)) fail_msg("%s", nr_error_text(nr_net_error(n), line, sizeof line));
	nr_net_free(n);
	assert_int_equal(nr_store_seal(b.store, &err), 0);
	for (int64_t i = 0; i < nr_store_count(b.store); i++)
		for (int64_t k = 0; k < nr_store_at(b.store, i)->count; k++) nr_value(nr_store_at(b.store, i))[k] = (real)start++;
	return b;
}

static struct nr_st_file *written(const struct built *b, const char *naming)
{
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	char line[1200];
	if (nr_model_export(b->store, b->model.of, temp_file(), naming, NULL, 0, &err) || nr_st_open(&f, temp_file(), &err))
		fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return f;
}

static void has(const struct nr_st_file *f, const char *name)
{
	if (!nr_st_find(f, name)) fail_msg("there is no '%s'", name);
}

static void further_levels_are_p6_and_p7_in_torchvision_behind_any_number_of_levels(void **state)
{
	(void)state;
	for (int64_t first = 1; first <= 4; first++) {
		struct built b = detector_from(first, 0);
		struct nr_st_file *f = written(&b, "torchvision");
		char name[80];
		has(f, "backbone.fpn.extra_blocks.p6.weight"), has(f, "backbone.fpn.extra_blocks.p6.bias");
		has(f, "backbone.fpn.extra_blocks.p7.weight"), has(f, "backbone.fpn.extra_blocks.p7.bias");
		assert_null(nr_st_find(f, "backbone.fpn.extra_blocks.p8.weight"));
		for (int64_t i = 0; i <= 4; i++) {
			snprintf(name, sizeof name, "backbone.fpn.inner_blocks.%lld.0.weight", (long long)i);
			assert_int_equal(nr_st_find(f, name) != NULL, i + first <= 4);
			snprintf(name, sizeof name, "backbone.fpn.layer_blocks.%lld.0.weight", (long long)i);
			assert_int_equal(nr_st_find(f, name) != NULL, i + first <= 4);
		}
		for (int64_t i = 0; i < nr_st_count(f); i++)
			if (strncmp(nr_st_get(f, i)->name, "backbone.", 9) && strncmp(nr_st_get(f, i)->name, "head.", 5))
				fail_msg("'%s'", nr_st_get(f, i)->name);
		nr_st_close(f);
		discard(&b);
	}
}

static void convolutions_of_a_neck_are_counted_through_in_mmdetection(void **state)
{
	(void)state;
	struct built b = detector_from(3, 0);
	struct nr_st_file *f = written(&b, "mmdetection");
	has(f, "neck.lateral_convs.1.conv.weight"), has(f, "neck.fpn_convs.1.conv.weight");
	has(f, "neck.fpn_convs.2.conv.weight"), has(f, "neck.fpn_convs.3.conv.weight");
	nr_st_close(f);
	discard(&b);
}

static void every_naming_gives_back_the_same_values(void **state)
{
	(void)state;
	static const char *const namings[] = { "norma", "torchvision", "mmdetection" };
	for (int i = 0; i < 3; i++)
		for (int64_t first = 1; first <= 4; first++) {
			struct built a = detector_from(first, 0), b = detector_from(first, .5);
			struct nr_import how = { .naming = NULL };
			struct nr_error err = { 0 };
			char line[1200];
			nr_st_close(written(&a, namings[i]));
			if (nr_model_import(b.store, b.model.of, temp_file(), &how, &err))
				fail_msg("%s: %s", namings[i], nr_error_text(&err, line, sizeof line));
			assert_string_equal(how.used, namings[i]);
			for (int64_t e = 0; e < nr_store_count(a.store); e++)
				assert_memory_equal(nr_value(nr_store_at(a.store, e)), nr_value(nr_store_at(b.store, e)),
					(size_t)nr_store_at(a.store, e)->count * sizeof(real));
			discard(&a);
			discard(&b);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(further_levels_are_p6_and_p7_in_torchvision_behind_any_number_of_levels),
		cmocka_unit_test(convolutions_of_a_neck_are_counted_through_in_mmdetection),
		cmocka_unit_test(every_naming_gives_back_the_same_values),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(temp_file());
	return failed;
}
