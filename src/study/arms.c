/* Arms: the grid's combinations, their names and folders. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "study/settings.h"

/* "sep(bn,ln)", but "lambda=0.01": a number alone says nothing. */
static void add_name(struct nr_str *s, const struct nr_setting *v, const char *name, struct nr_arena *arena)
{
	double number;
	const char *text = name ? name : nr_setting_text(v, arena);
	const char *one = v->count == 1 ? v->value[0] : "0";
	const bool word = !nr_parse_double(one, &number) && strcmp(one, "true") && strcmp(one, "false");
	if (s->len) nr_str_add(s, ", ");
	if (!name && !word) nr_str_printf(s, "%s=", v->key);
	nr_str_add(s, text && *text ? text : "\"\"");
}

/* What a folder can be called everywhere; others become one '_'. */
static char *folder_of(const char *name, struct nr_arena *arena)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=-";
	char *to = nr_arena_strdup(arena, name), *at = to;
	for (const char *s = name; to && *s; s++) {
		const bool good = strchr(letters, *s) || (*s == '.' && at != to);
		if (good) *at++ = *s;
		else if (at != to && at[-1] != '_') *at++ = '_';
	}
	while (to && at != to && at[-1] == '_') at--;
	if (to) *at = 0;
	return to;
}

int nr_study_folders(struct nr_study_arm *arm, int64_t arms, struct nr_arena *arena)
{
	for (int64_t i = 0; i < arms; i++) {
		char *plain = folder_of(arm[i].name, arena);
		if (plain && !*plain) plain = nr_arena_strdup(arena, "arm");
		arm[i].folder = plain;
		for (int64_t k = 0, n = 2; plain && k < i; k++)
			if (!strcasecmp(arm[k].folder, arm[i].folder)) {
				arm[i].folder = nr_arena_printf(arena, "%s_%lld", plain, (long long)n++);
				if (!arm[i].folder) return NR_EMEMORY;
				k = -1;
			}
		if (!plain) return NR_EMEMORY;
	}
	return NR_OK;
}

/* Combination number `which` of the grid on top of one arm; the last axis turns fastest. */
static int combine(struct nr_study_arm *to, const struct nr_study_arm *from, const struct nr_factor *axis, int64_t axes, int64_t which,
	struct nr_arena *arena)
{
	struct nr_str name = { 0 };
	*to = (struct nr_study_arm){ .at = from ? from->at : NULL };
	if (from && from->name) nr_str_add(&name, from->name);
	for (int64_t i = 0; from && i < from->own.count; i++) {
		if (!from->name) add_name(&name, &from->own.item[i], NULL, arena);
		if (nr_settings_add(&to->own, &from->own.item[i], arena)) return NR_EMEMORY;
	}
	int64_t later = 1;
	for (int64_t a = 0; a < axes; a++) later *= axis[a].count;
	for (int64_t a = 0; a < axes; a++) {
		later /= axis[a].count;
		const int64_t k = which / later % axis[a].count;
		add_name(&name, &axis[a].item[k], axis[a].name[k], arena);
		if (!to->at) to->at = axis[a].item[k].value_at;
		if (nr_settings_add(&to->own, &axis[a].item[k], arena)) return NR_EMEMORY;
	}
	if (!name.len) nr_str_add(&name, "only");
	to->name = nr_str_keep(&name, arena);
	return to->name ? NR_OK : NR_EMEMORY;
}

int nr_study_expand(struct nr_study *s, const struct nr_factor *axis, int64_t axes, struct nr_error *err)
{
	int64_t each = 1, before = s->arms ? s->arms : 1;
	for (int64_t a = 0; a < axes && each <= NR_STUDY_MAX_ARMS; a++) each *= axis[a].count;
	if (each > NR_STUDY_MAX_ARMS / before) {
		nr_study_complain(s, axes ? axis[0].item[0].at : NULL, err,
			"use fewer values", "the grid has more than %d arms",
			NR_STUDY_MAX_ARMS);
		s->arms = 0;
		return err->code;
	}
	struct nr_study_arm *all = nr_arena_alloc(s->arena, (size_t)(before * each) * sizeof *all);
	int code = all ? NR_OK : NR_EMEMORY;
	for (int64_t i = 0; i < before * each && !code; i++)
		code = combine(&all[i], s->arms ? &s->arm[i / each] : NULL, axis, axes, i % each, s->arena);
	s->arm = all;
	s->arms = code ? 0 : before * each;
	if (!code) code = nr_study_folders(s->arm, s->arms, s->arena);
	return code ? nr_fail(err, NR_EMEMORY, "cannot read the study", NULL, "out of memory") : NR_OK;
}
