/* Adding descriptors to the registries: see norma/plugin.h. All is checked before anything is added. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/real.h"
#include "base/registry.h"
#include "norma/nn.h"
#include "plugin/plugin.h"

struct need { size_t offset; const char *field; };
#define NEED(type, f) { offsetof(struct type, f), #f }
static const struct need of_norm[] = { NEED(nr_norm, title), NEED(nr_norm, about),
	NEED(nr_norm, options), NEED(nr_norm, build), { 0, NULL } };
static const struct need of_model[] = { NEED(nr_model, title), NEED(nr_model, cite), NEED(nr_model, options), NEED(nr_model, presets),
	NEED(nr_model, namings), NEED(nr_model, embed), NEED(nr_model, encode), NEED(nr_model, pool), NEED(nr_model, norms.norm),
	NEED(nr_model, norms.placement), { 0, NULL } };
static const struct need of_task[] = { NEED(nr_task, title), NEED(nr_task, cite), NEED(nr_task, command), NEED(nr_task, summary),
	NEED(nr_task, usage), NEED(nr_task, about), NEED(nr_task, sample), NEED(nr_task, of_step), NEED(nr_task, of_eval),
	NEED(nr_task, settle), NEED(nr_task, record), NEED(nr_task, ready), NEED(nr_task, bind), NEED(nr_task, evaluate), { 0, NULL } };
static const struct need of_dataset[] = { NEED(nr_dataset, title), NEED(nr_dataset, cite), NEED(nr_dataset, licence),
	NEED(nr_dataset, facts), NEED(nr_dataset, open), { 0, NULL } };
static const struct need of_optimizer[] = { NEED(nr_optimizer, title), NEED(nr_optimizer, cite), NEED(nr_optimizer, formula),
	NEED(nr_optimizer, slots), NEED(nr_optimizer, scratch), NEED(nr_optimizer, step), { 0, NULL } };
static const struct need of_schedule[] = { NEED(nr_schedule_rule, formula), NEED(nr_schedule_rule, at), { 0, NULL } };
static const struct need of_op[] = { NEED(nr_op, shape), NEED(nr_op, forward), NEED(nr_op, try_case), NEED(nr_op, cases), { 0, NULL } };

static const void *const *norms(void) { return (const void *const *)nr_norms(); }
static const void *const *models(void) { return (const void *const *)nr_models(); }
static const void *const *tasks(void) { return (const void *const *)nr_tasks(); }
static const void *const *datasets(void) { return (const void *const *)nr_datasets(); }
static const void *const *optimizers(void) { return (const void *const *)nr_optimizers(); }
static const void *const *schedules(void) { return (const void *const *)nr_schedules(); }
static const void *const *ops(void) { return (const void *const *)nr_ops(); }

static const struct kind {                  /* in the order of nr_registry and of the lists of a plug-in */
	const char *word;
	size_t list, size;
	const void *const *(*all)(void);
	const struct need *needs;
} kinds[NR_REGISTRIES] = {
	{ "norm", offsetof(struct nr_plugin, norms), sizeof(struct nr_norm), norms, of_norm },
	{ "model", offsetof(struct nr_plugin, models), sizeof(struct nr_model), models, of_model },
	{ "task", offsetof(struct nr_plugin, tasks), sizeof(struct nr_task), tasks, of_task },
	{ "data set", offsetof(struct nr_plugin, datasets), sizeof(struct nr_dataset), datasets, of_dataset },
	{ "optimizer", offsetof(struct nr_plugin, optimizers), sizeof(struct nr_optimizer), optimizers, of_optimizer },
	{ "schedule", offsetof(struct nr_plugin, schedules), sizeof(struct nr_schedule_rule), schedules, of_schedule },
	{ "op", offsetof(struct nr_plugin, ops), sizeof(struct nr_op), ops, of_op },
};

static const void *const *list_of(const struct nr_plugin *p, enum nr_registry kind)
{
	const void *const *list;
	memcpy(&list, (const char *)p + kinds[kind].list, sizeof list);
	return list;
}

