/* Grouping of runs: see arms.h. */
#include "report/arms.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_NAME = 14 };                               /* letters that fit beside a chart */

static const char *const aside[] = { "seed", "out", "store", "microscope", "gradients", NULL };            /* where and which, not what */
static const char *const norm_keys[] = { "norm", "placement", "patch_norm", "residual", NULL };

static bool among(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list)) return true;
	return false;
}

/* ---- settings ---------------------------------------------------------------------------------------------------------- */

/* The next setting that counts, from *i on; NULL at the end. */
static const struct nr_config_line *next_setting(const struct nr_config *c, int *i)
{
	while (*i < c->count && among(c->item[*i].key, aside)) ++*i;
	return *i < c->count ? &c->item[(*i)++] : NULL;
}

static bool same_settings(const struct nr_config *a, const struct nr_config *b)
{
	for (int i = 0, k = 0;;) {
		const struct nr_config_line *v = next_setting(a, &i), *w = next_setting(b, &k);
		if (!v || !w) return v == w;
		if (strcmp(v->key, w->key) || strcmp(v->value, w->value)) return false;
	}
}

static bool same_value(const struct nr_config *a, const struct nr_config *b, const char *key)
{
	const char *v = nr_config_find(a, key), *w = nr_config_find(b, key);
	return v == w || (v && w && !strcmp(v, w));
}

static const struct nr_config *settings_of(const struct nr_arms *a, int arm) { return &a->run[a->arm[arm].run[0]].settings; }

static bool differs(const struct nr_arms *a, const char *key)
{
	for (int i = 1; i < a->count; i++)
		if (!same_value(settings_of(a, 0), settings_of(a, i), key)) return true;
	return false;
}

