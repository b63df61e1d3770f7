/* Which model a file of tensors looks like, by names and shapes: for models of one stack of blocks behind a patch embedding.
 * Text models are in guess_text.c, graph models in guess_graph.c. */
#include "models/guess.h"

#include "base/mem.h"
#include "base/str.h"
#include "norma/model.h"
#include "norma/safetensors.h"

struct look {
	const struct nr_st_file *file;
	const struct nr_naming *naming;
	struct nr_arena *arena;
};

const struct nr_st_tensor *nr_guess_find(const struct nr_st_file *file, const struct nr_naming *naming, const char *entry,
	struct nr_arena *arena)
{
	bool pixels;
	const char *text = nr_naming_text(naming, entry, &pixels, arena);
	char name[256];
	if (!text) return NULL;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
	return nr_st_find(file, name);
}

static const struct nr_st_tensor *find(const struct look *l, const char *entry)
{
	return nr_guess_find(l->file, l->naming, entry, l->arena);
}

/* How much of a transformer can be seen through these names. */
static int visible(const struct look *l)
{
	static const char *const entries[] = { "patch_embed.proj.weight", "cls_token", "pos_embed", "blocks.0.attn.in.weight",
		"blocks.0.attn.qkv.weight", "blocks.0.mlp.in.weight", "blocks.0.mlp.fc1.weight", "final.weight", "fc.weight", "head.weight",
		NULL };
	int found = 0;
	for (int i = 0; entries[i]; i++) found += find(l, entries[i]) != NULL;
	return found;
}

struct sizes {
	int64_t image, channels, patch, dim, depth, heads, hidden, classes, registers, class_at;
	bool cls, qkv_bias, fc, pre_logits;
};

static int64_t root(int64_t n)
{
	int64_t side = 0;
	while ((side + 1) * (side + 1) <= n && side < 4096) side++;
	return side * side == n ? side : 0;
}

static bool measure(const struct look *l, struct sizes *s)
{
	const struct nr_st_tensor *proj = find(l, "patch_embed.proj.weight"), *fc1 = find(l, "blocks.0.mlp.fc1.weight");
	const struct nr_st_tensor *pos = find(l, "pos_embed"), *head = find(l, "head.weight"), *reg = find(l, "register_token");
	if (!proj || !fc1 || proj->nd != 4 || fc1->nd != 2 || proj->shape[0] < 1 || proj->shape[2] != proj->shape[3]) return false;
	*s = (struct sizes){ .dim = proj->shape[0], .channels = proj->shape[1], .patch = proj->shape[2], .hidden = fc1->shape[0],
		.classes = head && head->nd == 2 ? head->shape[0] : -1, .registers = reg && reg->nd == 3 ? reg->shape[1] : 0,
		.cls = find(l, "cls_token"), .qkv_bias = find(l, "blocks.0.attn.qkv.bias"), .fc = find(l, "fc.weight"),
		.pre_logits = find(l, "pre_logits.weight") };
	s->heads = s->dim % 64 == 0 ? s->dim / 64 : s->dim % 32 == 0 ? s->dim / 32 : 1;
	for (char name[64]; s->depth < 1024; s->depth++) {
		snprintf(name, sizeof name, "blocks.%lld.mlp.fc1.weight", (long long)s->depth);
		if (!find(l, name)) break;
	}
	if (pos && pos->nd == 3) {
		const int64_t rows = pos->shape[1];
		if (s->cls && root(rows - 1)) s->image = root(rows - 1) * s->patch;
		else s->image = root(rows) * s->patch, s->class_at = s->cls ? 10 : 0;          /* DTN's class token has no position */
	}
	return fc1->shape[1] == s->dim && s->dim <= 65536 && s->patch <= 512;
}

/* "key=value" if the value is known (not -1) and not what the conf has already. */
static void differ(struct nr_str *s, const struct nr_model_spec *m, const char *key, int64_t value)
{
	if (value >= 0 && nr_model_int(m, key) != value) nr_str_printf(s, "%s%s=%lld", s->len ? "," : "", key, (long long)value);
}

