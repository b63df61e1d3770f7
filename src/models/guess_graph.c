/* Which Graphormer a file of tensors is, by names and shapes. They show all sizes but how many hops count and where distances are
 * cut; pre- or post-norm shows only in a final norm that nothing reads. config.json beside the file says these. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "models/graphormer.h"
#include "models/guess.h"
#include "models/hf_config.h"
#include "norma/safetensors.h"

struct look {
	const struct nr_st_file *file;
	const struct nr_model *model;
	const struct nr_naming *naming;
	struct nr_arena *arena;
	const json_t *config;               /* or NULL */
};

static const struct nr_st_tensor *find(const struct look *l, const char *entry)
{
	bool pixels;
	const char *text = nr_naming_text(l->naming, entry, &pixels, l->arena);
	char name[256];
	if (!text) return NULL;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
	return nr_st_find(l->file, name);
}

/* Rows of a table of this width (0: any); -1: it is not there. */
static int64_t rows(const struct look *l, const char *entry, int64_t width)
{
	const struct nr_st_tensor *t = find(l, entry);
	return t && t->nd == 2 && (!width || t->shape[1] == width) ? t->shape[0] : -1;
}

static bool measure(const struct look *l, struct nr_graphormer *c)
{
	const struct nr_st_tensor *atom = find(l, "atom.weight"), *distance = find(l, "bias.distance.weight");
	if (!atom || !distance || atom->nd != 2 || distance->nd != 2 || atom->shape[1] < 1 || distance->shape[1] < 1) return false;
	const int64_t C = atom->shape[1], H = distance->shape[1];
	if (C > 65536 || H > 1024 || C % H) return false;
	*c = (struct nr_graphormer){ .dim = C, .heads = H, .atoms = atom->shape[0] - 1, .distances = distance->shape[0],
		.bonds = rows(l, "bias.edge.weight", H) - 1, .in_degrees = rows(l, "in_degree.weight", C),
		.out_degrees = rows(l, "out_degree.weight", C), .hidden = rows(l, "blocks.0.mlp.fc1.weight", C),
		.classes = rows(l, "head.weight", C), .edges = NR_EDGES_SIMPLE, .hop_matrices = -1, .hops = -1, .cut = -1 };
	const int64_t hops = rows(l, "bias.hop.weight", 1);
	if (hops > 0) c->edges = NR_EDGES_MULTI_HOP, c->hop_matrices = hops / (H * H);
	for (char name[64]; c->depth < 1024; c->depth++) {
		snprintf(name, sizeof name, "blocks.%lld.mlp.fc1.weight", (long long)c->depth);
		if (!find(l, name)) break;
	}
	const json_t *most = json_object_get(l->config, "multi_hop_max_dist"), *cut = json_object_get(l->config, "spatial_pos_max");
	if (json_is_integer(most)) c->hops = json_integer_value(most) > 0 ? json_integer_value(most) : 0;
	if (json_is_integer(cut) && json_integer_value(cut) >= 0) c->cut = json_integer_value(cut);
	return c->depth > 0 && c->atoms > 0 && c->bonds > 0 && c->in_degrees > 0 && c->out_degrees > 0 && c->hidden > 0;
}

static void differ(struct nr_str *s, const struct nr_model_spec *m, const char *key, int64_t value)
{
	if (value >= 0 && nr_model_int(m, key) != value) nr_str_printf(s, "%s%s=%lld", s->len ? "," : "", key, (long long)value);
}

