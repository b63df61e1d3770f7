/* src/models/dino*.c, src/nn/dino.c: loss, targets, centre, average, schedules, crops of two sizes, names. */
#include <unistd.h>

#include "models/names.h"
#include "unit/rig.h"

#include "base/mem.h"
#include "models/dino.h"
#include "norma/safetensors.h"

#define TINY "vit:image=8,channels=2,patch=2,dim=12,depth=2,heads=2"
#define SMALL "local_crops=3,local_size=4,prototypes=10,head_hidden=6,head_bottleneck=4"

enum { B = 2, GLOBAL = 2 * B, LOCAL = 3 * B, K = 10 };

struct dino {
	struct rig r;
	struct nr_arena *arena;
	struct nr_model_spec model;
	struct nr_dino o;
	struct nr_dino_graph g;
};

static void fill(real *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) x[i] = value();
}

/* A student or a teacher that is planned, with inputs; false: it cannot be recorded. */
static bool record(struct dino *d, const char *model, const char *options, const char *norms, bool teacher)
{
	*d = (struct dino){ .r = rig(), .arena = nr_arena_make() };
	nr_option_defaults(nr_dino_options, &d->o);
	if (nr_option_parse(nr_dino_options, &d->o, options, d->arena, &d->r.err) ||
	    nr_model_parse(&d->model, model, d->arena, &d->r.err) || nr_norms_use(d->r.n, norms, &d->model.norms, &d->r.err))
		return false;
	nr_t *out = teacher ? nr_dino_teacher(d->r.n, &d->model, &d->o, B, &d->g) : nr_dino_student(d->r.n, &d->model, &d->o, B, &d->g);
	nr_tap(d->r.n, "out", d->g.out);
	if (nr_norms_done(d->r.n, &d->r.err)) return false;
	if (nr_plan_make(&d->r.plan, d->r.n, out, teacher ? 0 : NR_PLAN_TRAIN | NR_PLAN_POISON, &d->r.err)) return false;
	fill(nr_plan_data(d->r.plan, d->g.global), nr_len(d->g.global));
	if (d->g.local) fill(nr_plan_data(d->r.plan, d->g.local), nr_len(d->g.local));
	return true;
}

static struct dino built(const char *options, const char *norms)
{
	struct dino d;
	char text[1200];
	if (!record(&d, TINY, options, norms, false)) fail_msg("%s %s: %s", options, norms, nr_error_text(&d.r.err, text, sizeof text));
	real *target = nr_plan_data(d.r.plan, d.g.target);
	for (int64_t r = 0; r < GLOBAL; r++)
		for (int64_t k = 0; k < K; k++) target[r * K + k] = (real)((k + r) % K + 1) / 55;
	return d;
}

static void done(struct dino *d)
{
	nr_plan_free(d->r.plan);
	nr_net_free(d->r.n);
	nr_store_free(d->r.store);
	nr_arena_free(d->arena);
}

