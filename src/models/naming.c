/* What entries of models are called elsewhere: rules of struct nr_rename applied to names. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "models/names.h"

const struct nr_naming nr_naming_ours = { .name = "norma", .rules = (const struct nr_rename[]){ { NULL, NULL } } };

const struct nr_naming *nr_naming_find(const struct nr_model *m, const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	if (!strcmp(name, nr_naming_ours.name)) return &nr_naming_ours;
	for (const struct nr_naming *n = m->namings; n->name; n++) {
		if (!strcmp(n->name, name)) return n;
		nr_near_try(&near, n->name);
	}
	nr_near_try(&near, nr_naming_ours.name);
	nr_fail(err, NR_ENAME, "no naming", name, "%s has no such names", m->name);
	if (near.best) {
		nr_hint(err, "did you mean '%s'?", near.best);
		return NULL;
	}
	struct nr_str known = { 0 };
	for (const struct nr_naming *n = m->namings; n->name; n++) nr_str_printf(&known, "%s, ", n->name);
	nr_hint(err, "there are %s%s", nr_str_text(&known), nr_naming_ours.name);
	nr_str_release(&known);
	return NULL;
}

/* How much of s `what` stands for, which may have a number, '#'; 0: they differ. */
static size_t stands_for(const char *what, const char *s, long long *number)
{
	const char *at = s;
	for (; *what; what++) {
		char *end;
		if (*what == '#' && *at >= '0' && *at <= '9') *number = strtoll(at, &end, 10), at = end;
		else if (*what != *at++) return 0;
	}
	return (size_t)(at - s);
}

/* Where `what` stands in name at the beginning of a part, and how long it is there. */
static const char *part_at(const char *name, const char *what, size_t *length, long long *number)
{
	for (const char *s = name; s; s = strchr(s, '.') ? strchr(s, '.') + 1 : NULL)
		if ((*length = stands_for(what, s, number))) return s;
	return NULL;
}

/* A word of a right side, with the number of the left one. */
static void put_word(struct nr_str *all, const char *word, size_t length, long long number)
{
	for (size_t i = 0; i < length; i++) {
		if (word[i] != '#') {
			nr_str_printf(all, "%c", word[i]);
			continue;
		}
		const int by = word[i + 1] == '+' ? 1 : word[i + 1] == '-' ? -1 : 0;
		nr_str_printf(all, "%lld", number + by);
		i += by != 0;
	}
}

static bool marked(const struct nr_rename *r) { return *r->theirs && strchr("@~^%!", *r->theirs); }

/* Every word of text with the rule applied; a right side of several words makes several. */
static const char *apply(const struct nr_rename *r, const char *text, struct nr_arena *arena)
{
	struct nr_str all = { 0 };
	const char *theirs = r->theirs + marked(r);
	for (const char *s = text; *s; s += strcspn(s, " "), s += *s == ' ') {
		char word[256];
		size_t length;
		long long number = 0;
		snprintf(word, sizeof word, "%.*s", (int)strcspn(s, " "), s);
		const char *at = part_at(word, r->ours, &length, &number);
		if (!at) nr_str_printf(&all, "%s%s", all.len ? " " : "", word);
		for (const char *t = theirs; at && *t; t += strcspn(t, " "), t += *t == ' ') {
			nr_str_printf(&all, "%s%.*s", all.len ? " " : "", (int)(at - word), word);
			put_word(&all, t, strcspn(t, " "), number);
			nr_str_add(&all, at + length);
		}
	}
	const char *out = nr_str_keep(&all, arena);
	return out;
}

/* The same text with another beginning of each word. */
static const char *prefixed(const char *text, const char *prefix, const char *without, struct nr_arena *arena)
{
	struct nr_str all = { 0 };
	char word[256];
	const size_t cut = without ? strlen(without) : 0;
	for (int64_t share; (share = nr_naming_word(&text, word, sizeof word));) {
		nr_str_add(&all, all.len ? " " : "");
		if (share > 1) nr_str_printf(&all, "%lld*", (long long)share);
		nr_str_printf(&all, "%s%s", prefix ? prefix : "", word + (cut && !strncmp(word, without, cut) ? cut : 0));
	}
	const char *out = all.failed ? NULL : nr_arena_strdup(arena, nr_str_text(&all));
	nr_str_release(&all);
	return out;
}