static const void *field(const void *descriptor, size_t offset)
{
	const void *p;
	memcpy(&p, (const char *)descriptor + offset, sizeof p);
	return p;
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

/* The i-th word that this one can be called by; NULL: there are no more. Every descriptor begins with its name. */
static const char *word_of(enum nr_registry kind, const void *d, int i)
{
	if (!i) return field(d, 0);
	if (kind == NR_OF_NORMS && i == 1) return ((const struct nr_norm *)d)->alias;
	if (kind == NR_OF_TASKS && i == 1) return ((const struct nr_task *)d)->command;
	if (kind == NR_OF_MODELS) return ((const struct nr_model *)d)->presets[i - 1].name;
	return NULL;
}

static bool answers_to(enum nr_registry kind, const void *d, const char *word)
{
	const char *own;
	for (int i = 0; (own = word_of(kind, d, i)); i++)
		if (!strcmp(own, word)) return true;
	return false;
}

static bool is_name(const char *s)
{
	if (!s || !isalpha((unsigned char)*s)) return false;
	while (isalnum((unsigned char)*s) || (*s && strchr("_-./", *s))) s++;
	return !*s;
}

__attribute__((format(printf, 5, 6))) static int refuse(enum nr_registry kind, const void *d, struct nr_error *err, enum nr_err code,
	const char *fmt, ...)
{
	char what[64], detail[256];
	const char *name = field(d, 0);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	snprintf(what, sizeof what, "cannot register the %s", kinds[kind].word);
	return nr_fail(err, code, what, name ? name : "", "%s", detail);
}

/* before: those of the same table that come first. */
static int check_words(enum nr_registry kind, const void *d, const void *const *before, struct nr_error *err)
{
	for (int i = 0; !i || word_of(kind, d, i); i++) {
		const char *word = word_of(kind, d, i);
		if (!is_name(word)) {
			refuse(kind, d, err, NR_ENAME, "'%s' is no name", word ? word : "");
			return nr_hint(err, "begin with a letter; letters, digits, _ - . and / may follow");
		}
		bool taken = false;
		for (const void *const *o = kinds[kind].all(); *o; o++) {
			if (*o == d) {
				refuse(kind, d, err, NR_ENAME, "it is registered already");
				return nr_hint(err, "register a table once");
			}
			taken |= answers_to(kind, *o, word);
		}
		for (const void *const *o = before; *o != d; o++) taken |= answers_to(kind, *o, word);
		if (!taken) continue;
		refuse(kind, d, err, NR_ENAME, "the name '%s' is taken", word);
		return nr_hint(err, "give it another name");
	}
	return NR_OK;
}

/* ---- the rest of a descriptor ---------------------------------------------------------------------------------------------- */

static int check_fields(enum nr_registry kind, const void *d, struct nr_error *err)
{
	for (const struct need *n = kinds[kind].needs; n->field; n++)
		if (!field(d, n->offset)) {
			refuse(kind, d, err, NR_EVALUE, "its .%s is missing", n->field);
			return nr_hint(err, "if there is nothing to say, give an empty text or list");
		}
	if (kind == NR_OF_TASKS) {
		const struct nr_task *t = d;
		if (t->settings_size > NR_TASK_SETTINGS)
			return refuse(kind, d, err, NR_ELIMIT, "its settings are larger than %d bytes", NR_TASK_SETTINGS);
		if (nr_task_metrics(t->of_step) > NR_TASK_METRICS || nr_task_metrics(t->of_eval) > NR_TASK_METRICS)
			return refuse(kind, d, err, NR_ELIMIT, "it measures more than %d things", NR_TASK_METRICS);
		if (t->decides < 0 || t->decides >= nr_task_metrics(t->of_eval))
			return refuse(kind, d, err, NR_EVALUE, "its .decides is no place in .of_eval");
	}
	if (kind == NR_OF_DATASETS) {
		const struct nr_dataset *s = d;
		const bool whole = s->kind == NR_PICTURES ? s->get && s->label : s->kind != NR_TEXTS || s->text;
		if (!whole)
			return refuse(kind, d, err, NR_EVALUE, "its %s is missing", s->kind == NR_PICTURES ? ".get or .label" : ".text");
		if (s->folder && !s->files) return refuse(kind, d, err, NR_EVALUE, "a data set with a .folder needs .files");
	}
	if (kind == NR_OF_OPTIMIZERS && ((const struct nr_optimizer *)d)->own_size > nr_optim_own_left())
		return refuse(kind, d, err, NR_ELIMIT, "there is no room left for options of its own");
	return NR_OK;
}

static int check_kind(const struct nr_plugin *p, enum nr_registry kind, struct nr_error *err)
{
	int n = 0;
	for (const void *const *d = list_of(p, kind); d && *d; d++, n++) {
		if (kind == NR_OF_MODELS && !((const struct nr_model *)*d)->presets && check_fields(kind, *d, err)) return err->code;
		if (check_words(kind, *d, list_of(p, kind), err) || check_fields(kind, *d, err)) return err->code;
		if (n >= nr_registry_room(kind)) return refuse(kind, *d, err, NR_ELIMIT, "there are too many");
	}
	return NR_OK;
}

static int check_head(const struct nr_plugin *p, struct nr_error *err)
{
	if (p->version != NR_PLUGIN_VERSION)
		nr_fail(err, NR_EFORMAT, "cannot register", NULL, "it has version %u of plug-ins, this norma has %d", p->version,
			NR_PLUGIN_VERSION);
	else if (p->real_size != sizeof(real))
		nr_fail(err, NR_EFORMAT, "cannot register", NULL, "it was compiled for numbers of %u bytes, this library has %zu",
			p->real_size, sizeof(real));
	for (int i = 0; i < NR_REGISTRIES && !err->code; i++)
		if (p->size[i] != kinds[i].size)
			nr_fail(err, NR_EFORMAT, "cannot register", NULL,
				"it was made with other headers: a %s has %u bytes there, %zu here", kinds[i].word, p->size[i],
				kinds[i].size);
	if (!err->code) return NR_OK;
	return nr_hint(err, sizeof(real) == sizeof(double) ? "compile it again, with pkg-config --cflags norma64"
							  : "compile it again, with pkg-config --cflags norma");
}

int nr_register(const struct nr_plugin *p, struct nr_error *err)
{
	struct nr_error own = { 0 };
	if (!err) err = &own;
	if (check_head(p, err)) return err->code;
	for (int k = 0; k < NR_REGISTRIES; k++)
		if (check_kind(p, k, err)) return err->code;
	for (int k = 0; k < NR_REGISTRIES; k++)
		for (const void *const *d = list_of(p, k); d && *d; d++)
			if (nr_registry_add(k, kinds[k].all(), *d)) return refuse(k, *d, err, NR_EMEMORY, "out of memory");
	return NR_OK;
}
