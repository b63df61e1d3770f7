/* Following a study: see follow_study.h. Marks are replaced whole, which changes the time of their folder: so one look at a folder
 * tells whether any of its stages has news. */
#include "serve/follow_study.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/yaml.h"
#include "draw/html.h"
#include "serve/follow.h"

enum { MAX_CELLS = 20000 };

void nr_study_view_free(struct nr_study_view *v)
{
	if (!v) return;
	nr_arena_free(v->arena);
	nr_str_release(&v->table);
	nr_str_release(&v->fault);
	free(v);
}

static bool newer(const char *path, struct timespec *than)
{
	struct stat st;
	if (stat(path, &st)) st.st_mtim = (struct timespec){ 0 };
	const bool other = st.st_mtim.tv_sec != than->tv_sec || st.st_mtim.tv_nsec != than->tv_nsec;
	*than = st.st_mtim;
	return other;
}

/* ---- study.yaml ------------------------------------------------------------------------------------------------------------ */

static const char *text_of(const struct nr_yaml_node *map, const char *key)
{
	const struct nr_yaml_node *n = nr_yaml_value(map, key);
	return n && n->kind == NR_YAML_VALUE ? n->text : "";
}

static const struct nr_yaml_node *list_of(const struct nr_yaml_node *map, const char *key)
{
	static const struct nr_yaml_node none = { .kind = NR_YAML_LIST };
	const struct nr_yaml_node *n = nr_yaml_value(map, key);
	return n && n->kind == NR_YAML_LIST ? n : &none;
}

/* The file as nr_study_save writes it: every arm by itself, seeds as a list, each stage a mapping of one key. */
static int take(struct nr_study_view *v, const struct nr_yaml_node *root)
{
	const struct nr_yaml_node *arms = list_of(root, "arms"), *seeds = list_of(root, "seeds"), *stages = list_of(root, "stages");
	if (!arms->count || !seeds->count || !stages->count || arms->count > MAX_CELLS / seeds->count / stages->count) return NR_EFORMAT;
	v->title = text_of(root, "title");
	v->question = text_of(root, "question");
	v->metric = text_of(root, "metric");
	if (!nr_parse_int(text_of(root, "parallel"), &v->parallel) || v->parallel < 1) v->parallel = 1;
	v->arm = nr_arena_alloc(v->arena, (size_t)arms->count * sizeof *v->arm);
	v->seed = nr_arena_alloc(v->arena, (size_t)seeds->count * sizeof *v->seed);
	v->stage = nr_arena_alloc(v->arena, (size_t)stages->count * sizeof *v->stage);
	v->cell = nr_arena_alloc(v->arena, (size_t)(arms->count * seeds->count * stages->count) * sizeof *v->cell);
	v->looked = nr_arena_alloc(v->arena, (size_t)(arms->count * seeds->count) * sizeof *v->looked);
	if (!v->arm || !v->seed || !v->stage || !v->cell || !v->looked) return NR_EMEMORY;
	for (; v->arms < arms->count; v->arms++) v->arm[v->arms].name = text_of(arms->item[v->arms], "name");
	for (; v->seeds < seeds->count; v->seeds++)
		if (!nr_parse_int(seeds->item[v->seeds]->text, &v->seed[v->seeds])) return NR_EFORMAT;
	for (; v->stages < stages->count; v->stages++) {
		const struct nr_yaml_node *s = stages->item[v->stages];
		if (s->kind != NR_YAML_MAP || s->count != 1 || strchr(s->key[0]->text, '/')) return NR_EFORMAT;
		v->stage[v->stages] = s->key[0]->text;
	}
	return nr_study_folders(v->arm, v->arms, v->arena);
}

static void read_study(struct nr_study_view *v, const char *path)
{
	struct nr_error err = { 0 };
	struct nr_yaml_errors errors = { 0 };
	struct nr_yaml_tree tree = { 0 };
	char why[1024];
	size_t size = 0;
	nr_arena_free(v->arena);
	nr_str_release(&v->fault);
	*v = (struct nr_study_view){ .arena = nr_arena_make(), .read = v->read, .tabled = v->tabled, .table = v->table, .title = "",
		.question = "", .metric = "", .parallel = 1, .held = v->held };
	const char *text = v->arena ? nr_yaml_load(path, &size, v->arena, &err) : NULL;
	if (text && !nr_yaml_tree(&tree, text, size, "study.yaml", v->arena, &errors, &err) && tree.root && !take(v, tree.root)) return;
	nr_fail(&err, NR_EFORMAT, "cannot read", "study.yaml", "it is not in the form that norma study writes");
	nr_str_add(&v->fault, nr_error_text(&err, why, sizeof why));
	v->arms = v->seeds = v->stages = 0;
}

