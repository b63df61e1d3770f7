/* norma optimizers: the registries of optimizers and schedules with their formulas; --markdown makes docs/optimizers.md. */
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "cli.h"
#include "norma/optim.h"

struct list { bool markdown; };
static const struct nr_option options[] = {
	NR_OPT_BOOL(struct list, markdown, "0", "print the page docs/optimizers.md"),
	NR_OPT_END
};

static void print(struct nr_table *t, struct nr_str *s, bool markdown)
{
	if (markdown) nr_table_markdown(t, s);
	else nr_table_text(t, s);
	nr_table_free(t);
}

/* Its options as flags of a training. */
static void add_flags(struct nr_table *t, const struct nr_optimizer *o)
{
	struct nr_str s = { 0 };
	const struct nr_option *of[] = { o->options, o->own };
	for (int i = 0; i < 2; i++)
		for (const struct nr_option *row = of[i]; row && row->name; row++) {
			nr_str_add(&s, s.len ? ", --" : "--");
			const char *name = strcmp(row->name, "eps") ? row->name : "adam_eps";
			for (; *name; name++) nr_str_printf(&s, "%c", *name == '_' ? '-' : *name);
		}
	nr_table_cell(t, "%s", nr_str_text(&s));
	nr_str_release(&s);
}

/* The page has the formulas too, which are too long for a terminal. */
static void add_optimizers(struct nr_str *s, bool markdown)
{
	static const char *const columns[] = { "optimizer", "", "options", "after", "one step" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 4 + markdown; i++) nr_table_column(t, columns[i], NR_LEFT);
	for (const struct nr_optimizer *const *o = nr_optimizers(); *o; o++) {
		nr_table_cell(t, "%s", (*o)->name);
		nr_table_cell(t, "%s", (*o)->title);
		add_flags(t, *o);
		nr_table_cell(t, "%s", (*o)->cite ? (*o)->cite : "");
		if (markdown) nr_table_cell(t, "%s", (*o)->formula);
	}
	print(t, s, markdown);
}

static void add_schedules(struct nr_str *s, bool markdown)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "schedule", NR_LEFT);
	nr_table_column(t, "value", NR_LEFT);
	for (const struct nr_schedule_rule *const *r = nr_schedules(); *r; r++) {
		nr_table_cell(t, "%s", (*r)->name);
		nr_table_cell(t, "%s", (*r)->formula);
	}
	print(t, s, markdown);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const bool markdown = ((const struct list *)conf)->markdown;
	struct nr_str s = { 0 };
	if (args->count) return cli_usage(c, "optimizers takes no names");
	if (markdown) nr_str_add(&s, "# Optimizers and schedules\n\nWritten by `norma optimizers --markdown`; a test compares.\n\n");
	add_optimizers(&s, markdown);
	nr_str_add(&s, "\nAll have --lr, --weight-decay, --clip, --clip-norm and --layer-decay. w is a value, g its gradient after\n"
		"clipping, wd the weight decay; a prime divides by 1 - beta^t.\n\n"
		"After a linear warm-up (--warmup, in epochs, from --warmup-lr) the learning rate follows --schedule. s is the\n"
		"step, x goes from 0 at the end of the warm-up to 1 at the end; base is --lr, final --min-lr, and timescale,\n"
		"power, gamma are --schedule-timescale, --schedule-power, --schedule-gamma.\n\n");
	add_schedules(&s, markdown);
	fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	return NR_OK;
}

const struct cli_command cli_optimizers = {
	.name = "optimizers",
	.title = "update rules and learning-rate schedules",
	.usage = "[--markdown]",
	.about = "Lists the optimizers and learning-rate schedules with their options and formulas.",
	.conf_size = sizeof(struct list),
	.options = options,
	.run = run,
};
