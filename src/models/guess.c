/* Which model a file of tensors looks like, by names and shapes and a config.json beside it. See guess.h. */
#include "models/guess.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "models/names.h"
#include "norma/nn.h"
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
	char order = 0;
	if (t) nr_naming_text(l->naming, entry, &order, l->arena);
	const int row = order == '!';                           /* the matrix is transposed there */
	return t && t->nd == 2 && (!cols || t->shape[1 - row] == cols) ? t->shape[row] : -1;
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
enum { NAMED = 1000 };                      /* a config.json that names one of a family's architectures settles the family */
enum { NEAR = 8 };                          /* signs, doubled, that a model may lack more than another and fit better all the same */
struct nr_sighting {
	struct note { const char *option; enum how how; int64_t value; const char *text, *instead; } note[MOST_NOTES];
	int count;
	const char *norms, *misfit;
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
void nr_saw_misfit(struct nr_sighting *s, const char *why)
{
	if (!s->misfit) s->misfit = why;
}

static void value_text(const struct note *n, char *text, size_t size)
{
	if (n->text) snprintf(text, size, "%s", n->text);
	else snprintf(text, size, "%lld", (long long)n->value);
}

bool nr_seen_text(const struct nr_sighting *s, const char *option, char *text, size_t size)
{
	for (int i = 0; i < s->count; i++) {
		const struct note *n = &s->note[i];
		if (strcmp(n->option, option) != 0 || (n->how != SAW && n->how != KEY)) continue;
		value_text(n, text, size);
		return true;
	}
	return false;
}

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
	const char *text = nr_str_keep(&all, arena);
	return text;
}

static bool out_of_question(const struct nr_model_spec *m, const struct nr_sighting *seen)
{
	for (int i = 0; i < seen->count; i++)
		if (seen->note[i].how == KEY && !agrees(m, &seen->note[i])) return true;
	return false;
}

/* One of the family's presets, or of the architectures that it knows by name, each once; NULL: there is none left. */
static const char *name_at(const struct nr_model *m, int64_t i)
{
	for (const struct nr_preset *p = m->presets; p->name; p++)
		if (i-- == 0) return p->name;
	for (const struct nr_architecture *a = m->known; a && a->name; a++)
		if (i-- == 0) return a->name;
	return NULL;
}

/* The family, or the preset that says most of it; of equals the first one that has the family's name. only: no other name. */
static const char *shortest(const struct nr_model *m, const struct nr_sighting *seen, const char *only, struct nr_arena *arena)
{
	const char *best = NULL, *name;
	const size_t n_name = strlen(m->name);
	int least = MOST_NOTES + 1, count;
	for (int64_t i = 0; i >= 0; i = name ? i + 1 : -1) {
		struct nr_model_spec spec;
		name = only ? (i ? NULL : only) : name_at(m, i);
		if (only && !name) return best;
		if (nr_model_parse(&spec, name ? name : m->name, arena, &(struct nr_error){ 0 })) return NULL;
		if (name && !only && out_of_question(&spec, seen)) continue;
		const char *rest = rest_of(&spec, name != NULL, seen, arena, &count);
		if (!rest) return NULL;
		const bool known = best && !strncmp(best, m->name, n_name), ours = !strncmp(name ? name : m->name, m->name, n_name);
		if (count < least || (count == least && !known && ours)) {
			best = *rest ? nr_arena_printf(arena, "%s:%s", name ? name : m->name, rest) : name ? name : m->name;
			least = count;
		}
	}
	return best;
}

/* ---- does it fit? ---------------------------------------------------------------------------------------------------------- */

