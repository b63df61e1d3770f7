/* norma knn CKPT: nearest neighbours in the space of pooled features, weighted as in DINO (Caron et al. 2021). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/knn.h"
#include "base/json.h"
#include "model_flags.h"

struct knn { struct cli_model m; int64_t k; double temperature; int64_t train_limit; };

static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct knn, m),
	NR_OPT_INT(struct knn, k, 20, 1, 10000, "neighbours"),
	NR_OPT_FLOAT(struct knn, temperature, 0.07, 1e-4, 1e4,
		"a neighbour with cosine s has the weight exp(s / temperature)"),
	NR_OPT_INT(struct knn, train_limit, 0, 0, 1e15, "use only the first N training samples; 0: all"),
	NR_OPT_END
};

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct knn *v = (const struct knn *)(const void *)m;
	struct nr_feature_set train = { 0 }, test = { 0 };
	double top1 = 0, top5 = 0;
	int code = cli_model_features(c, m, o, v->train_limit, &train, &test);
	if (!code)
		code = nr_knn(train.count, train.width, train.x, train.label, test.count, test.x, test.label,
			o->source->classes, v->k, v->temperature, &top1, &top5, c->err);
	if (!code && v->m.json)
		code = cli_print_json(json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:I, s:I}", "file", path,
					      "data", o->source->of->name, "split", nr_split_name(o->e.split),
					      "k", (json_int_t)v->k, "top1", top1, "top5", top5, "train",
					      (json_int_t)train.count, "samples", (json_int_t)test.count),
			c->err);
	else if (!code)
		printf("%s on %s/%s: %lld-nearest neighbours among %lld, top-1 %s%.2f %%%s, top-5 %.2f %%\n",
			path, o->source->of->name, nr_split_name(o->e.split), (long long)v->k,
			(long long)train.count, cli_bold(), 100 * top1, cli_plain(), 100 * top5);
	nr_features_release(&train);
	nr_features_release(&test);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_model_run(c, conf, args, measure); }

const struct cli_command cli_knn = {
	.name = "knn",
	.title = "nearest-neighbour accuracy in a model's feature space",
	.usage = "CHECKPOINT",
	.about = "Classifies each sample of a split by its k nearest training samples, by cosine of the pooled features, each\n"
		 "with the weight exp(cosine / temperature), as in DINO.",
	.conf_size = sizeof(struct knn),
	.options = options,
	.run = run,
};
