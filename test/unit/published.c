/* study/published.c: printed tables beside the arms of a study; and baselines that are a part of a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "study/published.h"
#include "study/results.h"
#include "unit/study_conf.h"

static const char printed[] =
	"seeds:\n  paper:\n    title: On Norms\n    protocol: {main: {model: ViT-B, epochs: 300}, other: {epochs: 9}}\n"
	"    claims: [{where: abstract, what: gain, value: [0.5, 1.2]}]\n"
	"    conflicts:\n    - {where: [Section 2, Table 1], fact: the text has 91}\n    - {where: [Table 10], fact: of another table}\n"
	"    - {where: [abstract, Section 2], fact: of no table}\n"
	"tables:\n"
	"- id: paper/table1\n  label: Table 1\n  reference_unsure: {why: label, from: the discussion}\n"
	"  columns:\n"
	"  - {id: a.top1, data: STL10, metric: top1}\n"
	"  - {id: a.top5, data: STL10, metric: top5}\n"
	"  - {id: b.top1, data: SVHN, metric: top1}\n"
	"  rows:\n"
	"  - {norm: LN, values: [92.10, 99.0, 88.0], ci95: [0.30, 0.1, 0.2]}\n"
	"  - {norm: BN, values: [93.00, 99.5, null], unsure: {a.top1: {read: \"9300\", why: point}}}\n"
	"  - {norm: BN, versus: LN, metric: delta_acc, values: [+0.90, +0.5, null]}\n";

struct fixture { char dir[64], file[80]; struct nr_arena *arena; struct nr_study s; struct nr_yaml_errors errors; struct nr_error err; };

static int parse(struct fixture *f, const char *more)
{
	const char *text = nr_arena_printf(f->arena, "stages: [train]\nbase: {data: mnist}\nseeds: 2\nmetric: train.eval_top1\n"
						      "also: [train.top5]\nout: %s\n%s", f->dir, more);
	f->err = (struct nr_error){ 0 };
	f->errors = (struct nr_yaml_errors){ 0 };
	return nr_study_parse(&f->s, text, strlen(text), f->file, commands, f->arena, &f->errors, &f->err);
}

static const char *cell(const struct fixture *f, int64_t metric, int64_t arm)
{
	static char text[96];
	const struct nr_published_cell *c = nr_published_cell(&f->s, metric, arm);
	if (c) nr_published_text(c, text, sizeof text);
	return c ? text : "-";
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f) return -1;
	*state = f;
	f->arena = nr_arena_make();
	strcpy(f->dir, "/tmp/norma-published-XXXXXX");
	if (!f->arena || !mkdtemp(f->dir)) return -1;
	const char *path = nr_arena_printf(f->arena, "%s/published.yaml", f->dir);
	snprintf(f->file, sizeof f->file, "%s/deep/s.yaml", f->dir);
	nr_folder_make(nr_arena_printf(f->arena, "%s/deep", f->dir), &f->err);      /* the data file is a folder above */
	return nr_save_file(path, printed, strlen(printed), &f->err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[100];
	snprintf(command, sizeof command, "rm -r %s", f->dir);
	const int left = system(command);
	nr_arena_free(f->arena);
	free(f);
	return left;
}

#define GRID "grid: {norm: {LN: ln, BN: bn, RMS: rms}}\n"

/* All claims, and the contradictions that concern Table 1 or no table. */
static void claims_are_there(const struct fixture *f)
{
	const struct nr_published *p = f->s.published;
	assert_int_equal(p->claims.count, 1);
	assert_string_equal(p->claims.item[0], "abstract: gain: 0.5 to 1.2");
	assert_int_equal(p->conflicts.count, 2);
	assert_string_equal(p->conflicts.item[0], "Section 2, Table 1: the text has 91");
	assert_string_equal(p->conflicts.item[1], "abstract, Section 2: of no table");
}

static void words_of_an_arm_find_its_cell(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(parse(f, GRID "published: {table: paper/table1, where: {data: STL10}}\n"), NR_OK);
	assert_string_equal(cell(f, 0, 0), "92.10 ± 0.30");             /* the printed digits */
	assert_string_equal(cell(f, 0, 1), "93.00 ?");
	assert_string_equal(cell(f, 0, 2), "-");
	assert_string_equal(cell(f, 1, 0), "99.0 ± 0.1");               /* by the end of the metric's name */
	assert_string_equal(f->s.published->label, "Table 1 of \"On Norms\" (paper/table1)");
	assert_string_equal(f->s.published->theirs, "data STL10, model ViT-B, epochs 300");
	claims_are_there(f);
	assert_int_equal(f->s.published->notes.count, 1);
	assert_string_equal(f->s.published->notes.item[0], "published reference: label, from: the discussion");
}