static void pass(struct dino *d)
{
	nr_plan_run(d->r.plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
}

static void the_loss_is_that_of_plain_loops(void **state)
{
	(void)state;
	struct dino d = built(SMALL, "layer");
	pass(&d);
	const real *s = nr_plan_data(d.r.plan, d.g.out), *p = nr_plan_data(d.r.plan, d.g.target);
	double sum = 0;
	for (int q = 0; q < 2; q++)
		for (int v = 0; v < 5; v++)
			for (int b = 0; v != q && b < B; b++) {
				double all = 0;
				for (int k = 0; k < K; k++) all += exp((double)s[(v * B + b) * K + k] / .1);
				for (int k = 0; k < K; k++)
					sum += (double)p[(q * B + b) * K + k] * (log(all) - (double)s[(v * B + b) * K + k] / .1) / (8. * B);
			}
	assert_float_equal(*(real *)nr_plan_data(d.r.plan, d.g.loss), sum, 1e-5);
	done(&d);
}

static void outputs_are_cosines_with_rows_of_the_last_layer(void **state)
{
	(void)state;
	struct dino d = built(SMALL, "layer");
	struct nr_entry *g = nr_store_find(d.r.store, "dino.last_layer.weight_g");
	assert_int_equal(g->frozen, 1);
	pass(&d);
	const real *s = nr_plan_data(d.r.plan, d.g.out);
	for (int64_t i = 0; i < nr_len(d.g.out); i++) assert_true(nr_fabs(s[i]) <= 1 + (real)1e-5);
	done(&d);
	d = built(SMALL ",norm_last_layer=0", "layer");
	g = nr_store_find(d.r.store, "dino.last_layer.weight_g");
	assert_int_equal(g->frozen, 0);
	nr_value(g)[3] = 7;
	pass(&d);
	s = nr_plan_data(d.r.plan, d.g.out);
	real most = 0;
	for (int64_t r = 0; r < GLOBAL + LOCAL; r++) most = nr_fabs(s[r * K + 3]) > most ? nr_fabs(s[r * K + 3]) : most;
	assert_true(most > 1);
	done(&d);
}

/* Batch statistics of one size never see the other: the outputs of whole crops do not depend on local ones, nor these on those. */
static void crops_of_two_sizes_do_not_meet_in_the_encoder(void **state)
{
	(void)state;
	struct dino d = built(SMALL, "bn");
	real before[(GLOBAL + LOCAL) * K];
	for (int changed = 0; changed < 2; changed++) {
		pass(&d);
		memcpy(before, nr_plan_data(d.r.plan, d.g.out), sizeof before);
		const nr_t *in = changed ? d.g.global : d.g.local;
		fill(nr_plan_data(d.r.plan, in), nr_len(in));
		fill(nr_plan_data(d.r.plan, changed ? d.g.local : d.g.global), 0);
		pass(&d);
		const real *after = nr_plan_data(d.r.plan, d.g.out);
		const size_t kept = (size_t)(changed ? LOCAL : GLOBAL) * K, other = (size_t)(changed ? GLOBAL : LOCAL) * K;
		assert_memory_equal(before + (changed ? GLOBAL * K : 0), after + (changed ? GLOBAL * K : 0), kept * sizeof(real));
		assert_memory_not_equal(before + (changed ? 0 : GLOBAL * K), after + (changed ? 0 : GLOBAL * K), other * sizeof(real));
	}
	done(&d);
}

static void batch_norms_of_the_head_see_all_crops(void **state)
{
	(void)state;
	struct dino d = built(SMALL ",head_bn=1", "layer");
	real before[GLOBAL * K];
	assert_non_null(nr_store_find(d.r.store, "dino.mlp.1.weight"));
	assert_non_null(nr_store_find(d.r.store, "dino.mlp.6.weight"));
	pass(&d);
	memcpy(before, nr_plan_data(d.r.plan, d.g.out), sizeof before);
	fill(nr_plan_data(d.r.plan, d.g.local), nr_len(d.g.local));
	pass(&d);
	assert_memory_not_equal(before, nr_plan_data(d.r.plan, d.g.out), sizeof before);
	done(&d);
}

/* The released code counts layers only where there are several. */
static void an_only_layer_of_the_head_has_no_number(void **state)
{
	(void)state;
	struct dino d = built(SMALL ",head_layers=1", "layer");
	struct nr_st_file *f;
	struct nr_dino seen;
	char path[] = "/tmp/norma-dino-XXXXXX";
	close(mkstemp(path));
	assert_null(nr_store_find(d.r.store, "dino.mlp.0.weight"));
	assert_int_equal(nr_model_export(d.r.store, d.model.of, path, "dino", NULL, 0, &d.r.err), 0);
	assert_int_equal(nr_st_open(&f, path, &d.r.err), 0);
	assert_non_null(nr_st_find(f, "head.mlp.weight"));
	assert_non_null(nr_st_find(f, "head.mlp.bias"));
	assert_true(nr_dino_guess(&seen, d.model.of, f, d.arena));
	assert_true(seen.head_layers == 1 && !seen.head_bn && seen.head_bottleneck == 4);
	nr_st_close(f);
	unlink(path);
	done(&d);
}

static void any_plan_builds_and_learns_on_both_grids(void **state)
{
	(void)state;
	static const char *const plans[] = { "layer", "rms", "dtn", "blocks[0:1].*=dtn", "sep(bn,ln)", "bn", "group:groups=2",
		"patch=dual layer" };
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		struct dino d = built(SMALL, plans[i]);
		double first = 0, loss = 0;
		for (int t = 0; t < 40; t++) {
			pass(&d);
			loss = (double)*(real *)nr_plan_data(d.r.plan, d.g.loss);
			if (!t) first = loss;
			for (int64_t e = 0; e < nr_store_count(d.r.store); e++) {
				const struct nr_entry *p = nr_store_at(d.r.store, e);
				const bool moves = !p->buffer && !p->frozen;
				for (int64_t k = 0; moves && k < p->count; k++) nr_value(p)[k] -= (real).05 * nr_grad(p)[k];
			}
		}
		if (!(loss < first)) fail_msg("%s: %g, then %g", plans[i], first, loss);
		done(&d);
	}
}

