/* Which stage gets which setting: see settings.h. */
#include "study/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static bool same_key(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b)) return false;
	return *a == *b;
}

static bool one_of(const char *key, const char *const *list)
{
	for (; *list; list++)
		if (same_key(key, *list)) return true;
	return false;
}

bool nr_study_reserved(const char *key)
{
	static const char *const ours[] = { "out", "store", "seed", "resume", "force", "json", "threads", "plugin", "allow_changed_plugins",
		NULL };
	return one_of(key, ours);
}

/* What a checkpoint does not settle for the stages after it, and no stage has of its own. */
static bool shared(const char *key)
{
	static const char *const every[] = { "data", "data_root", "workers", NULL };
	return one_of(key, every);
}

const struct nr_option *nr_study_option(const struct nr_study_command *c, const char *key)
{
	for (const struct nr_option *o = c->options; o && o->name; o++)
		if (same_key(o->name, key)) return o;
	return NULL;
}

int nr_settings_add(struct nr_settings *s, const struct nr_setting *one, struct nr_arena *arena)
{
	if (s->count == s->cap) {
		const int64_t cap = s->cap ? 2 * s->cap : 4;
		struct nr_setting *grown = nr_arena_alloc(arena, (size_t)cap * sizeof *grown);
		if (!grown) return NR_EMEMORY;
		if (s->count) memcpy(grown, s->item, (size_t)s->count * sizeof *grown);
		s->item = grown;
		s->cap = cap;
	}
	s->item[s->count++] = *one;
	return NR_OK;
}

bool nr_setting_goes_to(const struct nr_study *study, const struct nr_setting *s, int64_t stage)
{
	if (s->stage) return !strcmp(s->stage, study->stage[stage].name);
	if (!study->stage[stage].command || !nr_study_option(study->stage[stage].command, s->key)) return false;
	for (int64_t i = 0; i < stage && !shared(s->key); i++)
		if (study->stage[i].command && nr_study_option(study->stage[i].command, s->key)) return false;
	return true;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct nr_setting *)a)->key, ((const struct nr_setting *)b)->key);
}

/* A later value replaces an earlier one; keys become those of the table. */
static int merge(const struct nr_study *study, const struct nr_settings *from, int64_t stage, struct nr_settings *to,
	struct nr_arena *arena)
{
	for (int64_t i = 0; i < from->count; i++) {
		struct nr_setting s = from->item[i];
		if (!nr_setting_goes_to(study, &s, stage)) continue;
		const struct nr_option *o = nr_study_option(study->stage[stage].command, s.key);
		if (o) s.key = o->name;
		int64_t k = 0;
		while (k < to->count && strcmp(to->item[k].key, s.key)) k++;
		if (k < to->count) to->item[k] = s;
		else if (nr_settings_add(to, &s, arena)) return NR_EMEMORY;
	}
	return NR_OK;
}

struct nr_settings *nr_study_settings(const struct nr_study *study, int64_t arm, int64_t stage, struct nr_arena *arena)
{
	struct nr_settings *all = nr_arena_alloc(arena, sizeof *all);
	if (!all || merge(study, &study->base, stage, all, arena) || merge(study, &study->stage[stage].own, stage, all, arena) ||
		merge(study, &study->arm[arm].own, stage, all, arena))
		return NULL;
	if (all->count) qsort(all->item, (size_t)all->count, sizeof *all->item, by_key);
	return all;
}

const char *nr_setting_text(const struct nr_setting *s, struct nr_arena *arena)
{
	struct nr_str text = { 0 };
	for (int64_t i = 0; i < s->count; i++) nr_str_printf(&text, "%s%s", i ? ", " : "", s->value[i]);
	const char *copy = text.failed ? NULL : nr_arena_printf(arena, s->count == 1 ? "%s" : "[%s]", nr_str_text(&text));
	nr_str_release(&text);
	return copy;
}

void nr_study_complain(const struct nr_study *study, const struct nr_yaml_node *at, struct nr_error *err, const char *hint,
	const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (study->tree) {
		nr_yaml_tree_complain(study->tree, at, hint, "%s", text);
		return;
	}
	if (err->code) return;
	nr_fail(err, NR_EUSAGE, "cannot use the study", NULL, "%s", text);
	if (hint && *hint) nr_hint(err, "%s", hint);
}