static void differences_and_names_are_mapped(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(parse(f, "grid: {norm: {plain: ln, ours: bn}}\npublished:\n  table: paper/table1\n  where: {data: STL10}\n"
				  "  match: {plain: {norm: LN}, ours: {norm: BN, versus: LN}}\n  protocol: other\n"
				  "  metrics: {train.eval_top1: {metric: delta_acc, id: a.top1}}\n"), NR_OK);
	assert_string_equal(cell(f, 0, 1), "Δ +0.90");
	assert_string_equal(cell(f, 1, 0), "-");
	assert_non_null(strstr(f->s.published->theirs, "epochs 9"));
}

static void what_is_not_clear_is_an_error(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(parse(f, GRID "published: paper/table1\n"), NR_EFORMAT);           /* STL10 or SVHN? */
	assert_non_null(strstr(f->errors.item[0].text, "arm 'LN' has several published cells"));
	assert_int_equal(parse(f, GRID "published: paper/tabel1\n"), NR_EFORMAT);
	assert_string_equal(f->errors.item[0].hint, "did you mean 'paper/table1'?");
	assert_int_equal(parse(f, GRID "published: {tabel: paper/table1}\n"), NR_EFORMAT);
	assert_string_equal(f->errors.item[0].hint, "did you mean 'table'?");
	assert_int_equal(parse(f, GRID "published: {table: paper/table1, file: none.yaml}\n"), NR_EIO);
	assert_int_equal(parse(f, GRID "published: {cells: [{arm: XN, value: 1}]}\n"), NR_EFORMAT);
}

static void a_record_keeps_the_cells(void **state)
{
	struct fixture *f = *state;
	struct nr_str text = { 0 };
	assert_int_equal(parse(f, GRID "published: {table: paper/table1, where: {data: STL10}}\n"), NR_OK);
	assert_int_equal(nr_study_text(&f->s, &text), NR_OK);
	assert_int_equal(nr_study_parse(&f->s, nr_str_text(&text), text.len, "far/away.yaml", commands, f->arena, &f->errors, &f->err),
		NR_OK);
	assert_string_equal(cell(f, 0, 0), "92.10 ± 0.30");
	assert_string_equal(cell(f, 0, 1), "93.00 ?");
	assert_string_equal(cell(f, 1, 1), "99.5");
	claims_are_there(f);
	assert_string_equal(f->s.published->theirs, "data STL10, model ViT-B, epochs 300");
	nr_str_release(&text);
}

static void tables_have_a_column_and_state_the_scale(void **state)
{
	struct fixture *f = *state;
	struct nr_summary m;
	struct nr_str text = { 0 }, latex = { 0 };
	assert_int_equal(parse(f, GRID "published: {table: paper/table1, where: {data: STL10}}\n"), NR_OK);
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	nr_summary_markdown(&m, &text);
	nr_summary_latex(&m, &latex);
	assert_non_null(strstr(nr_str_text(&text), "| arm | n | train.eval_top1 % | published | difference |"));
	assert_non_null(strstr(nr_str_text(&text), "| BN | 0 | - | 93.00 ? | - |"));
	assert_non_null(strstr(nr_str_text(&text), "Theirs: data STL10, model ViT-B, epochs 300. Ours: train: data mnist; seeds 2."));
	assert_non_null(strstr(nr_str_text(&text), "published 93.00 of BN is uncertain: point, read as '9300'"));
	assert_non_null(strstr(nr_str_text(&latex), "$92.10 \\pm 0.30$"));
	json_t *o = nr_summary_json(&m, NULL, 0), *arm = json_array_get(json_object_get(o, "arms"), 1);
	json_t *own = json_object_get(json_object_get(json_object_get(arm, "metrics"), "train.eval_top1"), "published");
	assert_string_equal(json_string_value(json_object_get(own, "text")), "93.00");
	json_decref(o);
	nr_str_release(&text);
	nr_str_release(&latex);
}

static void a_baseline_can_be_a_part_of_names(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(parse(f, "arms: [{name: A, epochs: 1}, {name: B, epochs: 2}]\n" GRID "baseline: BN\n"), NR_OK);
	const int64_t want[] = { 1, 1, 1, 4, 4, 4 };
	for (int64_t i = 0; i < 6; i++) assert_int_equal(f->s.arm[i].against, want[i]);
	assert_int_equal(f->s.first, 1);
	struct nr_summary m;
	assert_int_equal(nr_summary_make(&m, &f->s, NULL, 0, f->arena, &f->err), NR_OK);
	assert_int_equal(m.comparisons, 4);
	assert_int_equal(parse(f, "arms: [{name: \"A, LN\", norm: ln}, {name: \"A, BN\", norm: bn}, {name: C, norm: rms}]\nbaseline: LN\n"),
		NR_EFORMAT);
	assert_non_null(strstr(f->errors.item[0].text, "arm 'C' has no baseline 'LN'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_of_an_arm_find_its_cell, setup, teardown),
		cmocka_unit_test_setup_teardown(differences_and_names_are_mapped, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_clear_is_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_keeps_the_cells, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_have_a_column_and_state_the_scale, setup, teardown),
		cmocka_unit_test_setup_teardown(a_baseline_can_be_a_part_of_names, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
