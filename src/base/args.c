/* Command line arguments: see args.h. */
#include "base/args.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct parser {
	const struct nr_option *table;
	void *conf;
	int argc, at;
	char **argv;
	struct nr_list *rest;
	struct nr_arena *arena;
	struct nr_error *err;
	bool *fresh;  /* by row: a list not yet met on this command line */
};

/* The array doubles at powers of two; what it leaves behind stays in the arena. */
int nr_list_add(struct nr_list *list, char *item, struct nr_arena *arena)
{
	int64_t n = list->count;
	if (n == 0 || (n & (n - 1)) == 0) {
		char **grown = nr_arena_alloc(arena, (size_t)(n ? 2 * n : 1) * sizeof *grown);
		if (!grown)
			return NR_EMEMORY;
		if (n)
			memcpy(grown, list->item, (size_t)n * sizeof *grown);
		list->item = grown;
	}
	list->item[list->count++] = item;
	return NR_OK;
}

const char *nr_option_flag(const struct nr_option *o, char *buf, size_t size)
{
	snprintf(buf, size, "--%s", o->name);
	for (char *p = buf; *p; p++)
		if (*p == '_')
			*p = '-';
	return buf;
}

static bool same_flag(const char *name, const char *flag, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (name[i] != flag[i] && !(name[i] == '_' && flag[i] == '-'))
			return false;
	return name[n] == 0;
}

static const struct nr_option *find_flag(const struct nr_option *table, const char *flag, size_t n)
{
	for (; table->name; table++)
		if (strlen(table->name) == n && same_flag(table->name, flag, n))
			return table;
	return NULL;
}

static const struct nr_option *find_letter(const struct nr_option *table, char letter)
{
	for (; table->name; table++)
		if (letter && table->letter == letter)
			return table;
	return NULL;
}

static int set(struct parser *p, const struct nr_option *o, const char *shown, const char *value)
{
	if (o->type == NR_TLIST && p->fresh[o - p->table]) {
		memset((char *)p->conf + o->offset, 0, o->size);
		p->fresh[o - p->table] = false;
	}
	struct nr_error e = { 0 };
	if (nr_option_set(p->table, p->conf, o->name, value, p->arena, &e) == NR_OK)
		return NR_OK;
	nr_fail(p->err, NR_EUSAGE, e.what, shown, "%s", e.detail);  /* the user typed a flag, not a key */
	if (e.hint[0])
		nr_hint(p->err, "%s", e.hint);
	return NR_EUSAGE;
}

/* The next argument as a value; one that looks like a flag is more likely a value forgotten. */
static int set_next(struct parser *p, const struct nr_option *o, const char *shown)
{
	const char *next = p->at < p->argc ? p->argv[p->at] : NULL;
	if (!next || strncmp(next, "--", 2) == 0) {
		nr_fail(p->err, NR_EUSAGE, "option", shown, "it needs a value");
		if (next && next[2])
			nr_hint(p->err, "if '%s' is the value, write %s=%s", next, shown, next);
		return NR_EUSAGE;
	}
	p->at++;
	return set(p, o, shown, next);
}

static int unknown(struct parser *p, const char *shown, const char *word)
{
	struct nr_near near = { .word = word };
	bool no = strncmp(word, "no-", 3) == 0;
	if (no)
		near.word = word + 3;
	for (const struct nr_option *o = p->table; o->name; o++)
		if (!no || o->type == NR_TBOOL)
			nr_near_try(&near, o->name);
	nr_fail(p->err, NR_EUSAGE, "unknown option", shown, NULL);
	if (!near.best)
		return nr_hint(p->err, "--help lists the options");
	char flag[128];
	nr_option_flag(nr_option_find(p->table, near.best), flag, sizeof flag);
	nr_hint(p->err, "did you mean '%s%s'?", no ? "--no-" : "--", flag + 2);
	return NR_EUSAGE;
}

static int long_flag(struct parser *p, const char *arg)
{
	const char *name = arg + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	char *shown = nr_arena_printf(p->arena, "--%.*s", (int)n, name);
	if (!shown)
		return nr_fail(p->err, NR_EMEMORY, "cannot read the arguments", NULL, "out of memory");
	const struct nr_option *o = find_flag(p->table, name, n);
	if (!o && n > 3 && strncmp(name, "no-", 3) == 0) {
		o = find_flag(p->table, name + 3, n - 3);
		if (o && o->type == NR_TBOOL)
			return equals ? nr_fail(p->err, NR_EUSAGE, "option", shown, "it takes no value")
				      : set(p, o, shown, "false");
		o = NULL;
	}
	if (!o)
		return unknown(p, shown, shown + 2);
	if (equals)
		return set(p, o, shown, equals + 1);
	return o->type == NR_TBOOL ? set(p, o, shown, "true") : set_next(p, o, shown);
}

static int letters(struct parser *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		char shown[3] = { '-', *c, 0 };
		const struct nr_option *o = find_letter(p->table, *c);
		if (!o) {
			nr_fail(p->err, NR_EUSAGE, "unknown option", shown, NULL);
			return nr_hint(p->err, "--help lists the options");
		}
		if (o->type != NR_TBOOL)
			return c[1] ? set(p, o, shown, c + 1) : set_next(p, o, shown);
		int e = set(p, o, shown, "true");
		if (e)
			return e;
	}
	return NR_OK;
}

static int keep(struct parser *p, char *arg)
{
	if (!p->rest)
		return nr_fail(p->err, NR_EUSAGE, "unexpected argument", arg, NULL);
	if (nr_list_add(p->rest, arg, p->arena))
		return nr_fail(p->err, NR_EMEMORY, "cannot read the arguments", NULL, "out of memory");
	return NR_OK;
}

int nr_args_parse(const struct nr_option *table, void *conf, int argc, char **argv, struct nr_list *rest,
		  struct nr_arena *arena, struct nr_error *err)
{
	struct parser p = { table, conf, argc, 0, argv, rest, arena, err, NULL };
	size_t rows = 0;
	while (table[rows].name)
		rows++;
	p.fresh = nr_arena_alloc(arena, rows * sizeof *p.fresh + 1);
	if (!p.fresh)
		return nr_fail(err, NR_EMEMORY, "cannot read the arguments", NULL, "out of memory");
	memset(p.fresh, true, rows);
	bool options = true;
	int e = NR_OK;
	while (!e && p.at < argc) {
		char *arg = argv[p.at++];
		if (!options || arg[0] != '-' || !arg[1])
			e = keep(&p, arg);
		else if (strcmp(arg, "--") == 0)
			options = false;
		else if (arg[1] == '-')
			e = long_flag(&p, arg);
		else
			e = letters(&p, arg);
	}
	return e;
}

const struct nr_option *nr_option_missing(const struct nr_option *table, const void *conf)
{
	static const char zeros[64];
	for (const struct nr_option *o = table; o && o->name; o++)
		if (!o->text && memcmp((const char *)conf + o->offset, zeros, o->size) == 0)
			return o;
	return NULL;
}

int nr_args_require(const struct nr_option *table, const void *conf, struct nr_error *err)
{
	const struct nr_option *o = nr_option_missing(table, conf);
	if (!o)
		return NR_OK;
	char flag[128];
	nr_fail(err, NR_EUSAGE, "missing option", nr_option_flag(o, flag, sizeof flag), "%s",
		o->help ? o->help : "");
	return NR_EUSAGE;
}