/* ---- marks ------------------------------------------------------------------------------------------------------------------ */

static void read_mark(struct nr_study_view *v, struct nr_cell_state *c, const char *path)
{
	json_t *o = access(path, F_OK) ? NULL : nr_json_load(path, NULL);
	const char *status = json_string_value(json_object_get(o, "status")), *fault = json_string_value(json_object_get(o, "fault"));
	snprintf(c->status, sizeof c->status, "%s", status ? status : "");
	c->seconds = json_number_value(json_object_get(o, "seconds"));
	c->fault = fault ? nr_arena_strdup(v->arena, fault) : NULL;
	json_decref(o);
}

static bool read_marks(struct nr_study_view *v, const char *dir)
{
	bool any = false;
	for (int64_t i = 0; i < v->arms * v->seeds; i++) {
		char folder[PATH_MAX], mark[PATH_MAX + 300];
		snprintf(folder, sizeof folder, "%s/%s/seed-%lld", dir, v->arm[i / v->seeds].folder, (long long)v->seed[i % v->seeds]);
		if (!newer(folder, &v->looked[i])) continue;
		any = true;
		for (int64_t k = 0; k < v->stages; k++) {
			snprintf(mark, sizeof mark, "%s/%.255s.mark", folder, v->stage[k]);
			read_mark(v, &v->cell[i * v->stages + k], mark);
		}
	}
	return any;
}

static int64_t place(const struct nr_study_view *v, const struct nr_served *e)
{
	if (!e->arm || !e->stage) return -1;
	for (int64_t i = 0; i < v->arms * v->seeds * v->stages; i++)
		if (v->seed[i / v->stages % v->seeds] == e->seed && !strcmp(v->stage[i % v->stages], e->stage) &&
			!strcmp(v->arm[i / v->stages / v->seeds].folder, e->arm)) return i;
	return -1;
}

/* Entries are never taken away: only new ones have to be placed. */
static bool place_runs(struct nr_study_view *v, const struct nr_served *study, const struct nr_catalogue *c)
{
	int64_t runs = 0;
	for (int64_t i = 0; i < c->count; i++) runs += c->entry[i]->part_of == study;
	if (runs == v->runs) return false;
	for (int64_t i = 0; i < c->count; i++) {
		const int64_t at = c->entry[i]->part_of == study ? place(v, c->entry[i]) : -1;
		if (at >= 0) v->cell[at].run = c->entry[i];
	}
	v->runs = runs;
	return true;
}

/* ---- state ------------------------------------------------------------------------------------------------------------------ */

bool nr_cell_running(const struct nr_study_view *v, const struct nr_cell_state *c)
{
	return c->run && strcmp(c->status, "done") ? c->run->status.state == NR_RUNNING : v->held && !strcmp(c->status, "begun");
}

static bool failed(const struct nr_cell_state *c) { return !strcmp(c->status, "failed") || !strcmp(c->status, "diverged"); }

/* By the mean time of each stage so far, or, before one has finished, by how far the running ones are. */
static double seconds_left(const struct nr_study_view *v)
{
	double left = 0;
	for (int64_t k = 0; k < v->stages; k++) {
		double spent = 0, open = 0, rate = 0;
		int64_t done = 0;
		for (int64_t i = k; i < v->arms * v->seeds * v->stages; i += v->stages) {
			const struct nr_cell_state *c = &v->cell[i];
			const bool over = !strcmp(c->status, "done"), spared = !strcmp(c->status, "spared");
			const double share = nr_cell_running(v, c) && c->run && c->run->status.share > 0 ? c->run->status.share : 0;
			if (over) spent += c->seconds, done++;
			else if (!failed(c) && !spared) open += 1 - share;
			if (share > 0.01) rate = fmax(rate, c->run->follow.seconds / share);
		}
		if (open > 0 && !done && rate <= 0 && k == 0) return NAN;       /* later stages: nothing to go by yet */
		left += open * (done ? spent / (double)done : rate);
	}
	return left / (double)v->parallel;
}

