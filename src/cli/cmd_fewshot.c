/* norma fewshot CKPT: k training samples a class, ridge regression on frozen features, as big_vision does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fewshot.h"
#include "base/json.h"
#include "base/rng.h"
#include "model_flags.h"
#include "study/stats.h"

enum { STREAM = 0x46455753 };                   /* the order in which samples of a class are taken */
struct fewshot { struct cli_model m; int64_t shots, seeds; double l2; };

static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct fewshot, m),
	NR_OPT_INT(struct fewshot, shots, 25, 1, 100000, "training samples per class"),
	NR_OPT_INT(struct fewshot, seeds, 3, 1, 1000, "random draws of the samples; the mean and its 95 % interval are reported"),
	NR_OPT_FLOAT(struct fewshot, l2, 1024, 0, 1e30, "weight of the L2 penalty"),
	NR_OPT_END
};

static int32_t classes_of(const struct cli_opened *o) { return o->source->classes; }

/* The first `shots` of each class in a permutation by seed; returns how many were found. */
static int64_t draw(const struct nr_feature_set *f, int32_t classes, int64_t shots, uint64_t seed,
	int32_t *order, int64_t *have, int32_t *out)
{
	int64_t n = 0;
	nr_rng_shuffle(nr_rng_make(seed, STREAM, 0), 0, order, (int32_t)f->count);
	memset(have, 0, (size_t)classes * sizeof *have);
	for (int64_t i = 0; i < f->count; i++) {
		const int32_t label = f->label[order[i]];
		if (label >= 0 && label < classes && have[label] < shots) have[label]++, out[n++] = order[i];
	}
	return n;
}

struct work { real *x, *z, *score; int32_t *label, *order, *chosen; int64_t *have; };

static int prepare(struct work *w, const struct nr_feature_set *train, const struct nr_feature_set *test, int32_t K, int64_t shots,
	struct nr_error *err)
{
	const int64_t most = K * shots < train->count ? K * shots : train->count, C = train->width;
	*w = (struct work){ malloc((size_t)(most * C) * sizeof(real)),
		malloc((size_t)(test->count * C) * sizeof(real)),
		malloc((size_t)(test->count * K) * sizeof(real)), malloc((size_t)most * sizeof(int32_t)),
		malloc((size_t)train->count * sizeof(int32_t)), malloc((size_t)train->count * sizeof(int32_t)),
		malloc((size_t)K * sizeof(int64_t)) };
	if (!w->x || !w->z || !w->score || !w->label || !w->order || !w->chosen || !w->have)
		return nr_fail(err, NR_EMEMORY, "cannot fit", NULL, "out of memory");
	for (int64_t i = 0; i < test->count * C; i++) w->z[i] = (real)test->x[i];
	return NR_OK;
}

static void drop(struct work *w)
{
	free(w->x), free(w->z), free(w->score), free(w->label), free(w->order), free(w->chosen), free(w->have);
}

static int one_seed(const struct fewshot *v, const struct nr_feature_set *train,
	const struct nr_feature_set *test, int32_t K, uint64_t seed, struct work *w, double *top1,
	struct nr_error *err)
{
	const int64_t C = train->width, N = draw(train, K, v->shots, seed, w->order, w->have, w->chosen);
	for (int64_t i = 0; i < N; i++) {
		for (int64_t c = 0; c < C; c++) w->x[i * C + c] = (real)train->x[w->chosen[i] * C + c];
		w->label[i] = train->label[w->chosen[i]];
	}
	const struct nr_fewshot conf = { .dim = C, .classes = K, .bias_feature = 100, .std_eps = 1e-5, .l2 = v->l2 };
	if (nr_fewshot_fit(&conf, N, w->x, w->label, test->count, w->z, NULL, w->score, err)) return err->code;
	int64_t right = 0;
	for (int64_t i = 0; i < test->count; i++) {
		int64_t best = 0;
		for (int64_t k = 1; k < K; k++)
			if (w->score[i * K + k] > w->score[i * K + best]) best = k;
		right += best == test->label[i];
	}
	*top1 = (double)right / (double)test->count;
	return NR_OK;
}

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct fewshot *v = (const struct fewshot *)(const void *)m;
	struct nr_feature_set train = { 0 }, test = { 0 };
	struct work w = { 0 };
	int code = cli_model_features(c, m, o, 0, &train, &test);
	if (!code) code = prepare(&w, &train, &test, classes_of(o), v->shots, c->err);
	double sum = 0, squares = 0;
	json_t *all = json_array();
	for (int64_t s = 0; !code && s < v->seeds; s++) {
		double top1 = 0;
		code = one_seed(v, &train, &test, classes_of(o), (uint64_t)s, &w, &top1, c->err);
		sum += top1, squares += top1 * top1;
		json_array_append_new(all, json_real(top1));
	}
	const double n = (double)v->seeds, mean = sum / n, std = n > 1 ? sqrt(fmax(0, (squares - n * mean * mean) / (n - 1))) : 0;
	const double half = n > 1 ? nr_t_quantile(0.975, n - 1) * std / sqrt(n) : 0;
	if (!code && v->m.json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:O, s:I}", "file", path, "data", o->source->of->name, "split",
			nr_split_name(o->e.split), "shots", (json_int_t)v->shots, "top1", mean, "std", std, "seeds", all, "samples",
			(json_int_t)test.count);
		if (n > 1) json_object_set_new(j, "top1_half_width_95", json_real(half));
		code = cli_print_json(j, c->err);
	} else if (!code) {
		printf("%s on %s/%s: %lld-shot ridge regression, top-1 %s%.2f %%%s", path, o->source->of->name,
			nr_split_name(o->e.split), (long long)v->shots, cli_bold(), 100 * mean, cli_plain());
		if (n > 1) printf(" ± %.2f (95 %% interval over %lld draws; standard deviation %.2f)", 100 * half, (long long)v->seeds, 100 * std);
		puts("");
	}
	json_decref(all);
	drop(&w);
	nr_features_release(&train);
	nr_features_release(&test);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_model_run(c, conf, args, measure); }

const struct cli_command cli_fewshot = {
	.name = "fewshot",
	.title = "few-shot accuracy of frozen features",
	.usage = "CHECKPOINT",
	.about = "Takes k training samples per class, fits ridge regression on the pooled features (standardised, with a constant\n"
		 "of 100, targets -1 and +1, as in big_vision) and scores a split; mean over several draws.",
	.conf_size = sizeof(struct fewshot),
	.options = options,
	.run = run,
};
