/* The registry of models, and their text form. */
#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"
#include "models/names.h"
#include "norma/model.h"
#include "norma/nn.h"

#define MODEL(name) extern const struct nr_model nr_model_##name;
#include "models/models.def"
#undef MODEL

#define MODEL(name) &nr_model_##name,
static const struct nr_model *const built_in[] = {
#include "models/models.def"
	NULL
};
#undef MODEL

const struct nr_model *const *nr_models(void) { return NR_REGISTRY(NR_OF_MODELS, nr_model, built_in); }

/* The nearest of all names, for a message. */
static int no_such(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		nr_near_try(&near, (*m)->name);
		for (const struct nr_preset *p = (*m)->presets; p->name; p++) nr_near_try(&near, p->name);
		for (const struct nr_architecture *a = (*m)->known; a && a->name; a++) nr_near_try(&near, a->name);
	}
	nr_fail(err, NR_ENAME, "no model", name, "no such name");
	return nr_hint(err, near.best ? "did you mean '%s'?" : "`norma models` lists them", near.best);
}

/* The family of that name, or the one that has such a preset or architecture. */
static const struct nr_model *find(const char *name, const struct nr_preset **preset, const struct nr_architecture **known,
	struct nr_error *err)
{
	*preset = NULL;
	*known = NULL;
	for (const struct nr_model *const *m = nr_models(); *m; m++) {
		if (!strcmp((*m)->name, name)) return *m;
		for (const struct nr_preset *p = (*m)->presets; p->name; p++)
			if (!strcmp(p->name, name)) {
				*preset = p;
				return *m;
			}
		for (const struct nr_architecture *a = (*m)->known; a && a->name; a++)
			if (!strcmp(a->name, name)) {
				*known = a;
				return *m;
			}
	}
	no_such(name, err);
	return NULL;
}

/* "rms attn.qk=rms eps=1e-5": a norm of its own, and items that hold before the user's. */
static int take_norms(struct nr_model_spec *m, const char *text, struct nr_arena *arena)
{
	const size_t first = strcspn(text, " ");
	const bool norm = first && !memchr(text, '=', first);
	m->norms.rules = text + (norm ? first : 0);
	if (norm) m->norms.norm = nr_arena_printf(arena, "%.*s", (int)first, text);
	return m->norms.norm ? NR_OK : NR_EMEMORY;
}

int nr_model_parse(struct nr_model_spec *m, const char *text, struct nr_arena *arena, struct nr_error *err)
{
	const struct nr_preset *preset;
	const struct nr_architecture *known;
	const size_t length = strcspn(text, ":");
	char name[128];
	snprintf(name, sizeof name, "%.*s", (int)length, text);
	*m = (struct nr_model_spec){ .of = find(name, &preset, &known, err), .text = nr_arena_strdup(arena, text) };
	if (!m->of) return err->code;
	m->conf = nr_arena_alloc(arena, m->of->conf_size + 1);
	if (!m->conf || !m->text) return nr_fail(err, NR_EMEMORY, "cannot read the model", text, "out of memory");
	m->norms = m->of->norms;
	for (const struct nr_preset *p = m->of->plans; p && p->name && preset; p++)
		if (!strcmp(p->name, preset->name))
			m->norms.plan = p->text;
	nr_option_defaults(m->of->options, m->conf);
	if (known && take_norms(m, known->norms, arena)) return nr_fail(err, NR_EMEMORY, "cannot read the model", text, "out of memory");
	const char *own = preset ? preset->text : known ? known->text : "";
	if (nr_option_parse(m->of->options, m->conf, own, arena, err)) return err->code;
	return nr_option_parse(m->of->options, m->conf, text[length] ? text + length + 1 : "", arena, err);
}

