/* The page of a study: see study_page.h. */
#include "report/study_page.h"

#include <string.h>

#include "base/clock.h"
#include "draw/html.h"
#include "norma/version.h"
#include "report/analysis_figures.h"
#include "report/citations.h"
#include "report/class_figures.h"
#include "report/molecules.h"
#include "report/object_figures.h"
#include "report/page.h"
#include "report/report_runs.h"
#include "report/sections.h"
#include "report/study_families.h"
#include "report/study_figures.h"
#include "report/study_read.h"
#include "report/study_tables.h"

static const char *text_of(const struct nr_study_read *v, const char *key)
{
	const char *text = json_string_value(json_object_get(v->table, key));
	return text ? text : "";
}

static void add_head(struct nr_str *s, const struct nr_study_read *v, const struct nr_report *o, const char *title, struct nr_arena *arena)
{
	char made[32];
	nr_str_add(s, "<header>\n");
	nr_html_element(s, "h1", NULL, title);
	nr_html_element(s, "p", "question", text_of(v, "question"));
	nr_study_verdict(s, v, arena);
	nr_str_add(s, "<p class=\"meta\">");
	nr_html_printf(s, "Made on %s from %d arms and %d seeds by norma %s: ", nr_time_text(o->made, made, sizeof made), v->arms,
		v->seeds, NR_VERSION);
	nr_html_element(s, "code", NULL, o->command);
	nr_str_add(s, ". The commands of the runs stand <a href=\"#runs\">at the end</a>.</p>\n</header>\n");
}

/* Curves of each stage that trains; where there are several, each has its heading. */
static void add_curves(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	for (int k = 0; k < v->stages; k++) {
		const char *id = k ? nr_arena_printf(arena, "curves-%d", k + 1) : "curves";
		const char *title = v->stages > 1 ? nr_arena_printf(arena, "Learning curves: %s", v->stage[k].name) : "Learning curves";
		if (!id || !title) s->failed = true;
		else nr_section_curves(s, &v->stage[k].arms, id, title, arena);
	}
}

/* ---- what failed or is missing ------------------------------------------------------------------------------------------- */

static void add_runs_left(struct nr_str *s, const struct nr_study_read *v, const char *status, const char *words, int *count)
{
	for (int a = 0; a < v->arms; a++) {
		const json_t *runs = json_object_get(json_array_get(v->arm, (size_t)a), "runs");
		for (size_t i = 0; i < json_array_size(runs); i++) {
			const json_t *r = json_array_get(runs, i);
			const char *is = json_string_value(json_object_get(r, "status")),
				   *fault = json_string_value(json_object_get(r, "fault"));
			if (!is || strcmp(is, status)) continue;
			nr_str_add(s, "<li>");
			nr_html_printf(s, "%s, seed %lld %s%s%s", v->name[a], (long long)json_integer_value(json_object_get(r, "seed")),
				words, fault && *fault ? ": " : "", fault ? fault : "");
			nr_str_add(s, "</li>");
			++*count;
		}
	}
}

static void add_lines(struct nr_str *s, const char *name, const char *text, int *count)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		nr_str_add(s, "<li>");
		if (name) nr_html_printf(s, "%s: ", name);
		nr_html_printf(s, "%.*s", (int)n, text);
		nr_str_add(s, "</li>");
		++*count;
	}
}

static void add_missing(struct nr_str *s, const struct nr_study_read *v)
{
	int count = 0;
	nr_str_add(s, "<h3>Failed or missing</h3>\n<ul class=\"notes\">");
	add_runs_left(s, v, "failed", "failed", &count);
	add_runs_left(s, v, "running", "was started but is not finished", &count);
	add_runs_left(s, v, "waiting", "was not started", &count);
	add_runs_left(s, v, "spared", "was not needed: its comparison was decided", &count);
	add_lines(s, NULL, nr_str_text(&v->notes), &count);
	for (int k = 0; k < v->stages; k++)
		for (int i = 0; i < v->stage[k].runs; i++)
			add_lines(s, v->stage[k].run[i].name, nr_str_text(&v->stage[k].run[i].notes), &count);
	if (!count) nr_str_add(s, "<li>Nothing: every run is done, and all of its files could be read.</li>");
	nr_str_add(s, "</ul>\n");
}

static void add_origin(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	nr_str_add(s, "<section id=\"runs\"><h2>How this came about</h2>\n"
		"<p>The study goes on, or is repeated elsewhere, with its own file:</p>\n<pre>");
	nr_html_printf(s, "norma study %s/study.yaml", v->dir);
	nr_str_add(s, "</pre>\n");
	for (int k = 0; k < v->stages; k++) {
		if (v->stages > 1) nr_html_element(s, "h3", NULL, v->stage[k].name);
		nr_report_origin(s, &v->stage[k].arms, arena);
	}
	add_missing(s, v);
	nr_str_add(s, "</section>\n");
}

static void add_all(struct nr_str *s, const struct nr_study_read *v, const struct nr_report *o, struct nr_arena *arena)
{
	const char *title = *o->title ? o->title : text_of(v, "title");
	const struct nr_arms **arms = nr_arena_alloc(arena, (size_t)v->stages * sizeof *arms);
	if (!arms) s->failed = true;
	if (!*title) title = "A study of normalizations";
	nr_page_open(s, title);
	add_head(s, v, o, title, arena);
	nr_study_results(s, v, arena);
	nr_study_published(s, v, arena);
	nr_study_families(s, v, arena);
	nr_study_trade_offs(s, v, arena);
	nr_study_tuning(s, v, arena);
	add_curves(s, v, arena);
	for (int k = 0; k < v->stages; k++) nr_section_classes(s, &v->stage[k].arms, arena);
	for (int k = 0; k < v->stages; k++) nr_section_objects(s, &v->stage[k].arms, arena);
	for (int k = 0; k < v->stages; k++) nr_section_molecules(s, &v->stage[k].arms, arena);
	for (int k = 0; k < v->stages; k++) nr_section_spectra(s, &v->stage[k].arms, false, arena);
	for (int k = 0; k < v->stages; k++) nr_analysis_figures(s, &v->stage[k].arms, arena);
	for (int k = 0; k < v->stages; k++) nr_section_pictures(s, &v->stage[k].arms, false, arena);
	add_origin(s, v, arena);
	for (int k = 0; k < v->stages && arms; k++) arms[k] = &v->stage[k].arms;
	if (arms) nr_citations(s, arms, v->stages);
	nr_page_close(s);
}

int nr_study_page(const struct nr_report *o, struct nr_str *s, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_study_read v;
	const int code = nr_study_read(&v, o->runs.item[0], o->commands, arena, err);
	if (!code) add_all(s, &v, o, arena);
	nr_study_read_release(&v);
	return code;
}