const char *nr_naming_text(const struct nr_naming *naming, const char *entry, char *order, struct nr_arena *arena)
{
	const char *text = entry;
	*order = 0;
	for (const struct nr_scope_names *s = naming->scopes; s && s->scope; s++)
		if (!strncmp(entry, s->scope, strlen(s->scope))) return nr_naming_text(s->of, entry + strlen(s->scope), order, arena);
	for (const struct nr_rename *r = naming->rules; r->ours && text; r++) {
		size_t length;
		long long number;
		if (!strstr(text, r->ours) && !strchr(r->ours, '#')) continue;
		if (marked(r) && part_at(text, r->ours, &length, &number)) *order = *r->theirs;
		text = apply(r, text, arena);
	}
	return text && (naming->prefix || naming->without) ? prefixed(text, naming->prefix, naming->without, arena) : text;
}

static const struct nr_naming *with_rules(const struct nr_naming *n, const struct nr_numbers *numbers, struct nr_arena *arena)
{
	const struct nr_rename *first = n->numbered(numbers, arena);
	int64_t a = 0, b = 0;
	while (first && first[a].ours) a++;
	while (n->rules[b].ours) b++;
	struct nr_naming *both = nr_arena_alloc(arena, sizeof *both);
	struct nr_rename *rules = nr_arena_alloc(arena, (size_t)(a + b + 1) * sizeof *rules);
	if (!first || !both || !rules) return NULL;
	memcpy(rules, first, (size_t)a * sizeof *rules);
	memcpy(rules + a, n->rules, (size_t)(b + 1) * sizeof *rules);
	*both = *n;
	both->rules = rules;
	return both;
}

/* The same scopes with other names in them. */
static const struct nr_naming *with_scopes(const struct nr_naming *n, const struct nr_numbers *numbers, struct nr_arena *arena)
{
	int64_t count = 0;
	while (n->scopes[count].scope) count++;
	struct nr_naming *own = nr_arena_alloc(arena, sizeof *own);
	struct nr_scope_names *scopes = nr_arena_alloc(arena, (size_t)(count + 1) * sizeof *scopes);
	if (!own || !scopes) return NULL;
	memcpy(scopes, n->scopes, (size_t)(count + 1) * sizeof *scopes);
	for (int64_t i = 0; i < count; i++)
		if (!(scopes[i].of = nr_naming_numbered(scopes[i].of, numbers, arena))) return NULL;
	*own = *n;
	own->scopes = scopes;
	return own;
}

const struct nr_naming *nr_naming_numbered(const struct nr_naming *n, const struct nr_numbers *numbers, struct nr_arena *arena)
{
	bool scopes = false;
	if (n->numbered) n = with_rules(n, numbers, arena);
	for (const struct nr_scope_names *s = n ? n->scopes : NULL; s && s->scope; s++) scopes |= s->of->numbered != NULL;
	return scopes ? with_scopes(n, numbers, arena) : n;
}

int64_t nr_naming_word(const char **text, char *name, size_t size)
{
	const char *s = *text;
	const bool many = s[0] >= '2' && s[0] <= '9' && s[1] == '*';
	const int64_t share = many ? s[0] - '0' : 1;
	if (!*s) return 0;
	s += many ? 2 : 0;
	const size_t length = strcspn(s, " ");
	snprintf(name, size, "%.*s", (int)length, s);
	*text = s + length + (s[length] == ' ');
	return share;
}

int64_t nr_naming_parts(const char *text)
{
	char name[256];
	int64_t parts = 0, share;
	while ((share = nr_naming_word(&text, name, sizeof name))) parts += share;
	return parts;
}

/* ---- values with their order changed --------------------------------------------------------------------------------- */

int64_t nr_naming_place(char order, const struct nr_entry *e, int64_t k, int64_t patch, int64_t channels)
{
	if (order == '!') return k % e->d[1] * e->d[0] + k / e->d[1];
	const int64_t pixels = patch * patch;
	if (order == '@') return k % pixels * channels + k / pixels;            /* (channels,p,p) of ours, (p,p,channels) of theirs */
	if (order == '%') {             /* four tokens, down first, with all channels of each; there the four of each channel, along rows */
		const int64_t at = k % (4 * channels), token = at / channels;
		return k - at + at % channels * 4 + token % 2 * 2 + token / 2;
	}
	return order == '~' ? k / 3 * 3 + (k + 2) % 3 : k;                      /* DTN's positions: d^2 dx dy, dx dy d^2 */
}

bool nr_naming_ignores(const struct nr_naming *n, const char *name)
{
	for (const char *const *s = n->ignored; s && *s; s++) {
		const size_t want = strlen(*s) - 1, have = strlen(name);
		if (!strcmp(*s, name) || (**s == '*' && have >= want && !strcmp(*s + 1, name + have - want))) return true;
		if ((*s)[want] == '*' && !strncmp(*s, name, want)) return true;
	}
	return false;
}
