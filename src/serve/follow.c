/* Following a run: see follow.h. metrics.csv only grows, whole lines at a time, until a resume cuts it. */
#include "serve/follow.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "draw/html.h"
#include "report/curves.h"
#include "report/microscope.h"
#include "report/runfolder.h"

enum { HEADER = 16 << 10, TAIL = 16 << 10, AT_ONCE = 128 << 10, EVENTS = 1 << 20 };

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

void nr_json_text(struct nr_str *s, const char *text)
{
	json_t *o = json_string(text);
	char *line = o ? nr_json_dump(o, JSON_ENCODE_ANY) : NULL;
	nr_str_add(s, line ? line : "\"?\"");
	if (o && !line) s->failed = true;
	free(line);
	json_decref(o);
}

void nr_href(struct nr_str *s, const char *before, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/";
	nr_str_add(s, before);
	for (; *name; name++) {
		if (strchr(plain, *name)) nr_str_add_n(s, name, 1);
		else nr_str_printf(s, "%%%02X", (unsigned char)*name);
	}
}

void nr_news_release(struct nr_news *n)
{
	nr_str_release(&n->rows);
	free(n->title);
	free(n->head);
	free(n->body);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static int open_in(const char *dir, const char *name, struct stat *st)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path) return -1;
	const int fd = nr_file_open(path, NULL);
	if (fd < 0 || !fstat(fd, st)) return fd;
	close(fd);
	return -1;
}

/* Bytes from `from` on, at most `most`, ended by a zero; the caller frees them. */
static char *read_part(int fd, off_t from, size_t most, size_t *size)
{
	char *text = malloc(most + 1);
	size_t n = 0;
	for (ssize_t k; text && n < most && (k = pread(fd, text + n, most - n, from + (off_t)n)) > 0;) n += (size_t)k;
	if (text) text[n] = 0;
	*size = n;
	return text;
}

/* ---- rows of metrics.csv --------------------------------------------------------------------------------------------------- */

/* The first numbers are step, epoch and seconds; what is empty or no finite number becomes null. */
static void add_row(struct nr_str *s, struct nr_follow *f, char *line)
{
	double *first[] = { &f->step, &f->epoch, &f->seconds };
	char digits[64];
	int i = 0;
	nr_str_add(s, s->len ? ",[" : "[");
	for (char *cell = line, *end; cell; cell = end, i++) {
		double v = NAN;
		end = strchr(cell, ',');
		if (end) *end++ = 0;
		if (!nr_parse_double(cell, &v) || !isfinite(v)) v = NAN;
		if (i < 3 && !isnan(v)) *first[i] = v;
		if (i == f->head && !isnan(v)) f->head_value = v;
		nr_str_add(s, i ? "," : "");
		nr_str_add(s, isnan(v) ? "null" : nr_double_text(v, false, digits, sizeof digits));
	}
	nr_str_add(s, "]");
}

/* From the last line: where the run stands. */
static void read_last(int fd, struct nr_follow *f, off_t size)
{
	size_t n = 0;
	const off_t from = size > TAIL ? size - TAIL : 0;
	char *text = read_part(fd, from, (size_t)(size - from), &n);
	while (n && text[n - 1] != '\n') text[--n] = 0;
	f->seen = from + (off_t)n;
	if (n) text[--n] = 0;
	char *line = n ? strchr(text, '\n') : NULL;      /* the first may be a part of one, or the header */
	for (struct nr_str ignored = { 0 }; line; line = strchr(line, '\n')) {
		char *end = strchr(++line, '\n');
		if (end) *end = 0;
		add_row(&ignored, f, line);
		nr_str_release(&ignored);
		line = end;
		if (end) *end = '\n';
		else break;
	}
	free(text);
}

/* The column of the header that says best how good the run is. */
static void find_headline(struct nr_follow *f, char *header)
{
	int best = NR_RANK_LOSS, i = 0;
	f->head = -1;
	f->head_value = (double)NAN;
	for (char *name = header, *end; name; name = end, i++) {
		end = strchr(name, ',');
		if (end) *end++ = 0;
		const struct nr_curve_kind k = nr_curve_kind(name);
		if (k.rank >= best || !k.title) continue;
		best = k.rank;
		f->head = i;
		f->head_factor = k.factor;
		snprintf(f->head_name, sizeof f->head_name, "%s", k.title);
		f->head_name[0] = (char)tolower((unsigned char)f->head_name[0]);
	}
}

static void begin(int fd, struct nr_follow *f, const struct stat *st)
{
	size_t n = 0;
	char *text = read_part(fd, 0, HEADER, &n);
	char *end = text ? memchr(text, '\n', n) : NULL;
	if (end && memchr(text, 0, (size_t)(end - text))) end = NULL;
	if (end) *end = 0, find_headline(f, text);
	f->open = end;
	f->broken = !end && n;
	f->seen = 0;
	f->inode = st->st_ino;
	free(text);
	if (f->open) read_last(fd, f, st->st_size);
}