/* What arms differ in beside the norms: keys of any arm. texts (one for each arm) get "key value, ..." */
static void find_differences(struct nr_arms *a, struct nr_str *keys, struct nr_str *texts)
{
	for (int m = 0; m < a->count; m++) {
		const struct nr_config *c = settings_of(a, m);
		for (int i = 0; i < c->count; i++) {
			const char *key = c->item[i].key;
			bool seen = among(key, aside) || among(key, norm_keys) || !strcmp(key, "-");
			for (int k = 0; k < m && !seen; k++) seen = nr_config_find(settings_of(a, k), key) != NULL;
			if (seen || !differs(a, key)) continue;
			nr_str_printf(keys, "%s%s", keys->len ? ", " : "", key);
			for (int k = 0; k < a->count; k++) {
				const char *value = nr_config_find(settings_of(a, k), key);
				nr_str_printf(&texts[k], "%s%s %s", texts[k].len ? ", " : "", key, value && *value ? value : "(none)");
			}
		}
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

/* As recorded; else as asked for; else as the header says it. */
static const char *plan_of(const struct nr_runfolder *r, struct nr_arena *a)
{
	const char *plan = nr_runfolder_env(r, "norms");
	if (plan) return nr_arena_strdup(a, plan);
	plan = nr_config_find(&r->settings, "norm");
	if (plan && *plan) return plan;
	char *header = nr_runfolder_header(r, "norms", a), *end = header ? strstr(header, " at ") : NULL;
	if (end) *end = 0;
	return header && *header ? header : "default norms";
}

static size_t letters(const char *text)
{
	size_t n = 0;
	for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

/* Letters, and what stands beside a chart: names that fit, else the letters. */
static int label_arms(struct nr_arms *a, struct nr_arena *arena)
{
	bool all_short = true;
	for (int i = 0; i < a->count; i++) {
		a->arm[i].letter = i < 26 ? nr_arena_printf(arena, "%c", 'A' + i) : nr_arena_printf(arena, "%d", i + 1);
		if (!a->arm[i].letter || !a->arm[i].name) return NR_EMEMORY;
		all_short &= letters(a->arm[i].name) <= SHORT_NAME;
	}
	for (int i = 0; i < a->count; i++) a->arm[i].label = all_short ? a->arm[i].name : a->arm[i].letter;
	return NR_OK;
}

static int name_arms(struct nr_arms *a, struct nr_arena *arena)
{
	for (int i = 0; i < a->count; i++) {
		struct nr_arm *m = &a->arm[i];
		m->name = plan_of(&a->run[m->run[0]], arena);
		if (!m->name) return NR_EMEMORY;
	}
	bool *twice = nr_arena_alloc(arena, (size_t)a->count * sizeof *twice);
	if (!twice) return NR_EMEMORY;
	for (int i = 0; i < a->count; i++)
		for (int k = 0; k < a->count; k++) twice[i] |= i != k && !strcmp(a->arm[i].name, a->arm[k].name);
	for (int i = 0; i < a->count; i++) {
		struct nr_arm *m = &a->arm[i];
		if (twice[i])
			m->name = *m->also ? nr_arena_printf(arena, "%s, %s", m->name, m->also)
					   : nr_arena_printf(arena, "%s, %d", m->name, i + 1);
	}
	return label_arms(a, arena);
}

static int describe(struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_str keys = { 0 }, *texts = calloc((size_t)a->count + 1, sizeof *texts);
	int code = texts ? NR_OK : NR_EMEMORY;
	if (!code) find_differences(a, &keys, texts);
	a->differ = nr_str_keep(&keys, arena);
	for (int i = 0; i < a->count && !code; i++) {
		a->arm[i].also = nr_str_keep(&texts[i], arena);
		if (!a->arm[i].also) code = NR_EMEMORY;
	}
	if (!a->differ) code = NR_EMEMORY;
	free(texts);
	return code ? code : name_arms(a, arena);
}

/* ---- grouping ---------------------------------------------------------------------------------------------------------- */

static bool repeats_seed(const struct nr_arms *a, const struct nr_arm *m, int run)
{
	for (int i = 0; i < m->distinct; i++)
		if (a->run[m->run[i]].seed == a->run[run].seed) return true;
	return false;
}

static void add_run(const struct nr_arms *a, struct nr_arm *m, int run)
{
	m->run[m->runs++] = run;
	if (repeats_seed(a, m, run)) return;
	m->run[m->runs - 1] = m->run[m->distinct];
	m->run[m->distinct++] = run;
}

int nr_arms_group(struct nr_arms *a, const struct nr_runfolder *run, int count, struct nr_arena *arena, struct nr_error *err)
{
	*a = (struct nr_arms){ .run = run, .runs = count, .arm = nr_arena_alloc(arena, ((size_t)count + 1) * sizeof *a->arm) };
	bool failed = !a->arm;
	for (int i = 0; i < count && !failed; i++) {
		int k = 0;
		while (k < a->count && !same_settings(settings_of(a, k), &run[i].settings)) k++;
		struct nr_arm *m = &a->arm[k];
		if (k == a->count) m->run = nr_arena_alloc(arena, (size_t)count * sizeof *m->run), a->count++;
		failed = !m->run;
		if (!failed) add_run(a, m, i);
	}
	if (failed || describe(a, arena)) return nr_fail(err, NR_EMEMORY, "cannot write the report", NULL, "out of memory");
	nr_arms_measure(a);
	return NR_OK;
}

int nr_arms_given(struct nr_arms *a, const struct nr_runfolder *run, int count, const int *of, const char *const *name, int arms,
	struct nr_arena *arena, struct nr_error *err)
{
	*a = (struct nr_arms){ .run = run, .runs = count, .arm = nr_arena_alloc(arena, ((size_t)arms + 1) * sizeof *a->arm), .count = arms,
		.differ = "" };
	bool failed = !a->arm;
	for (int m = 0; m < arms && !failed; m++) {
		a->arm[m] = (struct nr_arm){ .name = name[m], .also = "", .run = nr_arena_alloc(arena, ((size_t)count + 1) * sizeof(int)) };
		failed = !a->arm[m].run;
	}
	for (int i = 0; i < count && !failed; i++) {
		struct nr_arm *m = &a->arm[of[i]];
		m->run[m->runs++] = i;
		m->distinct++;
	}
	if (failed || label_arms(a, arena)) return nr_fail(err, NR_EMEMORY, "cannot write the report", NULL, "out of memory");
	nr_arms_measure(a);
	return NR_OK;
}
