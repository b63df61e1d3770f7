/* metrics/muon, muon_torch and lion: some steps of each setting on matrices and vectors. */
#include <string.h>

#include "golden/check.h"
#include "norma/optim.h"

enum { MOST = 16 };
struct many { const char *name[MOST]; struct nr_segment s[MOST]; int64_t d[MOST][2]; int count; };

static void add(struct golden_case *c, struct many *m, const char *name, double decay, int flags)
{
	const struct golden_tensor p = golden_tensor(c, -1, "in.%s", name);
	if (m->count == MOST) golden_stop(c, p.name, "too many tensors");
	const int i = m->count++;
	memcpy(m->d[i], p.d, sizeof m->d[i]);
	m->name[i] = name;
	m->s[i] = (struct nr_segment){ .value = p.x, .m = golden_reals(c, p.n), .v = golden_reals(c, p.n), .count = p.n, .nd = p.nd,
		.d = m->d[i], .flags = flags, .lr_scale = 1, .decay = (float)decay };
}

static void set(struct golden_case *c, struct nr_optim *o, const char *name, const char *value)
{
	struct nr_error err = { 0 };
	if (nr_option_set(nr_optim_options(), o, name, value, c->arena, &err)) golden_stop(c, name, "cannot be set to '%s'", value);
}
static void set_number(struct golden_case *c, struct nr_optim *o, const char *name, double value)
{
	set(c, o, name, nr_arena_printf(c->arena, "%.17g", value));
}

/* As long as the file has the first tensor after a step. */
static void run(struct golden_case *c, struct many *m, const struct nr_optim *o, const char *setting)
{
	const struct nr_rates r = { o->lr, 1 };         /* the decays stand in the segments */
	for (int t = 1;; t++) {
		if (!golden_has(c, nr_arena_printf(c->arena, "%s.step%d_%s", setting, t, m->name[0]))) return;
		for (int i = 0; i < m->count; i++) m->s[i].grad = golden_tensor(c, -1, "in.grad%d_%s", t - 1, m->name[i]).x;
		void *scratch = golden_alloc(c, 1, nr_optim_scratch(o, m->s, m->count));
		if (nr_optim_step(o, &r, t, m->s, m->count, scratch, NULL)) golden_fail(c, setting, "the step failed");
		for (int i = 0; i < m->count; i++)
			golden_check(c, "out", m->s[i].value, m->s[i].count, "%s.step%d_%s", setting, t, m->name[i]);
	}
}

static const char *path(struct golden_case *c, const char *setting, const char *key)
{
	return nr_arena_printf(c->arena, "%s.%s", setting, key);
}

static struct nr_optim start(struct golden_case *c, const char *name)
{
	struct nr_optim o;
	struct nr_error err = { 0 };
	if (nr_optim_init(&o, name, &err)) golden_stop(c, NULL, "no optimizer '%s'", name);
	return o;
}

static struct nr_optim muon_of(struct golden_case *c, const char *setting)
{
	struct nr_optim o = start(c, "muon");
	const json_t *conf = json_object_get(c->config, setting), *triples = json_object_get(conf, "ns_coefficients");
	o.lr = golden_number(c, path(c, setting, "lr"));
	set_number(c, &o, "muon_momentum", golden_number(c, path(c, setting, "momentum")));
	set(c, &o, "muon_nesterov", json_is_true(json_object_get(conf, "nesterov")) ? "1" : "0");
	set(c, &o, "ns_steps", nr_arena_printf(c->arena, "%d", (int)golden_number(c, path(c, setting, "ns_steps"))));
	set(c, &o, "ns", json_array_size(triples) > 1 ? "quintic" : "torch");
	set(c, &o, "adjust", golden_text(c, path(c, setting, "adjust_lr_fn")));
	return o;
}