int64_t nr_model_int(const struct nr_model_spec *m, const char *name)
{
	const struct nr_option *o = nr_option_find(m->of->options, name);
	int64_t value = -1;
	char text[64];
	if (!o) return -1;
	nr_option_text(o, m->conf, text, sizeof text);
	if (o->type == NR_TBOOL) return !strcmp(text, "true");
	return nr_parse_int(text, &value) ? value : -1;
}

int nr_model_set(struct nr_model_spec *m, const char *name, const char *value, struct nr_arena *arena, struct nr_error *err)
{
	return nr_option_set(m->of->options, m->conf, name, value, arena, err);
}

static struct nr_inputs graph_inputs(struct nr_net *n, const struct nr_model_spec *m, int64_t B)
{
	const int64_t N = nr_model_int(m, "nodes"), F = nr_model_int(m, "edge_features"), L = nr_model_int(m, "paths");
	return (struct nr_inputs){ .nodes = nr_input(n, "nodes", NR_I32, NR_SHAPE(B, N, nr_model_int(m, "node_features"))),
		.in_degree = nr_input(n, "in_degree", NR_I32, NR_SHAPE(B, N)),
		.out_degree = nr_input(n, "out_degree", NR_I32, NR_SHAPE(B, N)),
		.distance = nr_input(n, "distance", NR_I32, NR_SHAPE(B, N, N)), .valid = nr_input(n, "valid", NR_I32, NR_SHAPE(B)),
		.edges = L ? nr_input(n, "edges", NR_I32, NR_SHAPE(B, N, N, L, F))
			  : nr_input(n, "edges", NR_I32, NR_SHAPE(B, N, N, F)) };
}

const char *nr_model_text_without(const char *text, const char *option, struct nr_arena *arena)
{
	char *copy = nr_arena_strdup(arena, text);
	const size_t n = strlen(option);
	for (char *s = copy; s && (s = strstr(s, option)); s++) {
		if (s == copy || !strchr(":,", s[-1]) || s[n] != '=') continue;
		char *end = s + strcspn(s, ",");
		if (*end) memmove(s, end + 1, strlen(end + 1) + 1);
		else s[-1] = 0;
		break;
	}
	return copy;
}

struct nr_inputs nr_model_inputs(struct nr_net *n, const struct nr_model_spec *m, int64_t batch)
{
	const int64_t size = nr_model_int(m, "image"), length = nr_model_int(m, "length");
	if (m->of->reads == NR_PICTURES)
		return (struct nr_inputs){
			.image = nr_input(n, "image", NR_REAL, NR_SHAPE(batch, nr_model_int(m, "channels"), size, size)) };
	if (m->of->reads == NR_MOLECULES) return graph_inputs(n, m, batch);
	return (struct nr_inputs){ .ids = nr_input(n, "ids", NR_I32, NR_SHAPE(batch, length)),
		.valid = nr_input(n, "valid", NR_I32, NR_SHAPE(batch)) };
}

int nr_model_expect(const struct nr_model_spec *m, enum nr_kind reads, struct nr_error *err)
{
	static const char *const what[] = { "pictures", "text", "graphs" };
	if (m->of->reads == reads) return NR_OK;
	return nr_fail(err, NR_EUSAGE, "cannot use the model", m->text,
		"it reads %s, but a model of %s is needed", what[m->of->reads],
		what[reads]);
}

nr_t *nr_model_tokens(struct nr_net *n, const struct nr_model_spec *m, const struct nr_inputs *in)
{
	return m->of->encode(n, in, m->of->embed(n, in, m->conf), m->conf);
}

nr_t *nr_model_head(struct nr_net *n, const struct nr_model_spec *m, nr_t *pooled)
{
	return m->of->head ? m->of->head(n, pooled, m->conf) : nr_linear(n, "head", pooled, nr_model_int(m, "classes"));
}

nr_t *nr_model_logits(struct nr_net *n, const struct nr_model_spec *m, const struct nr_inputs *in)
{
	return nr_model_head(n, m, m->of->pool(n, nr_model_tokens(n, m, in), m->conf));
}
