/* The text form of a norm: NAME, NAME:key=value,key=value or NAME(NORM,NORM).
 *
 * Inside parentheses a comma separates norms, and options of a norm, too: what looks like `key=value` belongs to the norm
 * before it. What stands in parentheses are the norm's options without a default, in their order. */
#include "norms/norms.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

static int fail(struct nr_error *err, const char *text, const char *what)
{
	nr_fail(err, NR_EVALUE, "cannot read the norm", text, "%s", what);
	return nr_hint(err, "NAME, NAME:key=value,key=value or sep(NORM,NORM)");
}

/* End of the norm that begins at s, inside parentheses; NULL when they do not close. */
static const char *end_of_part(const char *s)
{
	for (int depth = 0; *s; s++) {
		if (*s == '(') depth++;
		if (*s == ')' && depth-- == 0) return s;
		if (*s != ',' || depth) continue;
		const char *word = s + 1;
		while (isalnum((unsigned char)*word) || *word == '_' || *word == ' ') word++;
		if (*word != '=') return s;
	}
	return NULL;
}

/* The parts of "(bn,ln)" into the options that must be given. */
static int set_parts(const struct nr_norm *norm, void *conf, const char *text, const char *s, struct nr_arena *arena,
	struct nr_error *err)
{
	for (const struct nr_option *o = norm->options; o->name; o++) {
		if (o->text) continue;
		const char *end = *s == '(' || *s == ',' ? end_of_part(s + 1) : NULL;
		if (!end) return fail(err, text, "it needs more norms in parentheses");
		char *part = nr_arena_printf(arena, "%.*s", (int)(end - s - 1), s + 1);
		if (!part) return nr_fail(err, NR_EMEMORY, "cannot read the norm", text, "out of memory");
		if (!part[strspn(part, " ")]) return fail(err, text, "a norm in the parentheses is missing");
		const struct nr_norm *found;
		void *its;                      /* read for its errors alone: the norm builds its parts from their texts */
		if (nr_norm_parse(part, 0, arena, &found, &its, err) || nr_option_set(norm->options, conf, o->name, part, arena, err))
			return err->code;
		s = end;
	}
	return s[0] == ')' && !s[1 + strspn(s + 1, " ")] ? NR_OK : fail(err, text, *s == ',' ? "too many norms in parentheses" :
		"unexpected text after the parentheses");
}

int nr_norm_parse(const char *text, double eps, struct nr_arena *arena, const struct nr_norm **norm, void **conf,
	struct nr_error *err)
{
	text += strspn(text, " ");
	const size_t length = strcspn(text, ":( ");
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)length, text);
	if (!(*norm = nr_norm_find(name, err))) return err->code;
	if (!(*conf = nr_arena_alloc(arena, (*norm)->conf_size + 1)))
		return nr_fail(err, NR_EMEMORY, "cannot read the norm", text, "out of memory");
	nr_option_defaults((*norm)->options, *conf);
	if (eps > 0 && nr_option_find((*norm)->options, "eps")) {
		const char *value = nr_arena_printf(arena, "%.9g", eps);
		if (!value) return nr_fail(err, NR_EMEMORY, "cannot read the norm", text, "out of memory");
		if (nr_option_set((*norm)->options, *conf, "eps", value, arena, err)) return err->code;
	}
	const char *rest = text + length + strspn(text + length, " ");
	int parts = 0;
	for (const struct nr_option *o = (*norm)->options; o->name; o++) parts += !o->text;
	if (*rest == '(' && !parts) return fail(err, text, "this norm takes no norms in parentheses");
	if (parts) return set_parts(*norm, *conf, text, rest, arena, err);
	if (*rest == ':') return nr_option_parse((*norm)->options, *conf, rest + 1, arena, err);
	return *rest ? fail(err, text, "options must follow a ':'") : NR_OK;
}