/* What the text of a model lacks to be the one seen. */
static const char *rest_of(const struct nr_model_spec *m, const struct sizes *s, struct nr_arena *arena)
{
	struct nr_str all = { 0 };
	differ(&all, m, "image", s->image);
	differ(&all, m, "channels", s->channels);
	differ(&all, m, "patch", s->patch);
	differ(&all, m, "dim", s->dim);
	differ(&all, m, "depth", s->depth);
	differ(&all, m, "heads", s->heads);
	differ(&all, m, "classes", s->classes);
	differ(&all, m, "registers", s->registers);
	differ(&all, m, "class_at", s->class_at);
	differ(&all, m, "class_token", s->cls);
	differ(&all, m, "qkv_bias", s->qkv_bias);
	differ(&all, m, "pre_logits", s->pre_logits);
	if (s->hidden != 4 * s->dim) nr_str_printf(&all, "%smlp=%.9g", all.len ? "," : "", (double)s->hidden / (double)s->dim);
	if (s->fc || !s->cls) nr_str_printf(&all, "%spool=avg%s", all.len ? "," : "", s->fc ? "" : ",fc_norm=0");
	const char *text = all.failed ? NULL : nr_arena_strdup(arena, nr_str_text(&all));
	nr_str_release(&all);
	return text;
}

static int commas(const char *text)
{
	int n = *text ? 1 : 0;
	for (; *text; text++) n += *text == ',';
	return n;
}

/* The family, or the preset of this width and depth that says most of it; of equals the one with timm's name. */
static const char *shortest(const struct nr_model *m, const struct sizes *s, struct nr_arena *arena)
{
	const char *best = NULL;
	int least = 100;
	for (const struct nr_preset *p = m->presets;; p++) {
		struct nr_model_spec spec;
		struct nr_error err = { 0 };
		const char *name = p->name ? p->name : m->name;
		if (nr_model_parse(&spec, name, arena, &err)) return NULL;
		struct sizes like = *s;
		const bool same = nr_model_int(&spec, "dim") == s->dim && nr_model_int(&spec, "depth") == s->depth &&
			nr_model_int(&spec, "patch") == s->patch;
		if (p->name && !same) continue;
		if (p->name) like.heads = nr_model_int(&spec, "heads");         /* a preset knows better */
		const char *rest = rest_of(&spec, &like, arena);
		if (!rest) return NULL;
		const int n = commas(rest) + (like.heads != s->heads), known = best && !strncmp(best, m->name, strlen(m->name));
		if (n < least || (n == least && !known && !strncmp(name, m->name, strlen(m->name)))) {
			best = *rest ? nr_arena_printf(arena, "%s:%s", name, rest) : name;
			least = n;
		}
		if (!p->name) return best;
	}
}

static const char *norms_of(const struct look *l)
{
	const bool in = find(l, "patch.in.weight"), out = find(l, "patch.out.weight");
	return in && out ? "patch=dual" : in ? "patch=pre" : out ? "patch=post" : "";
}

int nr_model_guess(struct nr_guess *g, const struct nr_st_file *f, struct nr_arena *arena)
{
	int most = 0;
	*g = (struct nr_guess){ 0 };
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		if ((*m)->reads != NR_READS_IMAGE) continue;
		const struct nr_naming *const own = nr_naming_find(*m, "norma", NULL);
		for (const struct nr_naming *n = own;;) {
			const struct look l = { f, n, arena };
			struct sizes s;
			const int seen = visible(&l);
			if (seen > most && measure(&l, &s) && s.depth > 0 && s.image > 0) {
				const char *text = shortest(*m, &s, arena);
				if (text) *g = (struct nr_guess){ .model = text, .norms = norms_of(&l), .naming = n->name }, most = seen;
			}
			n = n == own ? (*m)->namings : n + 1;
			if (!n->name) break;
		}
	}
	return g->model || nr_text_guess(g, f, arena) || nr_graph_guess(g, f, arena);
}
