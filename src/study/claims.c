/* Claims and contradictions of a paper: see claims.h. */
#include "study/claims.h"

#include <ctype.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"
#include "study/settings.h"

static const char *text_at(const struct nr_yaml_node *map, const char *key)
{
	const struct nr_yaml_node *n = nr_yaml_value(map, key);
	return n && n->kind == NR_YAML_VALUE ? n->text : NULL;
}

/* A value, or the items of a list with something between them. */
static void add_values(struct nr_str *s, const struct nr_yaml_node *n, const char *between)
{
	if (n && n->kind == NR_YAML_VALUE) nr_str_add(s, n->text);
	for (int64_t i = 0; n && n->kind == NR_YAML_LIST && i < n->count; i++)
		if (n->item[i]->kind == NR_YAML_VALUE) nr_str_printf(s, "%s%s", i ? between : "", n->item[i]->text);
}

static int keep(struct nr_list *list, struct nr_str *s, struct nr_arena *arena)
{
	char *copy = nr_str_keep(s, arena);
	return copy && !nr_list_add(list, copy, arena) ? 0 : -1;
}

/* Is "Table 1" said of the table "Table 1, left"? Not of "Table 10". */
static bool names(const char *where, const char *label)
{
	const size_t n = strlen(where);
	return !strncmp(label, where, n) && !isalnum((unsigned char)label[n]);
}

static bool is_table(const char *where) { return !strncmp(where, "Table ", 6) || !strncmp(where, "Figure ", 7); }

/* A contradiction that names tables concerns those alone. */
static bool concerns(const struct nr_yaml_node *where, const char *label)
{
	bool tables = false;
	for (int64_t i = 0; where && where->kind == NR_YAML_LIST && i < where->count; i++) {
		const char *text = where->item[i]->kind == NR_YAML_VALUE ? where->item[i]->text : "";
		if (is_table(text) && names(text, label)) return true;
		tables |= is_table(text);
	}
	return !tables;
}

int nr_claims_read(struct nr_published *p, const struct nr_yaml_node *paper, const char *label, struct nr_arena *arena)
{
	const struct nr_yaml_node *claims = nr_yaml_value(paper, "claims"), *conflicts = nr_yaml_value(paper, "conflicts");
	for (int64_t i = 0; claims && i < claims->count; i++) {
		const struct nr_yaml_node *c = claims->item[i];
		const char *where = text_at(c, "where"), *what = text_at(c, "what");
		struct nr_str s = { 0 };
		nr_str_printf(&s, "%s: %s: ", where ? where : "", what ? what : "");
		add_values(&s, nr_yaml_value(c, "value"), " to ");
		if (keep(&p->claims, &s, arena)) return -1;
	}
	for (int64_t i = 0; conflicts && i < conflicts->count; i++) {
		const struct nr_yaml_node *c = conflicts->item[i], *where = nr_yaml_value(c, "where");
		const char *fact = text_at(c, "fact");
		struct nr_str s = { 0 };
		if (!fact || !concerns(where, label)) continue;
		add_values(&s, where, ", ");
		nr_str_printf(&s, ": %s", fact);
		if (keep(&p->conflicts, &s, arena)) return -1;
	}
	return 0;
}

/* ---- a study's own record ------------------------------------------------------------------------------------------------------- */

int nr_sentences_read(struct nr_published *p, const struct nr_yaml_node *at, struct nr_arena *arena)
{
	struct { const char *key; struct nr_list *to; } of[] = { { "notes", &p->notes }, { "claims", &p->claims },
		{ "conflicts", &p->conflicts } };
	for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
		const struct nr_yaml_node *list = nr_yaml_value(at, of[k].key);
		for (int64_t i = 0; list && list->kind == NR_YAML_LIST && i < list->count; i++) {
			char *copy = list->item[i]->kind == NR_YAML_VALUE ? nr_arena_strdup(arena, list->item[i]->text) : NULL;
			if (list->item[i]->kind == NR_YAML_VALUE && (!copy || nr_list_add(of[k].to, copy, arena))) return -1;
		}
	}
	return 0;
}

void nr_sentences_write(const struct nr_published *p, struct nr_str *s)
{
	const struct { const char *key; const struct nr_list *of; } all[] = { { "notes", &p->notes }, { "claims", &p->claims },
		{ "conflicts", &p->conflicts } };
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		nr_str_printf(s, "\n  %s: [", all[k].key);
		for (int64_t i = 0; i < all[k].of->count; i++) {
			if (i) nr_str_add(s, ", ");
			nr_study_quote(s, all[k].of->item[i]);
		}
		nr_str_add(s, "]");
	}
}
