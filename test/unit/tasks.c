/* src/tasks/tasks.c, src/train/train_options.c: what every task of the registry promises, settings from defaults and files. */
#include "unit/values.h"
#include "unit/folder.h"

#include "base/mem.h"
#include "norma/trainer.h"

static void every_task_says_what_it_is(void **state)
{
	(void)state;
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		const char *const words[] = { (*t)->name, (*t)->title, (*t)->command, (*t)->summary, (*t)->usage, (*t)->about,
			(*t)->sample };
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_true(words[i] && *words[i]);
		assert_non_null((*t)->settle), assert_non_null((*t)->record), assert_non_null((*t)->ready);
		assert_non_null((*t)->bind), assert_non_null((*t)->evaluate);
		assert_true(!(*t)->draw == !(*t)->picture);
		for (const struct nr_task *const *other = nr_tasks(); other < t; other++) {
			assert_string_not_equal((*other)->name, (*t)->name);
			assert_string_not_equal((*other)->command, (*t)->command);
		}
	}
}

static void every_metric_has_room_and_one_name(void **state)
{
	(void)state;
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		assert_true(nr_task_metrics((*t)->of_step) <= NR_TASK_METRICS && nr_task_metrics((*t)->of_eval) <= NR_TASK_METRICS);
		assert_in_range((*t)->decides, 0, nr_task_metrics((*t)->of_eval) - 1);
		for (const struct nr_task_metric *m = (*t)->of_eval; m->name; m++) {
			char column[64];
			snprintf(column, sizeof column, "eval_%s", m->name);
			assert_ptr_equal(nr_task_metric_of(column, (*t)->name), m);
		}
	}
	assert_null(nr_task_metric_of("eval_nothing", NULL));
	assert_null(nr_task_metric_of("top1", NULL));
	assert_ptr_equal(nr_task_metric_of("best_top1", NULL), nr_task_metric_of("eval_top1", "mae"));
}

static void rows_are_named_once_and_stay_inside(void **state)
{
	(void)state;
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		const struct nr_option *rows = nr_train_options((*t)->name);
		assert_non_null(rows);
		for (const struct nr_option *o = rows; o->name; o++) {
			assert_ptr_equal(nr_option_find(rows, o->name), o);
			assert_true(o->offset + o->size <= sizeof(struct nr_train));
		}
		for (const struct nr_option *o = (*t)->options; o && o->name; o++) {
			assert_non_null(nr_option_find(rows, o->name));
			assert_true(o->offset + o->size <= (*t)->settings_size);
		}
		for (const struct nr_task_default *d = (*t)->defaults; d && d->option; d++)
			assert_string_equal(nr_option_find(rows, d->option)->text, d->text);
	}
	assert_null(nr_train_options("mea"));
}

static void every_task_has_defaults(void **state)
{
	(void)state;
	struct nr_train c;
	struct nr_error err = { 0 };
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		assert_int_equal(nr_train_init(&c, (*t)->name, &err), 0);
		assert_string_equal(c.task, (*t)->name);
		assert_string_equal(c.resample, "timm");        /* also where the task has no such row */
	}
	assert_int_equal(nr_train_init(&c, "mea", &err), NR_ENAME);
	assert_string_equal(err.hint, "did you mean 'mae'?");
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_train_init(&c, "quite another", &err), NR_ENAME);
	assert_non_null(strstr(err.hint, "classify, segment, mae, dino, mlm, "));
}

static void a_file_names_its_task(void **state)
{
	(void)state;
	char text[32];
	struct nr_train c;
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	assert_int_equal(nr_train_read(&c, made_with("graph.yaml", "task: graph\nbatch: 7\nflag: 3\n"), arena, &err), 0);
	assert_int_equal(c.batch, 7);
	assert_string_equal(c.model, "graphormer-slim");
	const struct nr_option *rows = nr_train_options("graph");
	assert_string_equal(nr_option_text(nr_option_find(rows, "flag"), &c, text, sizeof text), "3");
	assert_int_equal(nr_train_read(&c, made_with("old.yaml", "smoothing: 0.5\n"), arena, &err), 0);   /* of a time before tasks */
	assert_string_equal(c.task, "classify");
	assert_int_not_equal(nr_train_read(&c, made_with("wrong.yaml", "task: mlm\nflag: 3\n"), arena, &err), 0);
	assert_non_null(strstr(err.detail, "flag"));
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_task_says_what_it_is), cmocka_unit_test(every_metric_has_room_and_one_name),
		cmocka_unit_test(rows_are_named_once_and_stay_inside), cmocka_unit_test(every_task_has_defaults),
		cmocka_unit_test(a_file_names_its_task),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
