/* See class_tables.h. */
#include "class_tables.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/table.h"
#include "infer/metrics.h"

static void print_pixels(const struct nr_class_counts *t)
{
	static const char *const columns[] = { "class", "pixels", "IoU", "accuracy", "precision" };
	struct nr_table *table = nr_table_make();
	char buf[32];
	double *iou = malloc((size_t)t->classes * sizeof *iou);
	if (iou) nr_metric_iou((int32_t)t->classes, t->confusion, iou);
	for (int i = 0; i < 5; i++) nr_table_column(table, columns[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t k = 0; iou && k < t->classes; k++) {
		const struct nr_class_score c = nr_metric_class(t->classes, t->confusion, k);
		nr_table_cell(table, "%s", nr_class_counts_name(t, k, buf, sizeof buf));
		nr_table_cell(table, "%lld", (long long)c.samples);
		if (iou[k] < 0) nr_table_cell(table, "-");
		else nr_table_cell(table, "%.2f %%", 100 * iou[k]);
		nr_table_cell(table, "%.2f %%", 100 * c.recall);
		nr_table_cell(table, "%.2f %%", 100 * c.precision);
	}
	free(iou);
	cli_print_table(table);
}

static void print_scores(const struct nr_class_counts *t)
{
	static const char *const columns[] = { "class", "samples", "accuracy", "precision", "F1" };
	struct nr_table *table = nr_table_make();
	char buf[32];
	for (int i = 0; i < 5; i++) nr_table_column(table, columns[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t k = 0; k < t->classes; k++) {
		const struct nr_class_score c = nr_metric_class(t->classes, t->confusion, k);
		nr_table_cell(table, "%s", nr_class_counts_name(t, k, buf, sizeof buf));
		nr_table_cell(table, "%lld", (long long)c.samples);
		nr_table_cell(table, "%.2f %%", 100 * c.recall);
		nr_table_cell(table, "%.2f %%", 100 * c.precision);
		nr_table_cell(table, "%.2f %%", 100 * c.f1);
	}
	cli_print_table(table);
}

static void print_matrix(const struct nr_class_counts *t)
{
	struct nr_table *table = nr_table_make();
	const int64_t K = t->classes;
	char buf[32];
	nr_table_column(table, "truth", NR_LEFT);
	for (int64_t k = 0; k < K; k++) nr_table_column(table, nr_class_counts_name(t, k, buf, sizeof buf), NR_RIGHT);
	for (int64_t i = 0; i < K * K; i++) {
		if (i % K == 0) nr_table_cell(table, "%s", nr_class_counts_name(t, i / K, buf, sizeof buf));
		nr_table_cell(table, "%lld", (long long)t->confusion[i]);
	}
	cli_print_table(table);
}

void cli_print_classes(const struct nr_class_counts *t, bool confusion)
{
	const bool few = t->classes <= CLI_CLASSES_SHOWN;
	if (t->pixels) print_pixels(t);
	else if (few) print_scores(t);
	if (confusion && few) print_matrix(t);
	else if (confusion) printf("(the confusion matrix of more than %d classes is in --json)\n", CLI_CLASSES_SHOWN);
}

void cli_json_classes(json_t *o, const struct nr_class_counts *t, bool confusion)
{
	if (!t->pixels) json_object_set_new(o, "macro_f1", json_real(nr_metric_macro_f1(t->classes, t->confusion)));
	json_object_set_new(o, "classes", nr_class_counts_scores(t));
	if (confusion) json_object_set_new(o, "confusion", nr_class_counts_matrix(t));
}