static void muon_setting(struct golden_case *c, const char *setting)
{
	const json_t *names = json_object_get(c->config, "matrices");
	struct many m = { 0 };
	for (size_t i = 0; i < json_array_size(names); i++)
		add(c, &m, json_string_value(json_array_get(names, i)), golden_number(c, path(c, setting, "weight_decay")),
			NR_SEGMENT_MATRIX);
	const struct nr_optim o = muon_of(c, setting);
	run(c, &m, &o, setting);
}

/* What one step without momentum and decay takes off is the orthogonal matrix, times the learning rate. */
static void newton_schulz(struct golden_case *c, const char *ns, const char *result)
{
	const json_t *names = json_object_get(c->config, "matrices");
	struct nr_optim o = start(c, "muon");
	set(c, &o, "ns", ns);
	set_number(c, &o, "muon_momentum", 0);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		struct many m = { 0 };
		add(c, &m, name, 0, NR_SEGMENT_MATRIX);
		m.s[0].grad = golden_tensor(c, 2, "in.grad1_%s", name).x;
		memset(m.s[0].value, 0, (size_t)m.s[0].count * sizeof(real));
		const double rows = (double)m.d[0][0], columns = (double)m.d[0][1], ratio = rows > columns ? rows / columns : 1;
		const struct nr_rates r = { 1, 1 };
		nr_optim_step(&o, &r, 1, m.s, 1, golden_alloc(c, 1, nr_optim_scratch(&o, m.s, 1)), NULL);
		for (int64_t k = 0; k < m.s[0].count; k++) m.s[0].value[k] *= (real)(-1 / sqrt(ratio));
		golden_check(c, "out", m.s[0].value, m.s[0].count, "%s.%s", result, name);
	}
}

int golden_metric_muon(struct golden_case *c)
{
	const char *key;
	json_t *value;
	json_object_foreach(c->config, key, value)
		if (json_is_object(value) && strcmp(key, "fallback") != 0) muon_setting(c, key);
	const json_t *vectors = json_object_get(c->config, "vectors");
	for (size_t i = 0; i < json_array_size(vectors); i++) {
		struct many m = { 0 };
		struct nr_optim o = start(c, "muon");
		add(c, &m, json_string_value(json_array_get(vectors, i)), golden_number(c, "fallback.weight_decay"), 0);
		o.lr = golden_number(c, "fallback.lr");
		o.beta1 = golden_item(c, "fallback.betas", 0);
		o.beta2 = golden_item(c, "fallback.betas", 1);
		o.eps = golden_number(c, "fallback.eps");
		run(c, &m, &o, "fallback");
	}
	const char *first = json_string_value(json_array_get(json_object_get(c->config, "matrices"), 0));
	static const char *const made[][2] = { { "torch", "newton_schulz" }, { "quintic", "newton_schulz_quintic" } };
	for (int i = 0; first && i < 2; i++)
		if (golden_has(c, nr_arena_printf(c->arena, "%s.%s", made[i][1], first))) newton_schulz(c, made[i][0], made[i][1]);
	return GOLDEN_RAN;
}

int golden_metric_muon_torch(struct golden_case *c) { return golden_metric_muon(c); }

int golden_metric_lion(struct golden_case *c)
{
	const char *key;
	json_t *value;
	json_object_foreach(c->config, key, value) {
		if (!json_is_object(value)) continue;
		struct many m = { 0 };
		struct nr_optim o = start(c, "lion");
		add(c, &m, "w", golden_number(c, path(c, key, "weight_decay_w")), 0);
		add(c, &m, "b", golden_number(c, path(c, key, "weight_decay_b")), 0);
		o.lr = golden_number(c, path(c, key, "lr"));
		set_number(c, &o, "lion_beta1", golden_item(c, path(c, key, "betas"), 0));
		set_number(c, &o, "lion_beta2", golden_item(c, path(c, key, "betas"), 1));
		set(c, &o, "caution", json_is_true(json_object_get(value, "caution")) ? "1" : "0");
		run(c, &m, &o, key);
	}
	return GOLDEN_RAN;
}
