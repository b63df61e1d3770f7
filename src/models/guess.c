/* Which model a file of tensors looks like, by names and shapes and a config.json beside it. See guess.h. */
#include "models/guess.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "models/names.h"
#include "norma/safetensors.h"

/* ---- what is in the file --------------------------------------------------------------------------------------------------- */

const struct nr_st_tensor *nr_look_find(const struct nr_look *l, const char *entry)
{
	char order;
	const char *text = nr_naming_text(l->naming, entry, &order, l->arena);
	char name[256];
	if (!text) return NULL;
	nr_naming_word(&text, name, sizeof name);
	return nr_st_find(l->file, name);
}

int64_t nr_look_rows(const struct nr_look *l, const char *entry, int64_t cols)
{
	const struct nr_st_tensor *t = nr_look_find(l, entry);
	return t && t->nd == 2 && (!cols || t->shape[1] == cols) ? t->shape[0] : -1;
}

int64_t nr_look_depth_at(const struct nr_look *l, const char *scope, const char *entry)
{
	int64_t depth = 0;
	for (char name[128]; depth < 1024; depth++) {
		snprintf(name, sizeof name, "%s.%lld.%s", scope, (long long)depth, entry);
		if (!nr_look_find(l, name)) break;
	}
	return depth;
}
int64_t nr_look_depth(const struct nr_look *l, const char *entry) { return nr_look_depth_at(l, "blocks", entry); }

static const char *kind_of_norm(const struct nr_look *l, const char *site, const char *part)
{
	char name[128];
	snprintf(name, sizeof name, "%s.%s.running_mean", site, part);
	return nr_look_find(l, name) ? "bn" : "ln";
}

const char *nr_look_sep(const struct nr_look *l, const char *site)
{
	char name[128];
	snprintf(name, sizeof name, "%s.special.weight", site);
	if (!nr_look_find(l, name)) return NULL;
	return nr_arena_printf(l->arena, "sep(%s,%s)", kind_of_norm(l, site, "special"), kind_of_norm(l, site, "rest"));
}

int64_t nr_root(int64_t n)
{
	int64_t side = 0;
	while ((side + 1) * (side + 1) <= n && side < 4096) side++;
	return side * side == n ? side : 0;
}

int64_t nr_heads_assumed(int64_t dim) { return dim % 64 == 0 ? dim / 64 : dim % 32 == 0 ? dim / 32 : 1; }

/* ---- what is noted of it --------------------------------------------------------------------------------------------------- */

enum how { SAW, KEY, AT_MOST, NOT, ASSUMED };
enum { MOST_NOTES = 40 };
struct nr_sighting {
	struct note { const char *option; enum how how; int64_t value; const char *text, *instead; } note[MOST_NOTES];
	int count;
	const char *norms;
	bool all;
};

static void add(struct nr_sighting *s, struct note n)
{
	if ((n.text || n.value >= 0) && s->count < MOST_NOTES) s->note[s->count++] = n;
}
void nr_saw(struct nr_sighting *s, const char *option, int64_t v) { add(s, (struct note){ option, SAW, .value = v }); }
void nr_saw_key(struct nr_sighting *s, const char *option, int64_t v) { add(s, (struct note){ option, KEY, .value = v }); }
void nr_saw_at_most(struct nr_sighting *s, const char *option, int64_t v) { add(s, (struct note){ option, AT_MOST, .value = v }); }
void nr_assumed(struct nr_sighting *s, const char *option, int64_t v) { add(s, (struct note){ option, ASSUMED, .value = v }); }
void nr_saw_text(struct nr_sighting *s, const char *option, const char *text)
{
	add(s, (struct note){ option, SAW, .value = -1, .text = text });
}
void nr_saw_key_text(struct nr_sighting *s, const char *option, const char *text)
{
	add(s, (struct note){ option, KEY, .value = -1, .text = text });
}
void nr_saw_not(struct nr_sighting *s, const char *option, const char *text, const char *instead)
{
	add(s, (struct note){ option, NOT, .value = -1, .text = text, .instead = instead });
}
void nr_saw_norms(struct nr_sighting *s, const char *plan) { s->norms = plan; }
void nr_saw_all(struct nr_sighting *s) { s->all = true; }

/* ---- the text of it -------------------------------------------------------------------------------------------------------- */

/* Is the option of this model as noted? */
static bool agrees(const struct nr_model_spec *m, const struct note *n)
{
	const struct nr_option *o = nr_option_find(m->of->options, n->option);
	char text[64];
	if (!o) return true;
	if (!n->text) return n->how == AT_MOST ? nr_model_int(m, n->option) <= n->value : nr_model_int(m, n->option) == n->value;
	return !strcmp(nr_option_text(o, m->conf, text, sizeof text), n->text) == (n->how != NOT);
}