static void a_local_crop_is_half_the_picture_in_whole_patches(void **state)
{
	(void)state;
	struct nr_dino o;
	struct nr_model_spec m;
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	nr_option_defaults(nr_dino_options, &o);
	assert_int_equal(nr_model_parse(&m, "s/16", arena, &err), 0);
	assert_int_equal(nr_dino_local_size(&o, &m), 96);
	assert_int_equal(nr_model_parse(&m, "vit:image=32,patch=4", arena, &err), 0);
	assert_int_equal(nr_dino_local_size(&o, &m), 12);
	o.local_size = 20;
	assert_int_equal(nr_dino_local_size(&o, &m), 20);
	o.local_crops = 0;
	assert_int_equal(nr_dino_local_size(&o, &m), 0);
	nr_arena_free(arena);
}

static void targets_are_centred_and_sharpened(void **state)
{
	(void)state;
	enum { ROWS = 3, N = 5 };
	real out[ROWS * N], was[ROWS * N], centre[N], target[ROWS * N], next[N], room[64];
	assert_true(nr_dino_room(ROWS, N) <= 64);
	fill(out, ROWS * N);
	fill(centre, N);
	memcpy(was, out, sizeof out);
	nr_dino_centre(ROWS, N, out, .9, centre, next, room);
	for (int k = 0; k < N; k++)
		assert_float_equal(next[k], .9 * (double)centre[k] + .1 * (double)(was[k] + was[N + k] + was[2 * N + k]) / 3, 1e-6);
	nr_dino_targets(ROWS, N, out, centre, .05, target, room);
	const struct nr_dino_meter m = nr_dino_measure(ROWS, N, out, target, room);
	double entropy = 0, spread = 0, mean[N] = { 0 };
	for (int r = 0; r < ROWS; r++) {
		double sum = 0;
		for (int k = 0; k < N; k++) sum += exp((double)(was[r * N + k] - centre[k]) / .05);
		for (int k = 0; k < N; k++) {
			const double p = exp((double)(was[r * N + k] - centre[k]) / .05) / sum;
			assert_float_equal(target[r * N + k], p, 1e-5);
			entropy -= p > 0 ? p * log(p) / ROWS : 0;
			mean[k] += p / ROWS;
		}
	}
	for (int k = 0; k < N; k++) spread -= mean[k] * log(mean[k]);
	assert_float_equal(m.entropy, entropy, 1e-5);
	assert_float_equal(m.spread, spread, 1e-5);
}

