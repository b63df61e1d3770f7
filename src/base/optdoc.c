/* Help, man page, completion and YAML from an option table: see optdoc.h. */
#include "base/optdoc.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/str.h"
#include "base/wrap.h"

enum { WIDEST_FLAG = 28 };

static const char *metavar(const struct nr_option *o)
{
	if (o->metavar)
		return o->metavar;
	switch (o->type) {
	case NR_TBOOL: return "";
	case NR_TINT: return "N";
	case NR_TFLOAT: return "X";
	case NR_TENUM: return "CHOICE";
	case NR_TSTRING:
	case NR_TLIST: return "TEXT";
	}
	return "";
}

/* "1 to 1000", "at least -1", "one of a, b"; nothing if anything goes. */
static void add_range(const struct nr_option *o, struct nr_str *s)
{
	char lo[32], hi[32];
	nr_double_text(o->min, false, lo, sizeof lo);
	nr_double_text(o->max, false, hi, sizeof hi);
	if (o->type == NR_TENUM) {
		for (int i = 0; o->choices[i]; i++)
			nr_str_printf(s, "%s%s", i ? ", " : "one of ", o->choices[i]);
	} else if ((o->type == NR_TINT || o->type == NR_TFLOAT) && (o->min != 0 || o->max != 0)) {
		if (isinf(o->max) && isinf(o->min))
			return;
		if (isinf(o->max))
			nr_str_printf(s, "at least %s", lo);
		else if (isinf(o->min))
			nr_str_printf(s, "at most %s", hi);
		else
			nr_str_printf(s, "%s to %s", lo, hi);
	}
}

static bool has_default(const struct nr_option *o)
{
	return o->text && *o->text;
}

/* " (default: 12; 1 to 1000)" */
static void add_notes(const struct nr_option *o, bool with_default, struct nr_str *s)
{
	struct nr_str range = { 0 };
	add_range(o, &range);
	const char *first = !o->text ? "required" : with_default && has_default(o) ? "default: " : NULL;
	if (first || range.len)
		nr_str_printf(s, " (%s%s%s%s)", first ? first : "", first && o->text ? o->text : "",
			      first && range.len ? "; " : "", nr_str_text(&range));
	nr_str_release(&range);
}

static void add_flag(const struct nr_option *o, struct nr_str *s)
{
	char flag[128];
	nr_option_flag(o, flag, sizeof flag);
	if (o->letter)
		nr_str_printf(s, "  -%c, ", o->letter);
	else
		nr_str_add(s, "      ");
	if (o->type == NR_TBOOL && strncmp(flag, "--no-", 5) != 0)
		nr_str_printf(s, "--[no-]%s", flag + 2);
	else if (o->type == NR_TBOOL)
		nr_str_add(s, flag);
	else
		nr_str_printf(s, "%s %s", flag, metavar(o));
}

void nr_option_help(const struct nr_option *table, struct nr_str *s)
{
	size_t widest = 0;
	struct nr_str cell = { 0 };
	for (const struct nr_option *o = table; o->name; o++) {
		cell.len = 0;
		add_flag(o, &cell);
		if (cell.len > widest && cell.len <= WIDEST_FLAG)
			widest = cell.len;
	}
	for (const struct nr_option *o = table; o->name; o++) {
		cell.len = 0;
		add_flag(o, &cell);
		nr_str_add_n(s, nr_str_text(&cell), cell.len);
		if (cell.len > widest) {
			nr_str_add(s, "\n");
			cell.len = 0;
		}
		nr_str_fill(s, ' ', widest + 2 - cell.len);
		cell.len = 0;
		nr_str_add(&cell, o->help ? o->help : "");
		add_notes(o, true, &cell);
		nr_wrap(s, nr_str_text(&cell), widest + 2, NR_TERMINAL);
		nr_str_add(s, "\n");
	}
	nr_str_release(&cell);
}

/* scdoc takes these for markup */
static void add_escaped(struct nr_str *s, const char *text, bool capital)
{
	for (; *text; text++, capital = false) {
		if (strchr("\\*_~#[]|`", *text))
			nr_str_add(s, "\\");
		char c = capital ? (char)toupper((unsigned char)*text) : *text;
		nr_str_add_n(s, &c, 1);
	}
}

