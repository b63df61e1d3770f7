/* See score_tables.h. */
#include "score_tables.h"

#include "base/table.h"
#include "cli.h"

enum { MOST_CLASSES = 110 };

static void percent(struct nr_table *t, double x)
{
	if (x < 0) nr_table_cell(t, "-");
	else nr_table_cell(t, "%.2f %%", 100 * x);
}

static void print_stats(const struct nr_coco_result *r)
{
	struct nr_table *t = nr_table_make();
	static const char *const columns[] = { "objects", "AP", "AP50", "AP75", "AR1", "AR10", "AR100" };
	static const enum nr_coco_stat all[] = { NR_AP, NR_AP50, NR_AP75, NR_AR1, NR_AR10, NR_AR100 };
	static const struct { const char *name; enum nr_coco_stat ap, ar; } sizes[] = {
		{ "small, to 32 x 32 pixels", NR_AP_SMALL, NR_AR_SMALL }, { "medium, to 96 x 96", NR_AP_MEDIUM, NR_AR_MEDIUM },
		{ "large", NR_AP_LARGE, NR_AR_LARGE } };
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) nr_table_column(t, columns[i], i ? NR_RIGHT : NR_LEFT);
	nr_table_cell(t, "all");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) percent(t, r->stat[all[i]]);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		nr_table_cell(t, "%s", sizes[i].name);
		percent(t, r->stat[sizes[i].ap]);
		for (int k = 0; k < 4; k++) nr_table_cell(t, "%s", "");
		percent(t, r->stat[sizes[i].ar]);
	}
	cli_print_table(t);
}

static void print_classes(const struct nr_coco_result *r, char *const *names)
{
	static const char *const columns[] = { "class", "objects", "detections", "AP", "AP50", "AP75", "AR100" };
	struct nr_table *t = nr_table_make();
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) nr_table_column(t, columns[i], i ? NR_RIGHT : NR_LEFT);
	for (int32_t k = 0; k < r->classes; k++) {
		const struct nr_coco_class *c = &r->class[k];
		if (!c->truths && !c->found) continue;
		if (names) nr_table_cell(t, "%s", names[k]);
		else nr_table_cell(t, "class %d", k);
		nr_table_cell(t, "%lld", (long long)c->truths);
		nr_table_cell(t, "%lld", (long long)c->found);
		percent(t, c->ap);
		percent(t, c->ap50);
		percent(t, c->ap75);
		percent(t, c->ar100);
	}
	cli_print_table(t);
}

void cli_print_objects(const struct nr_coco_result *r, char *const *names)
{
	if (r->classes <= MOST_CLASSES) print_classes(r, names);
	print_stats(r);
}
