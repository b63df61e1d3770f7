/* See weights_meta.h. */
#include "weights_meta.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "infer/weights.h"

static const char *classes_text(const struct nr_weights *w, struct nr_arena *arena)
{
	json_t *list = json_array();
	for (char **name = w->class_name; *name; name++) json_array_append_new(list, json_string(*name));
	char *text = nr_json_dump(list, JSON_COMPACT);
	const char *kept = text ? nr_arena_strdup(arena, text) : NULL;
	free(text);
	json_decref(list);
	return kept;
}

static const char *three(const double *v, struct nr_arena *arena)
{
	return nr_arena_printf(arena, "%.9g %.9g %.9g", v[0], v[1], v[2]);
}

int64_t cli_weights_meta(const struct nr_weights *w, struct nr_st_meta *meta, struct nr_arena *arena)
{
	int64_t n = 0;
	meta[n++] = (struct nr_st_meta){ "norma", "1" };
	meta[n++] = (struct nr_st_meta){ "norma.model", w->model.text };
	meta[n++] = (struct nr_st_meta){ "norma.norms", w->norms };
	if (w->data) meta[n++] = (struct nr_st_meta){ "norma.data", w->data };
	if (w->pooler) meta[n++] = (struct nr_st_meta){ "norma.pooler", w->pooler };
	if (w->objective) meta[n++] = (struct nr_st_meta){ "norma.objective", w->objective };
	if (w->targets) {
		meta[n++] = (struct nr_st_meta){ "norma.target_mean", nr_numbers_text(w->target_mean, w->targets, arena) };
		meta[n++] = (struct nr_st_meta){ "norma.target_std", nr_numbers_text(w->target_std, w->targets, arena) };
	}
	if (w->class_name) meta[n++] = (struct nr_st_meta){ "norma.classes", classes_text(w, arena) };
	if (w->std[0] > 0) {
		meta[n++] = (struct nr_st_meta){ "norma.mean", three(w->mean, arena) };
		meta[n++] = (struct nr_st_meta){ "norma.std", three(w->std, arena) };
		meta[n++] = (struct nr_st_meta){ "norma.normalize", w->normalize ? "1" : "0" };
	}
	for (int64_t i = 0; i < n; i++)
		if (!meta[i].value) meta[i] = meta[--n];                /* out of memory: a key less */
	return n;
}
