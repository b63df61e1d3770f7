/* See prompts.h. */
#include "data/prompts.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/str.h"

static const size_t most_bytes = (size_t)1 << 26;
static const char *const usual_template = "a photo of a {}.";

static int out_of_memory(const char *path, struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory"); }

/* Lines of a file in the arena, without blank ones; number: of each in the file. */
static int read_lines(const char *path, const char ***line, int64_t **number, int64_t *count, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_bytes b;
	if (nr_bytes_open(&b, path, most_bytes, err)) return err->code;
	char *text = nr_arena_alloc(arena, b.size + 1);
	const bool whole = nr_utf8_span((const char *)b.data, b.size) == b.size && !memchr(b.data, 0, b.size);
	int64_t room = 1, at = 0;
	if (text) memcpy(text, b.data, b.size);
	for (size_t i = 0; i < b.size; i++) room += b.data[i] == '\n';
	nr_bytes_release(&b);
	*line = nr_arena_alloc(arena, (size_t)room * sizeof **line);
	*number = nr_arena_alloc(arena, (size_t)room * sizeof **number);
	*count = 0;
	if (!text || !*line || !*number) return out_of_memory(path, err);
	if (!whole) return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not UTF-8 text");
	if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
	for (char *one; (one = strsep(&text, "\n"));) {
		at++;
		size_t n = strlen(one);
		while (n && (one[n - 1] == '\r' || one[n - 1] == ' ' || one[n - 1] == '\t')) one[--n] = 0;
		one += strspn(one, " \t");
		if (!*one) continue;
		(*number)[*count] = at;
		(*line)[(*count)++] = one;
	}
	return *count ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "it has no text");
}

static int read_names(struct nr_prompts *p, const char *what, char *const *class_name, const char *names, struct nr_arena *arena,
	struct nr_error *err)
{
	int64_t count = p->classes, *number;
	if (names && *names && read_lines(names, &p->name, &number, &count, arena, err)) return err->code;
	if (count != p->classes)
		return nr_fail(err, NR_EVALUE, "cannot use the names of", names, "it has %lld lines, but '%s' has %lld classes",
			(long long)count, what, (long long)p->classes);
	if (!class_name && !p->name) {
		nr_fail(err, NR_EVALUE, "cannot describe the classes of", what, "it has no names for them");
		return nr_hint(err, "give a file with one name per line");
	}
	if (!p->name) p->name = nr_arena_alloc(arena, (size_t)p->classes * sizeof *p->name);
	for (int64_t k = 0; p->name && k < p->classes; k++) {
		char *one = nr_arena_strdup(arena, names && *names ? p->name[k] : class_name[k]);
		for (char *c = one; c && *c; c++) *c = *c == '_' ? ' ' : *c;
		if (!(p->name[k] = one)) return out_of_memory(what, err);
	}
	return p->name ? NR_OK : out_of_memory(what, err);
}

int nr_prompts_make(struct nr_prompts *p, const char *what, char *const *class_name, int64_t classes, const char *names,
	const char *templates, struct nr_arena *arena, struct nr_error *err)
{
	const char **line = (const char *[]){ usual_template };
	int64_t *number;
	*p = (struct nr_prompts){ .classes = classes, .templates = 1 };
	if (classes < 1) return nr_fail(err, NR_EVALUE, "cannot describe the classes of", what, "it has none");
	if (read_names(p, what, class_name, names, arena, err)) return err->code;
	if (templates && *templates && read_lines(templates, &line, &number, &p->templates, arena, err)) return err->code;
	p->text = nr_arena_alloc(arena, (size_t)(classes * p->templates) * sizeof *p->text);
	if (!p->text) return out_of_memory(what, err);
	for (int64_t t = 0; t < p->templates; t++) {
		const char *place = strstr(line[t], "{}");
		if (!place) {
			nr_fail(err, NR_EFORMAT, "cannot read", templates, "line %lld has no {} in the place of the name: '%.60s'",
				(long long)number[t], line[t]);
			return nr_hint(err, "write for example: a photo of a {}.");
		}
		for (int64_t k = 0; k < classes; k++) {
			p->text[k * p->templates + t] = nr_arena_printf(arena, "%.*s%s%s", (int)(place - line[t]), line[t], p->name[k],
				place + 2);
			if (!p->text[k * p->templates + t]) return out_of_memory(what, err);
		}
	}
	return NR_OK;
}
