/* src/analysis/{sphere,flow,ragged,uniformity}.c against closed forms and plain sums. */
#include "unit/built.h"

#include "analysis/flow.h"
#include "analysis/ragged.h"
#include "analysis/uniformity.h"
#include "base/mem.h"
#include "laws/sphere.h"

enum { P = NR_SPHERE_PICTURES, N = NR_SPHERE_POINTS, TOKENS = NR_SPHERE_TOKENS };

static struct nr_sphere put(const char *norm)
{
	static struct nr_sphere s;
	struct nr_error err = { 0 };
	char line[1200];
	if (nr_sphere_run(&s, norm, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return s;
}

/* Norms of one token: on the sphere of radius sqrt(3), layer also on the plane of mean 0. */
static void norms_of_a_token_reach_the_sphere(void **state)
{
	(void)state;
	const struct nr_sphere rms = put("rms:eps=0"), layer = put("layer:eps=0"), cloud = put("none");
	real first[N][3];
	nr_sphere_cloud(first);
	assert_memory_equal(cloud.at, first, sizeof first);
	assert_float_equal(rms.length, sqrt(3), 1e-5);
	assert_float_equal(rms.length_sd, 0, 1e-3);
	assert_float_equal(rms.uniformity, cloud.uniformity, 1e-5);     /* directions stay */
	assert_float_equal(layer.length, sqrt(3), 1e-5);
	assert_float_equal(layer.off_plane, 0, 1e-5);
	assert_true(cloud.off_plane > .5 && cloud.length_sd > .3);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < 3; c++) {
			const double square = (double)(first[i][0] * first[i][0] + first[i][1] * first[i][1] + first[i][2] * first[i][2]);
			assert_float_equal(rms.at[i][c], (double)first[i][c] / sqrt(square / 3), 1e-5);
		}
}

/* Mean 0 and variance 1 over `rows` points from each first one, in channels from to to-1. */
static void is_standard(const struct nr_sphere *s, int rows, int from, int to)
{
	for (int first = 0; first < N; first += rows) {
		double mean = 0, square = 0;
		for (int i = first; i < first + rows; i++)
			for (int c = from; c < to; c++) {
				mean += (double)s->at[i][c] / (rows * (to - from));
				square += (double)(s->at[i][c] * s->at[i][c]) / (rows * (to - from));
			}
		assert_float_equal(mean, 0, 1e-4);
		assert_float_equal(square, 1, 1e-3);
	}
}

static void norms_over_tokens_only_move_and_stretch(void **state)
{
	(void)state;
	const struct nr_sphere batch = put("batch");
	for (int c = 0; c < 3; c++) is_standard(&batch, N, c, c + 1);
	const struct nr_sphere instance = put("instance");
	for (int c = 0; c < 3; c++) is_standard(&instance, TOKENS, c, c + 1);
	const struct nr_sphere group = put("group:groups=1");
	is_standard(&group, TOKENS, 0, 3);
	assert_true(batch.length_sd > .3 && instance.length_sd > .3);
}

static void a_view_keeps_the_sphere_round(void **state)
{
	(void)state;
	const struct nr_sphere rms = put("rms:eps=0");
	double at[N][2], most = 0;
	nr_sphere_view(&rms, at);
	for (int i = 0; i < N; i++) most = fmax(most, sqrt(at[i][0] * at[i][0] + at[i][1] * at[i][1]));
	assert_true(most <= sqrt(3) + 1e-5 && most > 1.6);
	struct nr_error err = { 0 };
	struct nr_sphere s;
	assert_int_not_equal(nr_sphere_run(&s, "layr", &err), 0);
	assert_non_null(strstr(err.detail, "did you mean 'layer'"));
}

/* |u - v|^2 = 2 - 2 cos. */
static void alignment_is_told_by_the_cosine(void **state)
{
	(void)state;
	enum { ROWS = 7, C = 5 };
	real x[ROWS * C], y[ROWS * C];
	double want = 0;
	for (int i = 0; i < ROWS * C; i++) x[i] = value(), y[i] = value();
	for (int i = 0; i < ROWS; i++) {
		double a = 0, b = 0, dot = 0;
		for (int c = i * C; c < i * C + C; c++) a += (double)(x[c] * x[c]), b += (double)(y[c] * y[c]),
			dot += (double)(x[c] * y[c]);
		want += (2 - 2 * dot / sqrt(a * b)) / ROWS;
	}
	assert_float_equal(nr_alignment(ROWS, C, x, y, 2), want, 1e-5);
	assert_float_equal(nr_alignment(ROWS, C, x, x, 2), 0, 1e-9);
}

/* ---- gradients before training ----------------------------------------------------------------------------------------------- */

static struct nr_flow flow(const char *plan, struct nr_arena *arena)
{
	struct nr_flow f;
	struct nr_error err = { 0 };
	char line[1200];
	const struct nr_flow_config c = { .model = "vit:image=8,channels=1,patch=4,dim=16,depth=4,heads=2,classes=5", .batch = 3,
		.steps = 2, .seed = 5 };
	if (nr_flow_run(&f, &c, plan, arena, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	assert_int_equal(f.blocks, 4);
	for (int i = 0; i < 4; i++) assert_true(f.gradient[i] > 0 && f.size[i] > 0);
	return f;
}

static void post_norm_sets_lengths_and_rezero_keeps_them(void **state)
{
	(void)state;
	struct nr_arena *arena = nr_arena_make();
	const struct nr_flow pre = flow("placement=pre", arena), post = flow("placement=post", arena),
		zero = flow("residual=rezero", arena);
	for (int i = 0; i < 4; i++) {
		assert_float_equal(post.size[i], 4, 1e-3);              /* sqrt(16): first gains are 1 */
		assert_float_equal(zero.size[i], zero.size[0], 1e-6);   /* a block adds nothing yet */
		assert_true(!i || pre.size[i] > pre.size[i - 1]);
	}
	const struct nr_flow again = flow("placement=pre", arena);
	assert_memory_equal(again.gradient, pre.gradient, 4 * sizeof *pre.gradient);
	struct nr_flow f;
	struct nr_error err = { 0 };
	const struct nr_flow_config c = { .model = "vit:image=8,channels=1,patch=4,dim=16,depth=2,heads=2,classes=5", .batch = 2,
		.steps = 1 };
	assert_int_not_equal(nr_flow_run(&f, &c, "placement=pst", arena, &err), 0);
	nr_arena_free(arena);
}

/* ---- lengths ------------------------------------------------------------------------------------------------------------------- */

enum { B = 4, T = 9, C = 6, S = 1 };

static double ragged(const char *norm, const real *x, double least)
{
	struct built b = build_whole("vit:image=8,channels=1,patch=4,dim=6,depth=1,heads=2,classes=3", norm, 7);
	const struct nr_weights w = { .arena = b.arena, .store = b.store, .model = b.model, .norms = norm };
	struct nr_error err = { 0 };
	char line[1200];
	double change = -1;
	const struct nr_tokens tok = { .special = S, .h = 2, .w = 4, .heads = 2 };
	if (nr_ragged_change(&w, "final", norm, &tok, B, T, C, x, least, &change, &err)) fail_msg("%s", nr_error_text(&err, line,
		sizeof line));
	discard(&b);
	return change;
}

/* Batch normalization by hand: mean and variance over the tokens that count. */
static void standardize(const real *x, const int64_t *length, double *y)
{
	for (int c = 0; c < C; c++) {
		double n = 0, mean = 0, var = 0;
		for (int i = 0; i < B * T; i++) n += i % T < length[i / T];
		for (int i = 0; i < B * T; i++) mean += i % T < length[i / T] ? (double)x[i * C + c] / n : 0;
		for (int i = 0; i < B * T; i++) var += i % T < length[i / T] ? pow((double)x[i * C + c] - mean, 2) / n : 0;
		for (int i = 0; i < B * T; i++) y[i * C + c] = ((double)x[i * C + c] - mean) / sqrt(var + 1e-5);
	}
}

static void a_cut_changes_batch_norm_as_its_sums_say(void **state)
{
	(void)state;
	real x[B * T * C];
	double y[B * T * C], cut[B * T * C], want = 0, count = 0;
	int64_t whole[B], length[B];
	for (int i = 0; i < B * T * C; i++) x[i] = value() * (1 + i % 5);
	for (int b = 0; b < B; b++) whole[b] = T, length[b] = nr_ragged_length(T, S, b, B, .25);
	assert_int_equal(length[0], T);
	assert_int_equal(length[B - 1], S + 2);
	standardize(x, whole, y);
	standardize(x, length, cut);
	for (int i = 0; i < B * T; i++) {
		double apart = 0, size = 0;
		if (i % T >= length[i / T]) continue;
		for (int c = 0; c < C; c++) apart += pow(cut[i * C + c] - y[i * C + c], 2), size += pow(y[i * C + c], 2);
		want += sqrt(apart / size);
		count++;
	}
	assert_float_equal(ragged("batch:eps=1e-5", x, .25), want / count, 1e-4);
	assert_true(want / count > .01);
	assert_float_equal(ragged("layer", x, .25), 0, 0);
	assert_float_equal(ragged("rms", x, .25), 0, 0);
	assert_float_equal(ragged("instance", x, 1), 0, 0);
	assert_true(ragged("instance", x, .25) > .01);
	assert_float_equal(ragged("sep(batch,layer)", x, .25), 0, 0);   /* [CLS] is never cut off */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(norms_of_a_token_reach_the_sphere),
		cmocka_unit_test(norms_over_tokens_only_move_and_stretch),
		cmocka_unit_test(a_view_keeps_the_sphere_round),
		cmocka_unit_test(alignment_is_told_by_the_cosine),
		cmocka_unit_test(post_norm_sets_lengths_and_rezero_keeps_them),
		cmocka_unit_test(a_cut_changes_batch_norm_as_its_sums_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
