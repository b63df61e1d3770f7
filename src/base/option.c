/* The option table: see norma/option.h. A row with min == max == 0 has no range. */
#include "norma/option.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"

static bool parse_bool(const char *text, bool *out)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0) {
			*out = i % 2;
			return true;
		}
	return false;
}

static int refuse(const struct nr_option *o, const char *text, struct nr_error *err, const char *wanted)
{
	return nr_fail(err, NR_EVALUE, "bad value for", o->name, "'%s' is not %s", text, wanted);
}

static int check_range(const struct nr_option *o, double v, const char *text, struct nr_error *err)
{
	if (o->min == 0 && o->max == 0 && v == v)
		return NR_OK;
	if (v >= o->min && v <= o->max)
		return NR_OK;
	char lo[32], hi[32];
	nr_double_text(o->min, false, lo, sizeof lo);
	nr_double_text(o->max, false, hi, sizeof hi);
	if (isinf(o->max) && v < o->min)
		return nr_fail(err, NR_EVALUE, "bad value for", o->name, "%s is below %s", text, lo);
	return nr_fail(err, NR_EVALUE, "bad value for", o->name, "%s is not between %s and %s", text, lo, hi);
}

static int put_int(const struct nr_option *o, void *field, const char *text, struct nr_error *err)
{
	int64_t v;
	if (!nr_parse_int(text, &v))
		return refuse(o, text, err, "a whole number");
	int e = check_range(o, (double)v, text, err);
	if (e)
		return e;
	if (o->size == sizeof(int32_t)) {
		if (v < INT32_MIN || v > INT32_MAX)
			return refuse(o, text, err, "a number of 32 bits");
		int32_t small = (int32_t)v;
		memcpy(field, &small, sizeof small);
		return NR_OK;
	}
	assert(o->size == sizeof v);
	memcpy(field, &v, sizeof v);
	return NR_OK;
}

static int put_float(const struct nr_option *o, void *field, const char *text, struct nr_error *err)
{
	double v;
	if (!nr_parse_double(text, &v))
		return refuse(o, text, err, "a number");
	int e = check_range(o, v, text, err);
	if (e)
		return e;
	if (o->size == sizeof(float)) {
		float single = (float)v;
		if (isinf(single) && !isinf(v))
			return refuse(o, text, err, "a number in the range of single precision");
		memcpy(field, &single, sizeof single);
		return NR_OK;
	}
	assert(o->size == sizeof v);
	memcpy(field, &v, sizeof v);
	return NR_OK;
}

static int put_enum(const struct nr_option *o, void *field, const char *text, struct nr_error *err)
{
	for (int32_t i = 0; o->choices[i]; i++)
		if (strcmp(o->choices[i], text) == 0) {
			memcpy(field, &i, sizeof i);
			return NR_OK;
		}
	struct nr_str all = { 0 };
	for (int32_t i = 0; o->choices[i]; i++)
		nr_str_printf(&all, "%s%s", i ? ", " : "", o->choices[i]);
	nr_fail(err, NR_EVALUE, "bad value for", o->name, "'%s' is not one of %s", text, nr_str_text(&all));
	nr_str_release(&all);
	const char *near = nr_nearest(text, o->choices);
	if (near)
		nr_hint(err, "did you mean '%s'?", near);
	return NR_EVALUE;
}

static int put(const struct nr_option *o, void *conf, const char *text, struct nr_arena *arena,
	       struct nr_error *err)
{
	void *field = (char *)conf + o->offset;
	bool truth;
	char *copy;
	switch (o->type) {
	case NR_TBOOL:
		if (!parse_bool(text, &truth))
			return refuse(o, text, err, "true or false");
		if (o->size == sizeof(int32_t)) {
			int32_t word = truth;
			memcpy(field, &word, sizeof word);
			return NR_OK;
		}
		assert(o->size == sizeof truth);
		memcpy(field, &truth, sizeof truth);
		return NR_OK;
	case NR_TINT:
		return put_int(o, field, text, err);
	case NR_TFLOAT:
		return put_float(o, field, text, err);
	case NR_TENUM:
		return put_enum(o, field, text, err);
	case NR_TSTRING:
	case NR_TLIST:
		copy = nr_arena_strdup(arena, text);
		if (copy && o->type == NR_TSTRING) {
			memcpy(field, &copy, sizeof copy);
			return NR_OK;
		}
		if (!copy || nr_list_add(field, copy, arena))
			return nr_fail(err, NR_EMEMORY, "cannot keep", o->name, "out of memory");
		return NR_OK;
	}
	return nr_fail(err, NR_EVALUE, "bad option", o->name, "its row in the table has no valid type");
}

