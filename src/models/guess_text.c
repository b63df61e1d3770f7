/* Which text model a file of tensors looks like, by names and shapes; config.json beside it says what they do not show. */
#include "models/guess.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "models/bert.h"
#include "models/hf_config.h"
#include "norma/safetensors.h"

struct look {
	const struct nr_st_file *file;
	const struct nr_model *model;
	const struct nr_naming *naming;
	struct nr_arena *arena;
	const struct nr_hf_config *config;  /* or NULL */
};

static const struct nr_st_tensor *find(const struct look *l, const char *entry)
{
	return nr_guess_find(l->file, l->naming, entry, l->arena);
}

/* How much can be seen through these names. Bare encoders of both families have the same ones: the config decides, or the
 * number of segments. */
static int visible(const struct look *l)
{
	static const char *const entries[] = { "word.weight", "position.weight", "type.weight", "embed.weight", "blocks.0.attn.qkv.weight",
		"blocks.0.attn.qkv.bias", "blocks.0.attn.res.weight", "blocks.0.attn.res.special.weight", "blocks.0.mlp.fc1.weight",
		"pooler.dense.weight", "mlm.dense.weight", "mlm.norm.weight", "nsp.weight", "simcse.dense.weight", "head.weight", NULL };
	const struct nr_st_tensor *type = find(l, "type.weight");
	const bool roberta = !strcmp(l->model->name, "roberta");
	int found = 0;
	for (int i = 0; entries[i]; i++) found += 2 * (find(l, entries[i]) != NULL);
	if (l->config) return found + !strcmp(l->config->type, l->model->name);
	return found + (type && type->nd == 2 && (type->shape[0] == 1) == roberta);
}

static bool is_matrix(const struct nr_st_tensor *t, int64_t width) { return t && t->nd == 2 && (!width || t->shape[1] == width); }

static bool measure(const struct look *l, struct nr_bert *c)
{
	const struct nr_st_tensor *word = find(l, "word.weight"), *place = find(l, "position.weight"), *type = find(l, "type.weight");
	const struct nr_st_tensor *fc1 = find(l, "blocks.0.mlp.fc1.weight"), *head = find(l, "head.weight");
	if (!is_matrix(word, 0) || word->shape[1] < 1 || word->shape[1] > 65536) return false;
	const int64_t C = word->shape[1];
	if (!is_matrix(place, C) || !is_matrix(type, C) || !is_matrix(fc1, C)) return false;
	*c = (struct nr_bert){ .vocab = word->shape[0], .dim = C, .positions = place->shape[0], .types = type->shape[0],
		.hidden = fc1->shape[0], .classes = is_matrix(head, C) ? head->shape[0] : -1, .pad = -1,
		.pool = find(l, "pooler.dense.weight") ? NR_BERT_POOLER : NR_BERT_CLS };
	for (char name[64]; c->depth < 1024; c->depth++) {
		snprintf(name, sizeof name, "blocks.%lld.mlp.fc1.weight", (long long)c->depth);
		if (!find(l, name)) break;
	}
	if (l->config) c->heads = l->config->heads, c->pad = l->config->pad;
	return c->depth > 0;
}

/* "key=value" if the value is known (not -1) and not what the conf has already. */
static void differ(struct nr_str *s, const struct nr_model_spec *m, const char *key, int64_t value)
{
	if (value >= 0 && nr_model_int(m, key) != value) nr_str_printf(s, "%s%s=%lld", s->len ? "," : "", key, (long long)value);
}

/* What the text of a model lacks to be the one seen. */
static const char *rest_of(const struct look *l, const struct nr_model_spec *m, const struct nr_bert *c)
{
	const struct nr_bert *has = m->conf;
	const int64_t pad = c->pad >= 0 ? c->pad : has->pad, room = c->positions - (has->skip_pads ? pad + 1 : 0);
	struct nr_str all = { 0 };
	differ(&all, m, "vocab", c->vocab);
	differ(&all, m, "dim", c->dim);
	differ(&all, m, "depth", c->depth);
	differ(&all, m, "heads", c->heads);
	differ(&all, m, "hidden", c->hidden);
	differ(&all, m, "positions", c->positions);
	differ(&all, m, "types", c->types);
	differ(&all, m, "pad", c->pad);
	differ(&all, m, "classes", c->classes);
	if (room > 0 && room < has->length) differ(&all, m, "length", room);
	if (l->config && l->config->act && strcmp(l->config->act, has->act))
		nr_str_printf(&all, "%sact=%s", all.len ? "," : "", l->config->act);
	if (has->pool == NR_BERT_POOLER && c->pool != NR_BERT_POOLER) nr_str_printf(&all, "%spool=cls", all.len ? "," : "");
	const char *text = all.failed ? NULL : nr_arena_strdup(l->arena, nr_str_text(&all));
	nr_str_release(&all);
	return text;
}

/* The preset of this width, depth and vocabulary if there is one, else the family. */
static const char *text_of(const struct look *l, const struct nr_bert *c)
{
	for (const struct nr_preset *p = l->model->presets;; p++) {
		struct nr_model_spec spec;
		struct nr_error err = { 0 };
		const char *name = p->name ? p->name : l->model->name;
		if (nr_model_parse(&spec, name, l->arena, &err)) return NULL;
		const struct nr_bert *has = spec.conf;
		const bool same = has->dim == c->dim && has->depth == c->depth && has->vocab == c->vocab && has->hidden == c->hidden;
		if (p->name && !same) continue;
		struct nr_bert like = *c;
		if (!l->config && p->name) like.heads = has->heads;     /* a preset knows better */
		else if (!l->config) like.heads = c->dim % 64 == 0 ? c->dim / 64 : c->dim % 32 == 0 ? c->dim / 32 : 1;
		const char *rest = rest_of(l, &spec, &like);
		return !rest ? NULL : *rest ? nr_arena_printf(l->arena, "%s:%s", name, rest) : name;
	}
}

static const char *part_of(const struct look *l, const char *part)
{
	char name[64];
	snprintf(name, sizeof name, "blocks.0.attn.res.%s.running_mean", part);
	return find(l, name) ? "bn" : "ln";
}

static const char *norms_of(const struct look *l)
{
	const double eps = l->config && l->config->eps > 0 ? l->config->eps : l->model->norms.eps;
	const char *text = eps == l->model->norms.eps ? "" : nr_arena_printf(l->arena, "eps=%.9g", eps);
	if (!text || !find(l, "blocks.0.attn.res.special.weight")) return text;
	return nr_arena_printf(l->arena, "%s%ssep(%s,%s)", text, *text ? " " : "", part_of(l, "special"), part_of(l, "rest"));
}

int nr_text_guess(struct nr_guess *g, const struct nr_st_file *f, struct nr_arena *arena)
{
	struct nr_hf_config config;
	const bool sure = nr_hf_config_read(&config, nr_st_path(f), arena) && config.heads > 0;
	int most = 0;
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		const struct nr_naming *const own = nr_naming_find(*m, "norma", NULL);
		for (const struct nr_naming *n = (*m)->reads == NR_READS_TEXT ? own : NULL; n;) {
			const struct look l = { f, *m, n, arena, sure ? &config : NULL };
			struct nr_bert c;
			const int seen = visible(&l);
			if (seen > most && measure(&l, &c)) {
				const char *text = text_of(&l, &c);
				if (text) *g = (struct nr_guess){ text, norms_of(&l), n->name, sure && config.act }, most = seen;
			}
			n = n == own ? (*m)->namings : n + 1;
			if (!n->name) break;
		}
	}
	return g->model && g->norms;
}
