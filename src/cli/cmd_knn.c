/* norma knn CKPT: nearest neighbours in the space of pooled features, weighted as in DINO (Caron et al. 2021). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/knn.h"
#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "lists.h"
#include "model_flags.h"

struct knn { struct cli_model m; char *k, *temperature; int64_t train_limit; };
enum { MOST = 16 };                             /* values of a list */

static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct knn, m),
	CLI_TEXT(struct knn, k, "20", "LIST", "neighbours, also several numbers: 10,20,100,200"),
	CLI_TEXT(struct knn, temperature, "0.07", "LIST",
		"a neighbour with cosine s has the weight exp(s / temperature); also several"),
	NR_OPT_INT(struct knn, train_limit, 0, 0, 1e15, "use only the first N training samples; 0: all"),
	NR_OPT_END
};

/* Every k with every temperature; how many, or an error. */
static int64_t read_tries(struct cli *c, const struct knn *v, struct nr_knn_try *to)
{
	double k[MOST], temperature[MOST];
	static const struct cli_numbers of_k = { "k", "a whole number from 1 to 10000", 1, 10000, true, MOST };
	static const struct cli_numbers of_temperature = { "temperature", "a number from 0.0001 to 10000", 1e-4, 1e4, false, MOST };
	const int64_t ks = cli_list_numbers(c, &of_k, v->k, k);
	const int64_t ts = ks < 0 ? ks : cli_list_numbers(c, &of_temperature, v->temperature, temperature);
	for (int64_t i = 0; ts > 0 && i < ks * ts; i++)
		to[i] = (struct nr_knn_try){ .k = (int64_t)k[i / ts], .temperature = temperature[i % ts] };
	return ts < 0 ? ts : ks * ts;
}

static json_t *tries_json(const struct nr_knn_try *t, int64_t n)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(all, json_pack("{s:I, s:f, s:f, s:f}", "k", (json_int_t)t[i].k, "temperature",
			t[i].temperature, "top1", t[i].top1, "top5", t[i].top5));
	return all;
}

static void print_tries(const struct nr_knn_try *t, int64_t n)
{
	static const char *const titles[] = { "k", "temperature", "top-1", "top-5" };
	struct nr_table *table = nr_table_make();
	for (int i = 0; i < 4; i++) nr_table_column(table, titles[i], NR_RIGHT);
	for (int64_t i = 0; i < n; i++) {
		nr_table_cell(table, "%lld", (long long)t[i].k);
		nr_table_cell(table, "%g", t[i].temperature);
		nr_table_cell(table, "%.2f %%", 100 * t[i].top1);
		nr_table_cell(table, "%.2f %%", 100 * t[i].top5);
	}
	cli_print_table(table);
}

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct knn *v = (const struct knn *)(const void *)m;
	struct nr_feature_set train = { 0 }, test = { 0 };
	struct nr_knn_try t[MOST * MOST];
	const int64_t tries = read_tries(c, v, t);
	int code = tries < 0 ? (int)tries : cli_model_features(c, m, o, v->train_limit, &train, &test);
	if (!code)
		code = nr_knn_each(train.count, train.width, train.x, train.label, test.count, test.x, test.label, o->source->classes, t,
			tries, o->e.comm, c->err);
	if (!code && v->m.json)         /* the first is told by itself, too: nothing is chosen on the test split */
		code = cli_print_json(json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:I, s:I, s:o}", "file", path, "data",
					      o->source->of->name, "split", nr_split_name(o->e.split), "k", (json_int_t)t[0].k,
					      "temperature", t[0].temperature, "top1", t[0].top1, "top5", t[0].top5, "train",
					      (json_int_t)train.count, "samples", (json_int_t)test.count, "each",
					      tries_json(t, tries)),
			c->err);
	else if (!code && tries == 1)
		printf("%s on %s/%s: %lld-nearest neighbours among %lld, top-1 %s%.2f %%%s, top-5 %.2f %%\n", path, o->source->of->name,
			nr_split_name(o->e.split), (long long)t[0].k, (long long)train.count, cli_bold(), 100 * t[0].top1, cli_plain(),
			100 * t[0].top5);
	else if (!code) {
		printf("%s on %s/%s: nearest neighbours among %lld, %lld samples\n", path, o->source->of->name, nr_split_name(o->e.split),
			(long long)train.count, (long long)test.count);
		print_tries(t, tries);
	}
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
		 "with the weight exp(cosine / temperature), as in DINO. Several numbers of neighbours and temperatures are all reported,\n"
		 "from one search; none is chosen, since that would be done on the test samples.",
	.conf_size = sizeof(struct knn),
	.options = options,
	.run = run,
};
