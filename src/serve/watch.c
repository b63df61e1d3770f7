/* The watcher: looks at files without the lock, then says what it found with it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/follow.h"
#include "serve/follow_study.h"
#include "serve/pages.h"
#include "serve/server.h"

/* Seconds between looks: at what is running or has just changed; at what is over. */
static const double OFTEN = 0.9, SELDOM = 10;

static void replace(char **old, char **with)
{
	if (!*with) return;
	free(*old);
	*old = *with;
	*with = NULL;
}

static bool same_status(const struct nr_status *a, const struct nr_status *b)
{
	return a->state == b->state && !strcmp(a->words, b->words) && !strcmp(a->text, b->text) && !strcmp(a->headline, b->headline) &&
		(a->share == b->share || (isnan(a->share) && isnan(b->share)));
}

/* The names of arms, for the curves of the study. */
static void label_runs(struct nr_server *s, const struct nr_study_view *v)
{
	for (int64_t i = 0; i < v->arms * v->seeds * v->stages; i++) {
		const int64_t arm = i / v->stages / v->seeds;
		if (!v->cell[i].run || v->cell[i].run->label) continue;
		struct nr_served *run = nr_catalogue_find(&s->catalogue, v->cell[i].run->name);
		if (!run) continue;
		run->label = nr_arena_strdup(s->catalogue.arena, v->arm[arm].name);
		run->number = arm;
		run->turn = i % v->stages;
	}
}

static void tell_rows(struct nr_server *s, const struct nr_served *e, const struct nr_str *rows)
{
	struct nr_str data = { 0 };
	nr_str_add(&data, "{\"name\":");
	nr_json_text(&data, e->name);
	nr_str_printf(&data, ",\"rows\":[%s]}", nr_str_text(rows));
	if (!data.failed) nr_backlog_add(&s->backlog, e, false, "rows", nr_str_text(&data));
	nr_str_release(&data);
}

static void tell_name(struct nr_server *s, const struct nr_served *e, const char *kind)
{
	struct nr_str data = { 0 };
	nr_str_add(&data, "{\"name\":");
	nr_json_text(&data, e->name);
	nr_str_add(&data, "}");
	nr_backlog_add(&s->backlog, e, e->part_of == NULL, kind, nr_str_text(&data));
	nr_str_release(&data);
}

/* Who begins anew needs curves that were made after it. */
static void outdate(struct nr_served *e)
{
	e->made[NR_MAKE_DATA].at = -INFINITY;
	if (e->part_of) e->part_of->made[NR_MAKE_DATA].at = -INFINITY;
}

static void publish(struct nr_server *s, struct nr_served *e, struct nr_news *news, bool first)
{
	const bool status = !same_status(&e->status, &news->status), state = e->status.state != news->status.state;
	if (!status && !news->page && !news->anew && !news->rows.len && !news->body) return;
	pthread_mutex_lock(&s->lock);
	e->status = news->status;
	e->shown = e->follow.open ? e->follow.seen : 0;
	replace(&e->title, &news->title);
	replace(&e->head, &news->head);
	replace(&e->body, &news->body);
	e->version += status || news->page || news->anew || news->rows.len > 0;
	if (e->view && news->page) label_runs(s, e->view);
	if (news->anew) outdate(e);
	if (news->anew && !first) tell_name(s, e, "reload");
	else if (news->rows.len && !first) tell_rows(s, e, &news->rows);
	if (status && !first) {
		struct nr_str data = { 0 };
		nr_status_json(&data, e);
		nr_backlog_add(&s->backlog, e, e->part_of == NULL, "state", nr_str_text(&data));
		nr_str_release(&data);
	}
	if ((news->page || state) && !first) tell_name(s, e, "page");
	pthread_mutex_unlock(&s->lock);
}

static void look(struct nr_server *s, struct nr_served *e, double now, bool first)
{
	struct nr_news news;
	if (now < e->follow.next) return;
	if (e->study) nr_follow_study(e, &s->catalogue, &news);
	else nr_follow_run(e, &news);
	const bool lively = news.rows.len || news.status.state == NR_RUNNING || news.status.state == NR_WAITING;
	publish(s, e, &news, first);
	if (lively) e->follow.live = now;
	e->follow.next = now + (now - e->follow.live < 60 ? OFTEN : SELDOM);
	nr_news_release(&news);
}

/* New folders; seldom if there are many to go through. */
static void scan(struct nr_server *s)
{
	const double begun = nr_clock();
	const int64_t before = s->catalogue.count, count = nr_catalogue_scan(&s->catalogue);
	for (int64_t i = before; i < count; i++) {              /* complete before others can see it */
		struct nr_served *e = s->catalogue.entry[i];
		e->follow.live = begun;
		if (!e->study) look(s, e, begun, true);
	}
	pthread_mutex_lock(&s->lock);
	s->catalogue.count = count;
	for (int64_t i = before; i < count && s->daemon[0]; i++) tell_name(s, s->catalogue.entry[i], "page");
	pthread_mutex_unlock(&s->lock);
	const double took = nr_clock() - begun;
	s->next_scan = nr_clock() + fmax(3, 50 * took);
}

void nr_watch(struct nr_server *s)
{
	const double now = nr_clock();
	if (now >= s->next_scan) scan(s);
	for (int studies = 0; studies < 2; studies++)           /* a study's state is made of its runs' */
		for (int64_t i = 0; i < s->catalogue.count; i++)
			if (s->catalogue.entry[i]->study == (studies == 1)) look(s, s->catalogue.entry[i], now, false);
	nr_http_wake(s);
}
