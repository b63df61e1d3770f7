/* The maker: texts that take longer than a request should hold up the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/report.h"
#include "serve/data.h"
#include "serve/pages.h"
#include "serve/policy.h"
#include "serve/server.h"

/* Curves are good while the events after them are there; a report until files change, and for a time that bounds its cost. */
static const double DATA_AGE = 10, REPORT_AGE = 10, REPORT_COST = 20;
enum { DATA_EVENTS = NR_BACKLOG_EVENTS / 4 };

bool nr_made_fresh(const struct nr_server *s, const struct nr_served *e, enum nr_making what)
{
	const struct nr_made *m = &e->made[what];
	const double age = nr_clock() - m->at;
	if (!m->response) return false;
	if (what == NR_MAKE_DATA) return age < DATA_AGE && m->mark >= s->backlog.first && s->backlog.next - m->mark < DATA_EVENTS;
	return (m->version == e->version && m->code == MHD_HTTP_OK) || age < fmax(REPORT_AGE, REPORT_COST * m->took);
}

/* By stage, arm and seed, as the study has them. */
static int by_place(const void *a, const void *b)
{
	const struct nr_data_run *x = a, *y = b;
	if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
	if (x->number != y->number) return x->number < y->number ? -1 : 1;
	return (x->seed > y->seed) - (x->seed < y->seed);
}

/* The run itself, or the runs of a study; in the arena. */
static struct nr_data_run *runs_of(const struct nr_server *s, const struct nr_served *e, struct nr_arena *arena, int64_t *count)
{
	struct nr_data_run *run = nr_arena_alloc(arena, (size_t)(s->catalogue.count + 1) * sizeof *run);
	*count = 0;
	for (int64_t i = 0; run && i < s->catalogue.count; i++) {
		const struct nr_served *r = s->catalogue.entry[i];
		if (r->study || (r != e && r->part_of != e)) continue;
		run[(*count)++] = (struct nr_data_run){ .name = r->name, .dir = r->dir, .label = r == e ? NULL : r->label,
			.stage = r->stage, .seed = r->seed, .number = r == e ? 0 : r->number, .turn = r->turn, .bytes = r->shown };
	}
	if (run) qsort(run, (size_t)*count, sizeof *run, by_place);
	return run;
}

/* A study has a page of its own; else the run alone. */
static void report_runs(struct nr_list *list, const char *study, const struct nr_data_run *run, int64_t count, struct nr_arena *arena)
{
	list->item = nr_arena_alloc(arena, sizeof *list->item);
	char *dir = study || count ? nr_arena_strdup(arena, study ? study : run[0].dir) : NULL;
	if (list->item && dir) list->item[list->count++] = dir;
}

static unsigned make_report(const struct nr_server *s, const char *study, const struct nr_data_run *run, int64_t count,
	struct nr_arena *arena, struct nr_str *page, struct nr_str *policy)
{
	struct nr_error why = { 0 };
	char text[1024];
	struct nr_report report = { .title = "", .command = s->conf->command, .commands = s->conf->commands,
		.made = time(NULL) };
	report_runs(&report.runs, study, run, count, arena);
	if (!nr_report_page(&report, page, &why)) {
		nr_report_policy(policy, nr_str_text(page));
		return MHD_HTTP_OK;
	}
	nr_str_release(page);
	nr_page_note(page, "There is no report", nr_error_text(&why, text, sizeof text));
	nr_str_add(policy, nr_live_policy);
	return MHD_HTTP_NOT_FOUND;
}

static void make(struct nr_server *s, struct nr_served *e, enum nr_making what, struct nr_arena *arena)
{
	struct nr_made *m = &e->made[what];
	struct nr_str text = { 0 }, policy = { 0 };
	char mark[32];
	int64_t count;
	unsigned code = MHD_HTTP_OK;
	const struct nr_data_run *run = runs_of(s, e, arena, &count);           /* until here with the lock */
	const char *study = e->study ? nr_arena_strdup(arena, e->dir) : NULL;
	const uint64_t version = e->version, next = s->backlog.next;
	nr_backlog_mark(&s->backlog, next, mark, sizeof mark);
	pthread_mutex_unlock(&s->lock);

	const double begun = nr_clock();
	if (!run) text.failed = true;
	else if (what == NR_MAKE_DATA) nr_data(&text, mark, run, count);
	else code = make_report(s, study, run, count, arena, &text, &policy);
	struct MHD_Response *response = what == NR_MAKE_DATA ? nr_http_response(&text, "application/json", NULL)
							     : nr_http_response(&text, "text/html; charset=utf-8", nr_str_text(&policy));
	nr_str_release(&policy);

	pthread_mutex_lock(&s->lock);
	if (m->response) MHD_destroy_response(m->response);
	*m = (struct nr_made){ .response = response, .code = code, .version = version, .mark = next, .at = nr_clock(),
		.took = nr_clock() - begun };
}

void *nr_maker(void *server)
{
	struct nr_server *s = server;
	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		struct nr_served *e = NULL;
		int what = 0;
		for (int64_t i = 0; i < s->catalogue.count && !e; i++)
			for (what = 0; what < NR_MAKINGS; what++)
				if (s->catalogue.entry[i]->made[what].wanted) {
					e = s->catalogue.entry[i];
					break;
				}
		if (!e) {
			pthread_cond_wait(&s->work, &s->lock);
			continue;
		}
		struct nr_arena *arena = nr_arena_make();
		if (arena) make(s, e, (enum nr_making)what, arena);
		nr_arena_free(arena);
		e->made[what].wanted = false;
		pthread_mutex_unlock(&s->lock);
		nr_http_wake(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