static void say_status(const struct nr_study_view *v, const char *dir, struct nr_status *s)
{
	double sum = 0;
	int64_t done = 0, faults = 0, running = 0, all = v->arms * v->seeds * v->stages;
	char text[32];
	struct timespec since = { 0 };
	for (int64_t i = 0; i < all; i++) {
		const struct nr_cell_state *c = &v->cell[i];
		const bool over = !strcmp(c->status, "done") || !strcmp(c->status, "spared");
		done += over;
		faults += failed(c);
		running += !over && nr_cell_running(v, c);
		sum += over ? 1 : c->run && c->run->status.share > 0 && strcmp(c->status, "") ? c->run->status.share : 0;
	}
	newer(dir, &since);
	s->when = since.tv_sec;
	s->share = all ? sum / (double)all : (double)NAN;
	s->state = v->held ? NR_RUNNING : all && done == all ? NR_DONE : faults && done + faults == all ? NR_STOPPED : NR_UNFINISHED;
	snprintf(s->words, sizeof s->words, "%s", s->state == NR_RUNNING ? "running" : s->state == NR_DONE ? "done" : "with failed runs");
	if (s->state == NR_UNFINISHED)
		snprintf(s->words, sizeof s->words, "not finished since %s", nr_time_text(since.tv_sec, text, sizeof text));
	int n = snprintf(s->text, sizeof s->text, "%lld of %lld stages done", (long long)done, (long long)all);
	if (running) n += snprintf(s->text + n, sizeof s->text - (size_t)n, ", %lld running", (long long)running);
	if (faults) n += snprintf(s->text + n, sizeof s->text - (size_t)n, ", %lld failed", (long long)faults);
	const double left = s->state == NR_RUNNING ? seconds_left(v) : (double)NAN;
	if (isfinite(left)) snprintf(s->text + n, sizeof s->text - (size_t)n, ", about %s left", nr_duration_text(left, text, sizeof text));
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------- */

static void say_what(const struct nr_study_view *v, const struct nr_served *e, struct nr_news *news)
{
	struct nr_str head = { 0 }, title = { 0 };
	if (*v->question) nr_html_element(&head, "p", "question", v->question);
	nr_str_add(&head, "<p class=\"meta\">");
	nr_html_printf(&head, "%lld arm%s, %lld seed%s, folder ", (long long)v->arms, v->arms == 1 ? "" : "s", (long long)v->seeds,
		v->seeds == 1 ? "" : "s");
	nr_html_element(&head, "code", NULL, e->dir);
	nr_str_add(&head, "</p>\n");
	nr_html_text(&title, v->title);
	news->head = nr_str_take(&head);
	news->title = nr_str_take(&title);
}

void nr_follow_study(struct nr_served *e, const struct nr_catalogue *c, struct nr_news *news)
{
	char path[PATH_MAX];
	*news = (struct nr_news){ 0 };
	if (!e->view && !(e->view = calloc(1, sizeof *e->view))) return;
	struct nr_study_view *v = e->view;
	if (access(e->dir, F_OK)) {
		news->status = (struct nr_status){ .state = NR_GONE, .share = NAN, .words = "its folder is gone" };
		return;
	}
	snprintf(path, sizeof path, "%s/study.yaml", e->dir);
	if (newer(path, &v->read) || !v->arena) {
		read_study(v, path);
		say_what(v, e, news);
		news->page = true;
	}
	snprintf(path, sizeof path, "%s/study.lock", e->dir);
	const bool held = nr_file_locked(path);
	news->page |= held != v->held;
	v->held = held;
	news->page |= place_runs(v, e, c);
	news->page |= read_marks(v, e->dir);
	snprintf(path, sizeof path, "%s/table.json", e->dir);
	if (newer(path, &v->tabled)) {
		nr_str_release(&v->table);
		nr_study_table(&v->table, path, v);
		news->page = true;
	}
	say_status(v, e->dir, &news->status);
	snprintf(news->status.headline, sizeof news->status.headline, "%s", v->headline);
	struct nr_str body = { 0 };
	nr_study_body(&body, v);
	news->body = nr_str_take(&body);
}