void nr_option_defaults(const struct nr_option *table, void *conf)
{
	for (const struct nr_option *o = table; o->name; o++) {
		void *field = (char *)conf + o->offset;
		memset(field, 0, o->size);
		if (!o->text || o->type == NR_TLIST)
			continue;
		if (o->type == NR_TSTRING) {
			memcpy(field, &o->text, sizeof o->text);
			continue;
		}
		int e = put(o, conf, o->text, NULL, NULL);
		assert(e == NR_OK && "an option's default must satisfy its own row");
		(void)e;
	}
}

const struct nr_option *nr_option_find(const struct nr_option *table, const char *name)
{
	for (; table && table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

/* What there is, of a short table. */
static void hint_all(const struct nr_option *table, struct nr_error *err)
{
	char names[sizeof err->hint];
	size_t at = 0;
	for (const struct nr_option *o = table; o && o->name; o++) {
		if (at + strlen(o->name) + 32 > sizeof names)
			return;
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", o->name);
	}
	if (at)
		nr_hint(err, "there %s %s", strstr(names, ", ") ? "are" : "is", names);
}

int nr_option_set(const struct nr_option *table, void *conf, const char *name, const char *text,
		  struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_option *o = nr_option_find(table, name);
	if (o)
		return put(o, conf, text, arena, err);
	nr_fail(err, NR_ENAME, "unknown option", name, NULL);
	const char *near = nr_nearest_option(name, table);
	if (near)
		nr_hint(err, "did you mean '%s'?", near);
	else
		hint_all(table, err);
	return NR_ENAME;
}

/* End of one `key=value`: a comma, but not one inside parentheses. */
static const char *item_end(const char *s)
{
	int depth = 0;
	for (; *s && (*s != ',' || depth > 0); s++)
		depth += (*s == '(') - (*s == ')');
	return s;
}

int nr_option_parse(const struct nr_option *table, void *conf, const char *text, struct nr_arena *arena,
		    struct nr_error *err)
{
	int e = NR_OK;
	while (*text && !e) {
		const char *end = item_end(text);
		struct nr_str item = { 0 };
		nr_str_add_n(&item, text, (size_t)(end - text));
		if (item.failed)
			return nr_fail(err, NR_EMEMORY, "cannot read options", NULL, "out of memory");
		char *equals = strchr(item.text, '=');
		if (equals) {
			*equals = 0;
			e = nr_option_set(table, conf, item.text, equals + 1, arena, err);
		} else {
			e = nr_fail(err, NR_EUSAGE, "bad option", item.text, "it has no value");
			nr_hint(err, "write key=value, separated by commas");
		}
		nr_str_release(&item);
		text = *end ? end + 1 : end;
	}
	return e;
}

static void list_text(const struct nr_list *list, char *buf, size_t size)
{
	size_t used = 0;
	buf[0] = 0;
	for (int64_t i = 0; i < list->count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ";" : "", list->item[i]);
}

/* A list is shown with ';' between its items; to read it back, set them one by one. */
const char *nr_option_text(const struct nr_option *o, const void *conf, char *buf, size_t size)
{
	const void *field = (const char *)conf + o->offset;
	int64_t whole = 0;
	int32_t half;
	double number;
	float single;
	const char *string;
	if (size == 0)
		return buf;
	switch (o->type) {
	case NR_TBOOL:
		memcpy(&whole, field, o->size);
		snprintf(buf, size, "%s", whole ? "true" : "false");
		break;
	case NR_TINT:
		memcpy(&whole, field, o->size);
		memcpy(&half, field, sizeof half);
		snprintf(buf, size, "%lld", o->size == sizeof half ? (long long)half : (long long)whole);
		break;
	case NR_TFLOAT:
		if (o->size == sizeof single) {
			memcpy(&single, field, sizeof single);
			number = (double)single;
		} else {
			memcpy(&number, field, sizeof number);
		}
		nr_double_text(number, o->size == sizeof single, buf, size);
		break;
	case NR_TSTRING:
		memcpy(&string, field, sizeof string);
		snprintf(buf, size, "%s", string ? string : "");
		break;
	case NR_TENUM:
		memcpy(&half, field, sizeof half);
		snprintf(buf, size, "%s", o->choices[half]);
		break;
	case NR_TLIST:
		list_text(field, buf, size);
		break;
	}
	return buf;
}

const char *nr_options_text(const struct nr_option *table, const void *conf, struct nr_arena *arena)
{
	const char *text = "";
	for (const struct nr_option *o = table; o->name && text; o++) {
		char value[256];
		text = nr_arena_printf(arena, "%s%s%s=%s", text, *text ? "," : "", o->name, nr_option_text(o, conf, value, sizeof value));
	}
	return text;
}