static void a_collapsed_teacher_is_told(void **state)
{
	(void)state;
	enum { ROWS = 4, N = 8 };
	real out[ROWS * N] = { 0 }, centre[N] = { 0 }, target[ROWS * N], room[128];
	nr_dino_targets(ROWS, N, out, centre, .04, target, room);
	struct nr_dino_meter m = nr_dino_measure(ROWS, N, out, target, room);
	assert_float_equal(m.entropy, log(N), 1e-5);            /* the same for all: uniform */
	for (int r = 0; r < ROWS; r++) out[r * N + 3] = 1;
	nr_dino_targets(ROWS, N, out, centre, .04, target, room);
	m = nr_dino_measure(ROWS, N, out, target, room);
	assert_float_equal(m.spread, 0, 1e-5);                  /* one output wins */
}

static void the_teacher_follows_in_parameters_not_in_buffers(void **state)
{
	(void)state;
	struct dino s = built(SMALL, "bn"), t;
	assert_true(record(&t, TINY, SMALL, "bn", true));
	assert_int_equal(nr_store_count(s.r.store), nr_store_count(t.r.store));
	pass(&s);
	nr_plan_run(t.r.plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_COMMIT);
	const struct nr_entry *mean[2] = { nr_store_find(s.r.store, "final.running_mean"), nr_store_find(t.r.store, "final.running_mean") };
	const struct nr_entry *w[2] = { nr_store_find(s.r.store, "dino.mlp.0.weight"), nr_store_find(t.r.store, "dino.mlp.0.weight") };
	assert_non_null(mean[0]);
	const real kept = nr_value(mean[1])[0];
	assert_true(kept != nr_value(mean[0])[0]);              /* of its own batches */
	nr_value(w[0])[0] = 3, nr_value(w[1])[0] = 1;
	nr_dino_follow(t.r.store, s.r.store, .75);
	assert_float_equal(nr_value(w[1])[0], 1.5, 1e-6);
	assert_true(nr_value(mean[1])[0] == kept);
	done(&s);
	done(&t);
}

static void all_but_vectors_and_biases_decay(void **state)
{
	(void)state;
	struct dino d = built(SMALL, "layer");
	static const struct { const char *name; bool decays; } entry[] = { { "cls_token", true }, { "pos_embed", true },
		{ "blocks.0.attn.qkv.weight", true }, { "blocks.0.attn.qkv.bias", false }, { "blocks.0.attn.in.weight", false },
		{ "patch_embed.proj.weight", true }, { "dino.mlp.0.bias", false }, { "dino.last_layer.weight_v", true } };
	nr_dino_decay(d.r.store);
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
		const struct nr_entry *e = nr_store_find(d.r.store, entry[i].name);
		assert_non_null(e);
		if (entry[i].decays != !(e->init & NR_NO_DECAY)) fail_msg("%s", e->name);
	}
	assert_true(nr_dino_last_layer("dino.last_layer.weight_v") && !nr_dino_last_layer("dino.mlp.4.weight"));
	done(&d);
}

static void schedules_are_those_of_the_released_code(void **state)
{
	(void)state;
	struct nr_dino o;
	nr_option_defaults(nr_dino_options, &o);
	assert_float_equal(nr_dino_momentum(&o, 0, 100), .996, 1e-12);
	assert_float_equal(nr_dino_momentum(&o, 50, 100), .998, 1e-12);
	assert_true(nr_dino_momentum(&o, 99, 100) < 1 && nr_dino_momentum(&o, 99, 100) > .99999);
	assert_float_equal(nr_dino_weight_decay(&o, .04, 0, 100), .04, 1e-12);
	assert_float_equal(nr_dino_weight_decay(&o, .04, 50, 100), .22, 1e-12);
	o.warmup_teacher_temp = .04, o.teacher_temp = .07, o.warmup_teacher_temp_epochs = 4;
	static const double want[] = { .04, .05, .06, .07, .07, .07 };       /* linspace(.04, .07, 4), one for each epoch, then the last */
	for (int epoch = 0; epoch < 6; epoch++) {
		assert_float_equal(nr_dino_temperature(&o, 10 * epoch, 10), want[epoch], 1e-12);
		assert_float_equal(nr_dino_temperature(&o, 10 * epoch + 9, 10), want[epoch], 1e-12);
	}
	o.warmup_teacher_temp_epochs = 1;
	assert_float_equal(nr_dino_temperature(&o, 9, 10), .04, 1e-12);
	assert_float_equal(nr_dino_temperature(&o, 10, 10), .07, 1e-12);
	o.warmup_teacher_temp_epochs = 0;
	assert_float_equal(nr_dino_temperature(&o, 0, 10), .07, 1e-12);
}

