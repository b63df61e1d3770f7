/* See part_told.h. */
#include "analysis/part_told.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"

const struct nr_part_told *nr_part_told(int i, const char **name)
{
	if (!nr_parts[i]) return NULL;
	*name = nr_parts[i]->name;
	return &nr_parts[i]->told;
}

/* ---- paths ----------------------------------------------------------------------------------------------------------------- */

/* One key of a path; path comes to stand behind it. */
static const json_t *enter(const json_t *j, const char **path)
{
	char key[64];
	*path += **path == '.';
	const size_t n = strcspn(*path, ".[");
	snprintf(key, sizeof key, "%.*s", (int)n, *path);
	*path += n;
	return n ? json_object_get(j, key) : j;
}

const json_t *nr_part_list_at(const json_t *j, const char **path)
{
	while (j && **path && **path != '[') j = enter(j, path);
	*path += strncmp(*path, "[]", 2) ? 0 : 2;
	return j;
}

double nr_part_number_at(const json_t *j, const char *path)
{
	while (j && *path && *path != '[') j = enter(j, &path);
	if (!*path) return json_is_number(j) ? json_number_value(j) : (double)NAN;
	const size_t n = json_array_size(j);
	double sum = 0;
	for (size_t i = 0; i < n; i++) sum += nr_part_number_at(json_array_get(j, i), path + 2);
	return sum / (double)n;
}

/* ---- matrices -------------------------------------------------------------------------------------------------------------- */

struct nr_part_matrix nr_part_matrix_make(size_t rows, size_t cols, struct nr_arena *arena)
{
	struct nr_part_matrix m = { .rows = (int64_t)rows, .cols = (int64_t)cols };
	if (!rows || !cols || rows > 512 || cols > 512) return (struct nr_part_matrix){ 0 };
	m.value = nr_arena_alloc(arena, rows * cols * sizeof *m.value);
	m.row = nr_arena_alloc(arena, rows * sizeof *m.row);
	for (size_t i = 0; m.value && i < rows * cols; i++) m.value[i] = NAN;
	return m.value && m.row ? m : (struct nr_part_matrix){ 0 };
}

const char *nr_part_short_name(const char *name, struct nr_arena *arena)
{
	const size_t n = strcspn(name, "[");
	if (strncmp(name, "blocks[", 7) || !strchr(name, ']')) return name;
	const char *text = nr_arena_printf(arena, "%.*s%s", (int)strcspn(name + n + 1, "]"), name + n + 1, strchr(name, ']') + 1);
	return text ? text : name;
}

struct nr_part_matrix nr_part_matrix_rows(const json_t *list, const char *name, const char *values, const char *key,
	struct nr_arena *arena)
{
	const size_t cols = json_array_size(json_object_get(json_array_get(list, 0), values));
	struct nr_part_matrix m = nr_part_matrix_make(json_array_size(list), cols, arena);
	for (size_t i = 0; i < (size_t)m.rows; i++) {
		const json_t *row = json_array_get(list, i), *all = json_object_get(row, values);
		const char *text = json_string_value(json_object_get(row, name));
		m.row[i] = nr_part_short_name(text ? text : "", arena);
		for (size_t k = 0; k < cols; k++) m.value[i * cols + k] = nr_part_number_at(json_array_get(all, k), key ? key : "");
	}
	return m;
}
