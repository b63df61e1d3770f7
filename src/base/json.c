/* JSON: see json.h. */
#include "base/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

static json_t *explain(json_t *root, const char *name, const json_error_t *e, struct nr_error *err)
{
	if (root)
		return root;
	if (json_error_code(e) == json_error_out_of_memory)
		nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	else
		nr_fail(err, NR_EFORMAT, "cannot read", name, "line %d, column %d: %s", e->line, e->column,
			e->text);
	return NULL;
}

json_t *nr_json_parse(const char *text, size_t size, const char *name, struct nr_error *err)
{
	json_error_t e;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
	return explain(root, name, &e, err);
}

static json_t *load(const char *path, size_t flags, struct nr_error *err)
{
	FILE *f = nr_file_stream(path, err);
	if (!f) return NULL;
	json_error_t e;
	errno = 0;
	json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES | flags, &e);
	int number = errno, failed = ferror(f);
	fclose(f);
	if (failed) {  /* jansson takes it for the end of the file */
		nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(number));
		json_decref(root);
		return NULL;
	}
	return explain(root, path, &e, err);
}

json_t *nr_json_load(const char *path, struct nr_error *err) { return load(path, 0, err); }
json_t *nr_json_load_reals(const char *path, struct nr_error *err) { return load(path, JSON_DECODE_INT_AS_REAL, err); }

static _Thread_local bool lacks_a_part;

static void *watched_malloc(size_t size)
{
	void *p = malloc(size);
	if (p) return p;
	lacks_a_part = true;
	nr_memory_note_failure();
	return NULL;
}

void nr_json_watch_memory(void) { json_set_alloc_funcs(watched_malloc, free); }

char *nr_json_dump(const json_t *object, size_t flags)
{
	if (lacks_a_part) {
		lacks_a_part = false;
		return NULL;
	}
	const size_t n = json_dumpb(object, NULL, 0, flags);
	char *text = n ? malloc(n + 1) : NULL;
	if (!text || json_dumpb(object, text, n, flags) != n) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

int nr_json_add(struct nr_str *s, json_t *object, struct nr_error *err)
{
	if (!object && !lacks_a_part)
		return nr_fail(err, NR_EVALUE, "cannot write JSON", NULL, "a value has no JSON form");
	char *text = nr_json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(object);
	if (text) {
		nr_str_add(s, text);
		nr_str_add(s, "\n");
	}
	free(text);
	return text && !s->failed ? NR_OK
				  : nr_fail(err, NR_EMEMORY, "cannot write JSON", NULL, "out of memory");
}

int nr_json_line(FILE *f, json_t *object, struct nr_error *err)
{
	struct nr_str s = { 0 };
	int e = nr_json_add(&s, object, err);
	if (!e && (fwrite(s.text, 1, s.len, f) != s.len || fflush(f) != 0))
		e = nr_fail(err, NR_EIO, "cannot write JSON", NULL, "%s", strerror(errno));
	nr_str_release(&s);
	return e;
}