void nr_option_man(const struct nr_option *table, struct nr_str *s)
{
	for (const struct nr_option *o = table; o->name; o++) {
		char flag[128];
		nr_option_flag(o, flag, sizeof flag);
		if (o->letter)
			nr_str_printf(s, "*-%c*, ", o->letter);
		nr_str_printf(s, "*%s*", flag);
		if (o->type == NR_TBOOL)
			nr_str_printf(s, ", *--no-%s*\n\t", flag + 2);
		else
			nr_str_printf(s, " _%s_\n\t", metavar(o));
		add_escaped(s, o->help ? o->help : "", true);
		nr_str_add(s, ".");
		if (!o->text)
			nr_str_add(s, " Required.");
		if (has_default(o)) {
			nr_str_add(s, " Default: ");
			add_escaped(s, o->text, false);
			nr_str_add(s, ".");
		}
		struct nr_str range = { 0 };
		add_range(o, &range);
		if (range.len) {
			nr_str_add(s, " ");
			add_escaped(s, range.text, true);
			nr_str_add(s, ".");
		}
		nr_str_release(&range);
		nr_str_add(s, "\n\n");
	}
}

void nr_option_complete(const struct nr_option *table, const char *previous, struct nr_str *s)
{
	char flag[128];
	for (const struct nr_option *o = table; previous && o->name; o++) {
		const char letter[3] = { '-', o->letter, 0 };
		bool here = strcmp(nr_option_flag(o, flag, sizeof flag), previous) == 0 ||
			    (o->letter && strcmp(letter, previous) == 0);
		if (!here || o->type == NR_TBOOL)
			continue;
		for (int i = 0; o->type == NR_TENUM && o->choices[i]; i++)
			nr_str_printf(s, "%s\n", o->choices[i]);
		return;
	}
	for (const struct nr_option *o = table; o->name; o++) {
		nr_str_printf(s, "%s\n", nr_option_flag(o, flag, sizeof flag));
		if (o->type == NR_TBOOL)
			nr_str_printf(s, "--no-%s\n", flag + 2);
	}
}

/* Double quotes: the only YAML style that holds every text. */
static void add_quoted(struct nr_str *s, const char *text)
{
	nr_str_add(s, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			nr_str_printf(s, "\\%c", *text);
		else if ((unsigned char)*text < 0x20 || *text == 0x7F)
			nr_str_printf(s, "\\x%02x", (unsigned)(unsigned char)*text);
		else
			nr_str_add_n(s, text, 1);
	}
	nr_str_add(s, "\"");
}

static void add_value(const struct nr_option *o, const void *conf, struct nr_str *s)
{
	const void *field = (const char *)conf + o->offset;
	char buf[64];
	if (o->type == NR_TLIST) {
		const struct nr_list *list = field;
		nr_str_add(s, "[");
		for (int64_t i = 0; i < list->count; i++) {
			nr_str_add(s, i ? ", " : "");
			add_quoted(s, list->item[i]);
		}
		nr_str_add(s, "]");
	} else if (o->type == NR_TSTRING) {
		const char *text;
		memcpy(&text, field, sizeof text);
		add_quoted(s, text ? text : "");
	} else {
		nr_str_add(s, nr_option_text(o, conf, buf, sizeof buf));
	}
}

void nr_option_yaml(const struct nr_option *table, const void *conf, int indent, struct nr_str *s)
{
	size_t size = 0, pad = (size_t)indent;
	for (const struct nr_option *o = table; o->name; o++)
		size = o->offset + o->size > size ? o->offset + o->size : size;
	void *defaults = calloc(1, size + 1);
	if (!defaults) {
		s->failed = true;
		return;
	}
	nr_option_defaults(table, defaults);
	if (!conf)
		conf = defaults;
	static const char zeros[sizeof(struct nr_list)];
	for (const struct nr_option *o = table; o->name; o++) {
		bool unset = !o->text && memcmp((const char *)conf + o->offset, zeros, o->size) == 0;
		nr_str_fill(s, ' ', pad);
		nr_str_printf(s, "# %s", o->help ? o->help : o->name);
		add_notes(o, false, s);
		nr_str_add(s, "\n");
		nr_str_fill(s, ' ', pad);
		nr_str_printf(s, "%s%s:", unset ? "# " : "", o->name);
		if (!unset) {
			nr_str_add(s, " ");
			add_value(o, conf, s);
		}
		nr_str_add(s, "\n");
	}
	free(defaults);
}