/* Records the model without memory for its values: are its entries the file's tensors? */
static bool matches(const struct nr_look *l, const char *text, const char *norms, const char **why)
{
	struct nr_model_spec m;
	struct nr_error err = { 0 };
	struct nr_store *store = NULL;
	bool ok = false;
	*why = NULL;
	if (nr_model_parse(&m, text, l->arena, &err) || nr_store_make(&store, 0, &err)) return false;
	struct nr_net *n = nr_net_make(store);
	if (n && !nr_norms_use(n, norms, &m.norms, &err)) {
		const struct nr_inputs in = nr_model_inputs(n, &m, 1);
		nr_t *pooled = m.of->pool(n, nr_model_tokens(n, &m, &in), m.conf);
		if (nr_look_find(l, "head.weight")) nr_model_head(n, &m, pooled);
		if (!nr_norms_done(n, &err)) ok = nr_naming_matches(store, l->file, l->naming, l->arena, why);
		else *why = nr_arena_strdup(l->arena, err.detail);
	}
	nr_net_free(n);
	nr_store_free(store);
	return ok;
}

/* Everything that decides what a model computes, as text: two names of the same say the same. */
static const char *essence(const struct nr_model_spec *m, struct nr_arena *arena)
{
	const char *text = nr_arena_printf(arena, "%s;%s;%s;%g", m->norms.norm, m->norms.plan ? m->norms.plan : "",
		m->norms.rules ? m->norms.rules : "", m->norms.eps);
	for (const struct nr_option *o = m->of->options; o->name && text; o++) {
		char value[128];
		text = nr_arena_printf(arena, "%s;%s", text, nr_option_text(o, m->conf, value, sizeof value));
	}
	return text;
}

/* Options that a preset may leave to the file. */
static bool is_free(const char *option)
{
	return !strcmp(option, "image") || !strcmp(option, "classes") || !strcmp(option, "channels");
}

/* The text of a preset with what the file says of pictures and classes; NULL: another of its options is not as seen. */
static const char *as_seen(const struct nr_model_spec *m, const char *name, const struct nr_sighting *seen, struct nr_arena *arena)
{
	const char *text = name;
	for (int i = 0; i < seen->count && text; i++) {
		const struct note *n = &seen->note[i];
		if (n->how == ASSUMED || agrees(m, n)) continue;
		if (!is_free(n->option)) return NULL;
		text = n->text ? nr_arena_printf(arena, "%s%c%s=%s", text, strchr(text, ':') ? ',' : ':', n->option, n->text)
			: nr_arena_printf(arena, "%s%c%s=%lld", text, strchr(text, ':') ? ',' : ':', n->option, (long long)n->value);
	}
	return text;
}

/* The presets that the file could be, by its tensors alone. Of those that compute the same, one: the first that has the family's name.
 * Their texts with commas between in *all, the first one in *first. How many. */
static int possible(const struct nr_look *l, const struct nr_sighting *seen, const char **first, const char **all)
{
	enum { MOST = 64 };
	const char *kind[MOST], *text[MOST], *name, *why;
	const size_t n_name = strlen(l->model->name);
	int count = 0;
	for (int64_t i = 0; (name = name_at(l->model, i)) && count < MOST; i++) {
		struct nr_model_spec m;
		int k = 0;
		if (nr_model_parse(&m, name, l->arena, &(struct nr_error){ 0 })) continue;
		const char *full = as_seen(&m, name, seen, l->arena);
		if (!full || nr_model_parse(&m, full, l->arena, &(struct nr_error){ 0 }) || !(kind[count] = essence(&m,
			l->arena))) continue;
		while (strcmp(kind[k], kind[count])) k++;
		if (k == count && !matches(l, full, "", &why)) continue;
		if (k == count || (strncmp(text[k], l->model->name, n_name) && !strncmp(full, l->model->name, n_name))) text[k] = full;
		count += k == count;
	}
	*first = count ? text[0] : NULL;
	*all = "";
	for (int k = 0; k < count && *all; k++) *all = nr_arena_printf(l->arena, "%s%s%s", *all, k ? ", " : "", text[k]);
	return *all ? count : 0;
}

/* ---- all models ------------------------------------------------------------------------------------------------------------ */