/* What the text of a model lacks to be the one seen; *count: how many options. NULL: out of memory. */
static const char *rest_of(const struct nr_model_spec *m, bool preset, const struct nr_sighting *seen, struct nr_arena *arena, int *count)
{
	struct nr_str all = { 0 };
	*count = 0;
	for (int i = 0; i < seen->count; i++) {
		const struct note *n = &seen->note[i];
		if (agrees(m, n)) continue;
		++*count;
		if (preset && n->how == ASSUMED) continue;
		nr_str_printf(&all, "%s%s=", all.len ? "," : "", n->option);
		if (n->text) nr_str_add(&all, n->how == NOT ? n->instead : n->text);
		else nr_str_printf(&all, "%lld", (long long)n->value);
	}
	const char *text = all.failed ? NULL : nr_arena_strdup(arena, nr_str_text(&all));
	nr_str_release(&all);
	return text;
}

static bool out_of_question(const struct nr_model_spec *m, const struct nr_sighting *seen)
{
	for (int i = 0; i < seen->count; i++)
		if (seen->note[i].how == KEY && !agrees(m, &seen->note[i])) return true;
	return false;
}

/* The family, or the preset that says most of it; of equals the first one that has the family's name. only: no other preset. */
static const char *shortest(const struct nr_model *m, const struct nr_sighting *seen, const char *only, struct nr_arena *arena)
{
	const char *best = NULL;
	const size_t n_name = strlen(m->name);
	int least = MOST_NOTES + 1, count;
	for (const struct nr_preset *p = m->presets;; p++) {
		struct nr_model_spec spec;
		const char *name = p->name ? p->name : m->name;
		if (only && !p->name) return best;
		if (only && strcmp(only, p->name)) continue;
		if (nr_model_parse(&spec, name, arena, &(struct nr_error){ 0 })) return NULL;
		if (p->name && out_of_question(&spec, seen)) continue;
		const char *rest = rest_of(&spec, p->name != NULL, seen, arena, &count);
		if (!rest) return NULL;
		const bool known = best && !strncmp(best, m->name, n_name);
		if (count < least || (count == least && !known && !strncmp(name, m->name, n_name))) {
			best = *rest ? nr_arena_printf(arena, "%s:%s", name, rest) : name;
			least = count;
		}
		if (!p->name) return best;
	}
}

/* ---- all models ------------------------------------------------------------------------------------------------------------ */

static int fit(const struct nr_look *l)
{
	int found = 0;
	for (const char *const *s = l->model->file->signs; *s; s++) found += nr_look_find(l, *s) != NULL;
	return 2 * found + (l->model->file->fits ? l->model->file->fits(l) : 0);
}

/* The preset that timm's config.json names. */
static const char *architecture(const struct nr_look *l)
{
	const char *name = json_string_value(json_object_get(l->config, "architecture"));
	for (const struct nr_preset *p = l->model->presets; name && p->name; p++)
		if (!strcmp(p->name, name)) return name;
	return NULL;
}

static void consider(const struct nr_look *l, struct nr_guess *g, int *most)
{
	struct nr_sighting seen = { .norms = "" };
	const int found = fit(l);
	if (found <= *most || !l->model->file->measure(l, &seen) || !seen.norms) return;
	const char *named = architecture(l), *text = named ? shortest(l->model, &seen, named, l->arena) : NULL;
	if (text) seen.all = true;
	else text = shortest(l->model, &seen, NULL, l->arena);
	if (!text) return;
	*g = (struct nr_guess){ .model = text, .norms = seen.norms, .naming = l->naming->name, .sure = seen.all,
		.doubt = l->model->file->doubt };
	*most = found;
}

/* A naming for the blocks that the file has; NULL: out of memory. */
static const struct nr_naming *for_file(const struct nr_naming *n, const struct nr_st_file *f, struct nr_arena *arena)
{
	int64_t depth[NR_MAXLEVELS] = { 0 };
	if (n->depths) n->depths(f, depth);
	return nr_naming_numbered(n, depth, arena);
}

int nr_model_guess(struct nr_guess *g, const struct nr_st_file *f, struct nr_arena *arena)
{
	const char *weights = nr_st_path(f), *slash = strrchr(weights, '/');
	const char *path = nr_arena_printf(arena, "%.*sconfig.json", slash ? (int)(slash - weights) + 1 : 0, weights);
	json_t *config = path ? nr_json_load(path, &(struct nr_error){ 0 }) : NULL;
	int most = 0;
	*g = (struct nr_guess){ 0 };
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		if (!(*m)->file) continue;
		consider(&(struct nr_look){ f, *m, nr_naming_find(*m, "norma", NULL), config, arena }, g, &most);
		for (const struct nr_naming *n = (*m)->namings; n->name; n++) {
			const struct nr_naming *here = for_file(n, f, arena);
			if (here) consider(&(struct nr_look){ f, *m, here, config, arena }, g, &most);
		}
	}
	json_decref(config);
	return g->model != NULL;
}