static void names_are_those_of_the_released_code(void **state)
{
	(void)state;
	struct dino d = built(SMALL, "layer"), e = built(SMALL, "layer");
	static const char *const namings[] = { "dino", "dino_teacher", "dino_student", "dino_module" };
	static const char *const first[] = { "", "teacher.", "student.module.", "module." };
	char path[] = "/tmp/norma-dino-XXXXXX", name[128];
	close(mkstemp(path));
	for (int i = 0; i < 4; i++) {
		static const char *const theirs[] = { "backbone.blocks.1.norm1.weight", "backbone.norm.bias", "backbone.cls_token",
			"backbone.pos_embed", "backbone.patch_embed.proj.weight", "head.mlp.0.weight", "head.mlp.4.bias",
			"head.last_layer.weight_g", "head.last_layer.weight_v" };
		struct nr_st_file *f;
		struct nr_dino seen;
		struct nr_import how = { .naming = "auto" };
		assert_int_equal(nr_model_export(d.r.store, d.model.of, path, namings[i], NULL, 0, &d.r.err), 0);
		assert_int_equal(nr_st_open(&f, path, &d.r.err), 0);
		for (size_t k = 0; k < sizeof theirs / sizeof *theirs; k++) {
			snprintf(name, sizeof name, "%s%s", first[i], theirs[k]);
			if (!nr_st_find(f, name)) fail_msg("no %s", name);
		}
		assert_int_equal(nr_st_count(f), nr_store_count(d.r.store));
		assert_true(nr_dino_guess(&seen, d.model.of, f, d.arena));
		assert_true(seen.prototypes == K && seen.head_hidden == 6 && seen.head_bottleneck == 4);
		assert_true(seen.head_layers == 3 && !seen.head_bn);
		nr_st_close(f);
		struct nr_entry *w = nr_store_find(e.r.store, "dino.mlp.2.weight");
		fill(nr_value(w), w->count);
		assert_int_equal(nr_model_import(e.r.store, e.model.of, path, &how, &e.r.err), 0);
		assert_string_equal(how.used, namings[i]);
		assert_memory_equal(nr_value(w), nr_value(nr_store_find(d.r.store, "dino.mlp.2.weight")), (size_t)w->count * sizeof(real));
	}
	unlink(path);
	done(&d);
	done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loss_is_that_of_plain_loops),
		cmocka_unit_test(outputs_are_cosines_with_rows_of_the_last_layer),
		cmocka_unit_test(crops_of_two_sizes_do_not_meet_in_the_encoder),
		cmocka_unit_test(batch_norms_of_the_head_see_all_crops), cmocka_unit_test(an_only_layer_of_the_head_has_no_number),
		cmocka_unit_test(any_plan_builds_and_learns_on_both_grids),
		cmocka_unit_test(a_local_crop_is_half_the_picture_in_whole_patches),
		cmocka_unit_test(targets_are_centred_and_sharpened),
		cmocka_unit_test(a_collapsed_teacher_is_told),
		cmocka_unit_test(the_teacher_follows_in_parameters_not_in_buffers),
		cmocka_unit_test(all_but_vectors_and_biases_decay),
		cmocka_unit_test(schedules_are_those_of_the_released_code),
		cmocka_unit_test(names_are_those_of_the_released_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