/* The preset that timm's config.json names. */
static const char *architecture(const struct nr_look *l)
{
	const char *name = json_string_value(json_object_get(l->config, "architecture")), *ours;
	for (int64_t i = 0; name && (ours = name_at(l->model, i)); i++)
		if (!strcmp(ours, name)) return ours;
	return NULL;
}

/* Options that go by others: the pooling is a setting of its own, windows are no larger than the grid. */
static bool varies(const char *option)
{
	return is_free(option) || !strcmp(option, "pool") || !strcmp(option, "fc_norm") || !strcmp(option, "windows");
}

/* Why the tensors are not those of that architecture, though config.json names it and no argument beside the name says so. */
static const char *another(const struct nr_look *l, const struct nr_sighting *seen, const char *named)
{
	struct nr_model_spec m;
	const bool as_named = !nr_config_overrides(l, NULL);
	if (nr_model_parse(&m, named, l->arena, &(struct nr_error){ 0 })) return NULL;
	for (int i = 0; i < seen->count; i++) {
		const struct note *n = &seen->note[i];
		char text[128];
		if (agrees(&m, n) || (n->how != KEY && (n->how != SAW || !as_named || varies(n->option)))) continue;
		if (n->how == KEY && nr_config_overrides(l, n->option)) continue;
		value_text(n, text, sizeof text);
		return nr_arena_printf(l->arena, "its config.json names '%.100s', which has another %s than the %s of its tensors", named,
			n->option, text);
	}
	return NULL;
}

static int fit(const struct nr_look *l)
{
	int found = 0;
	for (const char *const *s = l->model->file->signs; *s; s++) found += nr_look_find(l, *s) != NULL;
	return 2 * found + (architecture(l) ? NAMED : 0) + (l->model->file->fits ? l->model->file->fits(l) : 0);
}

/* A model of pictures: what the config.json names, what tensors and config.json say together, or the one preset that fits. */
static void settle(const struct nr_look *l, const struct nr_sighting *seen, struct nr_guess *g)
{
	const char *named = architecture(l), *text = named ? shortest(l->model, seen, named, l->arena) : NULL, *first, *why;
	const char *misfit = seen->misfit ? seen->misfit : nr_config_misfit(l, seen);
	if (!misfit && named) misfit = another(l, seen, named);
	if (misfit) {
		g->misfit = misfit;
		g->sure = false;
		return;
	}
	if (text) {
		const bool own = matches(l, text, "", &why);            /* the norms of that architecture; else those seen */
		g->complete = own || matches(l, text, seen->norms, &g->misfit);
		g->model = text;
		g->norms = own ? "" : seen->norms;
		g->sure = g->complete;
		return;
	}
	const char *stranger = named ? NULL : json_string_value(json_object_get(l->config, "architecture"));
	if (stranger) {                                       /* it may compute something else with the same tensors */
		g->sure = false;
		if (matches(l, g->model, g->norms, &g->misfit))
			g->misfit = nr_arena_printf(l->arena, "its config.json names '%.100s', which is not known", stranger);
		return;
	}
	const int count = seen->all ? 0 : possible(l, seen, &first, &g->others);
	if (count > 0) {
		g->model = first;
		g->norms = "";
		g->sure = count == 1;
		g->complete = true;
		if (g->sure) g->others = "";
	} else {
		g->others = "";
		g->complete = matches(l, g->model, g->norms, &g->misfit);
		if (!g->complete && !*g->norms && matches(l, g->model, "rms", &why)) {         /* gains without biases */
			g->norms = "rms";
			g->complete = true;
		}
		g->sure = seen->all && g->complete;
	}
}

