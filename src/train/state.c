/* Where a run was, as the JSON text of a checkpoint's norma.state. Nothing in it is taken on trust: a step that was lost or changed
 * would go on from other weights than those of that step. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "train/checkpoint.h"

enum kind { STEP, COUNT, NUMBER, NUMBERS };         /* STEP: 0 to the steps of the run; COUNT: not negative */
static const struct field { const char *name; enum kind kind; size_t at; bool newer; } fields[] = { /* newer: 0.2.0 has not written it */
	{ "step", STEP, offsetof(struct nr_progress_state, step) },
	{ "best_step", STEP, offsetof(struct nr_progress_state, best_step) },
	{ "stale", COUNT, offsetof(struct nr_progress_state, stale) },
	{ "eval_samples", COUNT, offsetof(struct nr_progress_state, eval_samples) },
	{ "seconds", NUMBER, offsetof(struct nr_progress_state, seconds) },
	{ "loss_sum", NUMBER, offsetof(struct nr_progress_state, loss_sum) },
	{ "seen", NUMBER, offsetof(struct nr_progress_state, seen) },
	{ "train_loss", NUMBER, offsetof(struct nr_progress_state, train_loss) },
	{ "best", NUMBER, offsetof(struct nr_progress_state, best) },
	{ "sum", NUMBERS, offsetof(struct nr_progress_state, sum) },
	{ "train", NUMBERS, offsetof(struct nr_progress_state, train) },
	{ "last", NUMBERS, offsetof(struct nr_progress_state, last) },
	{ "best_held", NUMBER, offsetof(struct nr_progress_state, best_held), true },
	{ "held", NUMBERS, offsetof(struct nr_progress_state, held), true },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static json_t *number_json(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *field_json(const struct field *f, const void *at)
{
	const double *v = at;
	if (f->kind < NUMBER) return json_integer(*(const int64_t *)at);
	if (f->kind == NUMBER) return number_json(*v);
	json_t *list = json_array();
	for (int i = 0; i < NR_TASK_METRICS; i++)
		if (json_array_append_new(list, number_json(v[i]))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* Numbers are written so that they read back as the same bits. */
char *nr_state_text(const struct nr_progress_state *s)
{
	json_t *j = json_object();
	bool whole = j;
	for (int i = 0; whole && i < FIELDS; i++)
		whole = !json_object_set_new(j, fields[i].name, field_json(&fields[i], (const char *)s + fields[i].at));
	char *text = whole ? nr_json_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
	json_decref(j);
	return text;
}

/* null is a value that was not finite, e.g. a metric that could not be measured. */
static bool read_number(const json_t *x, double *v)
{
	*v = json_is_null(x) ? NAN : json_number_value(x);
	return json_is_null(x) || json_is_number(x);
}

static bool read_field(const struct field *f, const json_t *x, int64_t steps, void *to)
{
	double *v = to;
	if (!x && f->newer) return true;
	if (f->kind < NUMBER) {
		const int64_t n = *(int64_t *)to = json_integer_value(x);
		return json_is_integer(x) && n >= 0 && (f->kind == COUNT || n <= steps);
	}
	if (f->kind == NUMBER) return read_number(x, v);
	bool good = json_is_array(x) && json_array_size(x) <= NR_TASK_METRICS;
	for (size_t i = 0; good && i < json_array_size(x); i++) good = read_number(json_array_get(x, i), &v[i]);
	return good;
}

int nr_state_read(struct nr_progress_state *s, const char *text, const char *path, int64_t steps, struct nr_error *err)
{
	json_t *j = nr_json_parse(text, strlen(text), path, err);
	if (!j) return err->code;
	*s = (struct nr_progress_state){ 0 };
	const char *bad = NULL;
	for (int i = 0; !bad && i < FIELDS; i++)
		if (!read_field(&fields[i], json_object_get(j, fields[i].name), steps, (char *)s + fields[i].at)) bad = fields[i].name;
	if (!bad && s->best_step > s->step) bad = "best_step";
	json_decref(j);
	if (!bad) return NR_OK;
	nr_fail(err, NR_EFORMAT, "cannot resume from", path, "its state is damaged: '%s' is missing or makes no sense", bad);
	return nr_hint(err, "start again, or bring back an earlier copy of the file");
}