/* The preset of this width, depth and number of heads if there is one, else the family, with what differs. */
static const char *text_of(const struct look *l, const struct nr_graphormer *c)
{
	const char *name = l->model->name;
	for (const struct nr_preset *p = l->model->presets; p->name; p++) {
		struct nr_model_spec m;
		if (nr_model_parse(&m, p->name, l->arena, &(struct nr_error){ 0 })) return NULL;
		const struct nr_graphormer *has = m.conf;
		if (has->dim == c->dim && has->depth == c->depth && has->heads == c->heads) name = p->name;
	}
	struct nr_model_spec m;
	struct nr_str s = { 0 };
	if (nr_model_parse(&m, name, l->arena, &(struct nr_error){ 0 })) return NULL;
	const struct { const char *key; int64_t value; } all[] = { { "dim", c->dim }, { "depth", c->depth }, { "heads", c->heads },
		{ "hidden", c->hidden }, { "atoms", c->atoms }, { "bonds", c->bonds }, { "in_degrees", c->in_degrees },
		{ "out_degrees", c->out_degrees }, { "distances", c->distances }, { "hop_matrices", c->hop_matrices }, { "hops", c->hops },
		{ "cut", c->cut }, { "classes", c->classes } };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) differ(&s, &m, all[i].key, all[i].value);
	if (c->edges == NR_EDGES_SIMPLE) nr_str_printf(&s, "%sedges=simple,paths=0", s.len ? "," : "");
	const char *act = json_string_value(json_object_get(l->config, "activation_fn")), *ours = act ? nr_hf_act(act) : NULL;
	if (ours && strcmp(ours, "gelu")) nr_str_printf(&s, "%sact=%s", s.len ? "," : "", ours);
	const char *text = s.failed ? NULL : !s.len ? name : nr_arena_printf(l->arena, "%s:%s", name, nr_str_text(&s));
	nr_str_release(&s);
	return text;
}

static const char *part_of(const struct look *l, const char *site, const char *part)
{
	char name[80];
	snprintf(name, sizeof name, "blocks.0.%s.%s.running_mean", site, part);
	return find(l, name) ? "bn" : "ln";
}

static const char *norms_of(const struct look *l)
{
	const json_t *said = json_object_get(l->config, "pre_layernorm");
	const bool ours = !strcmp(l->naming->name, "norma");    /* other names are the same for both placements */
	const bool spare = nr_st_find(l->file, "encoder.graph_encoder.final_layer_norm.weight") ||
		nr_st_find(l->file, "graph_encoder.final_layer_norm.weight");
	const bool pre = ours ? find(l, "blocks.0.attn.in.weight") || find(l, "blocks.0.attn.in.special.weight")
			      : said ? json_is_true(said) : spare;
	const char *site = pre ? "attn.in" : "attn.res", *embed = find(l, "embed.weight") ? "" : " embed=none";
	const char *place = pre ? " placement=pre" : "";
	char name[80];
	snprintf(name, sizeof name, "blocks.0.%s.special.weight", site);
	if (find(l, name))
		return nr_arena_printf(l->arena, "sep(%s,%s)%s%s", part_of(l, site, "special"), part_of(l, site, "rest"), place, embed);
	return *place || *embed ? nr_arena_printf(l->arena, "ln%s%s", place, embed) : "";
}

int nr_graph_guess(struct nr_guess *g, const struct nr_st_file *f, struct nr_arena *arena)
{
	const char *weights = nr_st_path(f), *slash = strrchr(weights, '/');
	const char *path = nr_arena_printf(arena, "%.*sconfig.json", slash ? (int)(slash - weights) + 1 : 0, weights);
	json_t *config = path ? nr_json_load(path, &(struct nr_error){ 0 }) : NULL;
	const char *type = json_string_value(json_object_get(config, "model_type"));
	const bool sure = type && !strcmp(type, "graphormer");
	int most = 0;
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		const struct nr_naming *const own = nr_naming_find(*m, "norma", NULL);
		for (const struct nr_naming *n = (*m)->reads == NR_READS_GRAPH ? own : NULL; n;) {
			const struct look l = { f, *m, n, arena, sure ? config : NULL };
			struct nr_graphormer c;
			const int seen = 1 + (find(&l, "head.weight") != NULL);
			const char *text = seen > most && measure(&l, &c) ? text_of(&l, &c) : NULL;
			if (text) *g = (struct nr_guess){ text, norms_of(&l), n->name, sure }, most = seen;
			n = n == own ? (*m)->namings : n + 1;
			if (!n->name) break;
		}
	}
	json_decref(config);
	return g->model && g->norms;
}