static void consider(const struct nr_look *l, struct nr_guess *best, int *most)
{
	struct nr_sighting seen = { .norms = "" };
	const int found = fit(l);
	if (found <= 0 || !l->model->file->measure(l, &seen) || !seen.norms) return;
	if (best->complete ? found <= *most : found < *most - NEAR) return;
	const char *text = shortest(l->model, &seen, NULL, l->arena);
	if (!text) return;
	struct nr_guess g = { .model = text, .norms = seen.norms, .naming = l->naming->name, .sure = seen.all, .others = "",
		.doubt = l->model->file->doubt };
	if (l->model->reads == NR_PICTURES) settle(l, &seen, &g);
	else {
		const char *named = architecture(l), *named_text = named ? shortest(l->model, &seen, named, l->arena) : NULL;
		if (named_text) g.model = named_text, g.sure = true;
		g.complete = true;
	}
	if (best->model && (best->complete > g.complete || (best->complete == g.complete && found <= *most))) return;
	*best = g;
	*most = found;
}

/* A naming for the blocks that the file has; NULL: out of memory. */
static const struct nr_naming *for_file(const struct nr_naming *n, const struct nr_st_file *f, struct nr_arena *arena)
{
	struct nr_numbers numbers = { .levels = 0 };
	if (n->depths) n->depths(f, numbers.depth);
	return nr_naming_numbered(n, &numbers, arena);
}

bool nr_json_three(const json_t *list, double *to)
{
	for (size_t i = 0; i < 3; i++) {
		if (!json_is_number(json_array_get(list, i))) return false;
		to[i] = json_number_value(json_array_get(list, i));
	}
	return true;
}

static void read_input(struct nr_guess *g, const json_t *of)
{
	double mean[3], std[3];
	if (nr_json_three(json_object_get(of, "mean"), mean) && nr_json_three(json_object_get(of, "std"), std)) {
		memcpy(g->mean, mean, sizeof mean);
		memcpy(g->std, std, sizeof std);
	}
	if (json_is_number(json_object_get(of, "crop_pct"))) g->crop = json_number_value(json_object_get(of, "crop_pct"));
}

/* A file beside the weights; NULL: there is none, or *damage says what is wrong with it. */
static json_t *beside(const struct nr_st_file *f, const char *name, struct nr_arena *arena, const char **damage)
{
	const char *weights = nr_st_path(f), *slash = strrchr(weights, '/');
	const char *path = nr_arena_printf(arena, "%.*s%s", slash ? (int)(slash - weights) + 1 : 0, weights, name);
	struct nr_error err = { 0 };
	if (!path || access(path, F_OK)) return NULL;
	json_t *config = nr_json_load(path, &err);
	if (config && json_is_object(config)) return config;
	*damage = nr_arena_printf(arena, "the %s beside it cannot be read: %s", name, config ? "it is not an object" : err.detail);
	json_decref(config);
	return NULL;
}

int nr_model_guess(struct nr_guess *g, const struct nr_st_file *f, struct nr_arena *arena) { return nr_tower_guess(g, f, -1, arena); }

int nr_tower_guess(struct nr_guess *g, const struct nr_st_file *f, int reads, struct nr_arena *arena)
{
	const char *damage = NULL;
	json_t *config = beside(f, "config.json", arena, &damage);
	if (!config && !damage) config = beside(f, "open_clip_config.json", arena, &damage);
	int most = 0;
	*g = (struct nr_guess){ 0 };
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		if (!(*m)->file || (reads >= 0 && (int)(*m)->reads != reads)) continue;
		consider(&(struct nr_look){ f, *m, nr_naming_find(*m, "norma", NULL), config, arena }, g, &most);
		for (const struct nr_naming *n = (*m)->namings; n->name; n++) {
			const struct nr_naming *here = for_file(n, f, arena);
			if (here) consider(&(struct nr_look){ f, *m, here, config, arena }, g, &most);
		}
	}
	read_input(g, json_object_get(config, json_object_get(config, "preprocess_cfg") ? "preprocess_cfg" : "pretrained_cfg"));
	g->config = config != NULL;
	if (damage) {
		g->sure = g->complete = false;
		g->misfit = damage;
		g->others = "";
	}
	json_decref(config);
	return g->model != NULL;
}