/* Lines that were appended; so many that nobody drew them live are left to a new beginning. */
static void read_new(int fd, struct nr_follow *f, const struct stat *st, struct nr_news *news)
{
	size_t n = 0;
	if (st->st_size - f->seen > AT_ONCE) {
		read_last(fd, f, st->st_size);
		news->anew = true;
		return;
	}
	char *text = read_part(fd, f->seen, (size_t)(st->st_size - f->seen), &n);
	while (n && text[n - 1] != '\n') text[--n] = 0;
	f->seen += (off_t)n;
	for (char *line = text, *end; n && (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (*line) add_row(&news->rows, f, line);
	}
	free(text);
}

static void follow_metrics(struct nr_served *e, struct nr_news *news)
{
	struct nr_follow *f = &e->follow;
	struct stat st;
	const int fd = open_in(e->dir, "metrics.csv", &st);
	if (fd < 0) {
		news->anew = f->open;
		f->open = f->broken = false;
		return;
	}
	const bool same = f->open && st.st_ino == f->inode && st.st_size >= f->seen;
	if (!same) {
		const bool was = f->open;
		begin(fd, f, &st);
		news->anew = was || f->open;
	} else if (st.st_size > f->seen) read_new(fd, f, &st, news);
	f->changed = st.st_mtim;
	close(fd);
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

static void take_event(struct nr_follow *f, const json_t *o)
{
	const char *what = json_string_value(json_object_get(o, "event")), *status = json_string_value(json_object_get(o, "status"));
	if (!what) return;
	if (!strcmp(what, "start") || !strcmp(what, "resume")) f->stop[0] = 0;
	if (!strcmp(what, "stop")) snprintf(f->stop, sizeof f->stop, "%s", status && *status ? status : "stopped");
}

/* true: there is such a file. */
static bool follow_events(struct nr_served *e)
{
	struct nr_follow *f = &e->follow;
	struct stat st;
	size_t n = 0;
	const int fd = open_in(e->dir, "events.jsonl", &st);
	if (fd < 0) return false;
	if (st.st_size < f->events_seen) f->events_seen = 0, f->stop[0] = 0;
	if (st.st_size - f->events_seen > EVENTS) f->events_seen = st.st_size - EVENTS;
	char *text = st.st_size > f->events_seen ? read_part(fd, f->events_seen, (size_t)(st.st_size - f->events_seen), &n) : NULL;
	while (n && text[n - 1] != '\n') text[--n] = 0;
	f->events_seen += (off_t)n;
	for (char *line = text, *end; n && (end = strchr(line, '\n')); line = end + 1) {
		json_t *o = nr_json_parse(line, (size_t)(end - line), "events.jsonl", NULL);
		take_event(f, o);
		json_decref(o);
	}
	free(text);
	close(fd);
	return true;
}

/* ---- settings -------------------------------------------------------------------------------------------------------------- */

static void add_fact(struct nr_str *s, const char *name, const char *tag, const char *text)
{
	if (!text || !*text) return;
	nr_html_element(s, "dt", NULL, name);
	nr_str_add(s, "<dd>");
	nr_html_element(s, tag, NULL, text);
	nr_str_add(s, "</dd>\n");
}

static void add_settings(struct nr_served *e, const struct nr_config *c, const json_t *env, struct nr_news *news)
{
	const char *norm = nr_config_find(c, "norm"), *model = nr_config_find(c, "model"), *data = nr_config_find(c, "data");
	struct nr_str head = { 0 }, title = { 0 };
	nr_str_add(&head, "<dl>\n");
	add_fact(&head, "norm plan", "code", norm && *norm ? norm : json_string_value(json_object_get(env, "norms")));
	add_fact(&head, "model", "code", model);
	add_fact(&head, "data", "span", data);
	add_fact(&head, "seed", "span", nr_config_find(c, "seed"));
	add_fact(&head, "command", "code", json_string_value(json_object_get(env, "command")));
	add_fact(&head, "started", "span", json_string_value(json_object_get(env, "started")));
	add_fact(&head, "machine", "span", json_string_value(json_object_get(env, "cpu")));
	add_fact(&head, "folder", "code", e->dir);
	nr_str_add(&head, "</dl>\n");
	nr_html_element(&title, "span", "plan", norm && *norm ? norm : "its own norms");
	nr_html_printf(&title, " %s%s%s", model ? model : "", model && data ? ", " : "", data ? data : "");
	news->head = nr_str_take(&head);
	news->title = nr_str_take(&title);
}

static double number_of(const struct nr_config *c, const char *key)
{
	double v = 0;
	const char *text = nr_config_find(c, key);
	return text && nr_parse_double(text, &v) && v > 0 && isfinite(v) ? v : 0;
}

static void follow_settings(struct nr_served *e, struct nr_news *news)
{
	struct nr_follow *f = &e->follow;
	struct stat st;
	struct nr_config c = { 0 };
	size_t n = 0;
	const int fd = open_in(e->dir, "config.yaml", &st);
	if (fd < 0) return;
	if (st.st_mtim.tv_sec != f->settings.tv_sec || st.st_mtim.tv_nsec != f->settings.tv_nsec) {
		char path[PATH_MAX];
		struct nr_arena *arena = nr_arena_make();
		char *text = read_part(fd, 0, NR_YAML_MAX_BYTES, &n);
		snprintf(path, sizeof path, "%s/env.json", e->dir);
		json_t *env = nr_json_load(path, NULL);
		f->settings = st.st_mtim;
		if (arena && text && !nr_config_parse(text, arena, &c)) {
			f->total_steps = number_of(&c, "steps");
			f->total_epochs = number_of(&c, "epochs");
			add_settings(e, &c, env, news);
			news->page = true;
		}
		json_decref(env);
		free(text);
		nr_arena_free(arena);
	}
	close(fd);
}

/* ---- state ------------------------------------------------------------------------------------------------------------------ */

static void say_state(const struct nr_served *e, bool events, struct nr_status *s)
{
	char path[PATH_MAX], when[32];
	const struct nr_follow *f = &e->follow;
	const bool held = events && snprintf(path, sizeof path, "%s/events.jsonl", e->dir) < (int)sizeof path && nr_file_locked(path);
	const char *words = f->stop;
	if (held) s->state = NR_RUNNING, words = "running";
	else if (!strcmp(f->stop, "done") || !strcmp(f->stop, "stopped early")) s->state = NR_DONE;
	else if (f->stop[0]) s->state = NR_STOPPED;
	else if (!f->open) s->state = NR_WAITING, words = f->broken ? "its metrics.csv cannot be read" : "no records yet";
	else {
		s->state = NR_UNFINISHED;
		snprintf(s->words, sizeof s->words, "not finished since %s", nr_time_text(f->changed.tv_sec, when, sizeof when));
		return;
	}
	snprintf(s->words, sizeof s->words, "%s", words);
}

static void say_progress(const struct nr_follow *f, struct nr_status *s)
{
	char left[32];
	s->share = (double)NAN;
	if (s->state == NR_DONE) s->share = 1;
	else if (f->total_steps > 0) s->share = f->step / f->total_steps;
	else if (f->total_epochs > 0) s->share = f->epoch / f->total_epochs;
	if (!isnan(s->share)) s->share = fmin(1, fmax(0, s->share));
	if (!f->open || f->step <= 0) return;
	int n = snprintf(s->text, sizeof s->text, "step %.0f, epoch %.2f", f->step, f->epoch);
	if (f->seconds > 0 && n < (int)sizeof s->text)
		n += snprintf(s->text + n, sizeof s->text - (size_t)n, ", %s", nr_duration_text(f->seconds, left, sizeof left));
	if (s->state == NR_RUNNING && s->share > 0.001 && n < (int)sizeof s->text)
		snprintf(s->text + n, sizeof s->text - (size_t)n, ", %s left",
			nr_duration_text(f->seconds * (1 - s->share) / s->share, left, sizeof left));
}

static void say_headline(const struct nr_follow *f, struct nr_status *s)
{
	if (!f->open || f->head < 0 || isnan(f->head_value)) return;
	const bool share = f->head_factor > 1;
	snprintf(s->headline, sizeof s->headline, share ? "%s %.2f %%" : "%s %.4g", f->head_name, f->head_factor * f->head_value);
}

/* ---- the microscope --------------------------------------------------------------------------------------------------------- */

/* Drawn anew at most every ten seconds, and not from a file so long that it would hold up the others. */
static void follow_microscope(struct nr_served *e, struct nr_news *news)
{
	enum { SECONDS = 10, MOST = 16 << 20 };
	struct nr_follow *f = &e->follow;
	struct stat st;
	const double now = nr_clock();
	const int fd = now < f->microscope_next ? -1 : open_in(e->dir, "microscope.csv", &st);
	if (fd < 0) return;
	close(fd);
	if (st.st_size == f->microscope_size || st.st_size > MOST) return;
	struct nr_str body = { 0 };
	struct nr_arena *arena = nr_arena_make();
	if (arena) nr_microscope_live(&body, e->dir, arena);
	nr_arena_free(arena);
	f->microscope_next = now + SECONDS;
	f->microscope_size = st.st_size;
	news->body = nr_str_take(&body);
	news->page |= news->body != NULL;
}

void nr_follow_run(struct nr_served *e, struct nr_news *news)
{
	*news = (struct nr_news){ 0 };
	if (access(e->dir, F_OK)) {
		e->follow.open = false;
		news->status = (struct nr_status){ .state = NR_GONE, .share = NAN, .words = "its folder is gone" };
		return;
	}
	follow_settings(e, news);
	follow_metrics(e, news);
	const bool events = follow_events(e);
	say_state(e, events, &news->status);
	say_progress(&e->follow, &news->status);
	say_headline(&e->follow, &news->status);
	follow_microscope(e, news);
	news->status.when = e->follow.changed.tv_sec;
}
