/* See model.h. */
#include "golden/model.h"

#include <string.h>

#include "models/hf_config.h"
#include "models/names.h"

static const json_t *look_up(struct golden_case *c, const char *name, const char *other)
{
	const json_t *v = json_object_get(c->config, name);
	return !v && other ? json_object_get(c->config, other) : v;
}
double golden_config(struct golden_case *c, const char *name, const char *other, double otherwise)
{
	const json_t *v = look_up(c, name, other);
	return json_is_true(v) ? 1 : json_is_false(v) ? 0 : json_is_number(v) ? json_number_value(v) : otherwise;
}
const char *golden_config_text(struct golden_case *c, const char *name, const char *other, const char *otherwise)
{
	const json_t *v = look_up(c, name, other);
	return json_is_string(v) ? json_string_value(v) : otherwise;
}
const char *golden_config_act(struct golden_case *c)
{
	const char *act = golden_config_text(c, "act", "hidden_act", "gelu");
	const char *ours = nr_hf_act(act);
	if (ours) return ours;
	if (strstr(act, "tanh")) return "gelu_tanh";
	return strncmp(act, "gelu", 4) ? act : "gelu";
}

/* "bn" or "ln" with the epsilon that the file has for it; any other norm as it is. */
static const char *part_text(struct golden_case *c, const char *key)
{
	const char *kind = golden_text(c, key);
	if (!strcmp(kind, "bn"))
		return nr_arena_printf(c->arena, "bn:eps=%.17g,momentum=%.17g", golden_number_or(c, "batchnorm_eps", 1e-5),
			golden_number_or(c, "batchnorm_momentum", 0.1));
	return !strcmp(kind, "ln") ? nr_arena_printf(c->arena, "ln:eps=%.17g", golden_number(c, "layer_norm_eps")) : kind;
}

const char *golden_sep_text(struct golden_case *c)
{
	return nr_arena_printf(c->arena, "sep(%s,%s)", part_text(c, "cls_norm"), part_text(c, "tok_norm"));
}

static void demand(struct golden_case *c, int code, const struct nr_error *err)
{
	char line[1024];
	if (code) golden_stop(c, NULL, "%s", nr_error_text(err, line, sizeof line));
}

void golden_model_open(struct golden_case *c, struct golden_model *m, const char *text, const char *naming, const char *norms,
	double eps)
{
	struct nr_error err = { 0 };
	if (!m->prefix) m->prefix = "param";
	demand(c, nr_model_parse(&m->model, text, c->arena, &err), &err);
	struct nr_norm_defaults d = m->model.norms;
	d.eps = eps;
	m->naming = nr_naming_find(m->model.of, naming, &err);
	demand(c, m->naming ? NR_OK : (int)err.code, &err);
	demand(c, nr_store_make(&m->store, 0, &err), &err);
	m->net = nr_net_make(m->store);
	if (!m->net) golden_stop(c, NULL, "out of memory");
	nr_net_keep_hidden(m->net, 1);
	demand(c, nr_norms_use(m->net, norms, &d, &err), &err);
}

/* ---- values by their public names ---------------------------------------------------------------------------------------- */

enum way { READ, COMPARE };

/* The file's tensors of one entry, in our order: PREFIX.NAME for each of its words. False: the file lacks one to read. */
static bool theirs(struct golden_case *c, const struct golden_model *m, const struct nr_entry *e, const char *prefix, enum way way,
	real *values, const char *kind)
{
	char order;
	const char *text = nr_naming_text(m->naming, e->name, &order, c->arena);
	const int64_t parts = nr_naming_parts(text), p = nr_model_int(&m->model, "patch"), channels = nr_model_int(&m->model, "channels");
	char word[256];
	for (int64_t share, i = 0; (share = nr_naming_word(&text, word, sizeof word)); i += share) {
		const char *name = nr_arena_printf(c->arena, "%s.%s", prefix, word);
		const char *resampled = nr_arena_printf(c->arena, "in.%s_resampled", word);
		const int64_t n = e->count / parts * share;
		real *mine = values + i * (e->count / parts), *moved = golden_reals(c, n);
		if (way == READ && !golden_has(c, name)) return false;
		if (way == COMPARE) {
			for (int64_t k = 0; k < n; k++) moved[nr_naming_place(order, e, k, p, channels)] = mine[k];
			golden_check(c, kind, moved, n, "%s", name);
			continue;
		}
		struct golden_tensor t = golden_tensor(c, -1, "%s", name);
		if (golden_has(c, resampled)) t = golden_tensor(c, -1, "%s", resampled);
		golden_expect(c, t.n == n, name);
		for (int64_t k = 0; k < n; k++) mine[k] = t.x[nr_naming_place(order, e, k, p, channels)];
	}
	return true;
}

static void read_all(struct golden_case *c, struct golden_model *m)
{
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		const char *prefix = e->buffer ? "buffer" : m->prefix;
		if (!theirs(c, m, e, prefix, READ, nr_value(e), NULL)) golden_fail(c, e->name, "the file lacks it");
	}
}

void golden_model_values(struct golden_case *c, struct golden_model *m, const char *prefix, const char *kind)
{
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		if (!e->buffer) theirs(c, m, e, prefix, COMPARE, nr_value(e), kind);
	}
}

/* What public files carry and never use, as the final norm of Graphormer's pre-norm form. */
static void pass_unused(struct golden_case *c, const struct golden_model *m)
{
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name, *dot = strchr(name, '.');
		if (dot && nr_naming_ignores(m->naming, dot + 1)) c->seen[i] = true;
	}
}

void golden_model_load(struct golden_case *c, struct golden_model *m, nr_t *loss,
	void (*before)(struct golden_case *, const struct golden_model *))
{
	struct nr_error err = { 0 };
	m->loss = loss;
	demand(c, nr_norms_done(m->net, &err), &err);
	demand(c, nr_plan_make(&m->plan, m->net, loss, NR_PLAN_TRAIN, &err), &err);
	if (before) before(c, m);
	read_all(c, m);
	pass_unused(c, m);
}

void golden_model_put(struct golden_case *c, struct golden_model *m, const nr_t *input, const char *name)
{
	const struct golden_tensor x = golden_tensor(c, -1, "%s", name);
	golden_expect(c, x.n == nr_len(input), name);
	memcpy(nr_plan_data(m->plan, input), x.x, (size_t)x.n * sizeof(real));
}

/* ---- runs ---------------------------------------------------------------------------------------------------------------- */

void golden_model_run(struct golden_case *c, struct golden_model *m, int64_t step)
{
	const char *mode = nr_st_metadata(c->file, "mode");
	const struct nr_exec ex = { .step = step, .train = mode && !strcmp(mode, "train") };
	nr_plan_run(m->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
}

void golden_model_out(struct golden_case *c, struct golden_model *m, const nr_t *x, const char *kind, const char *name)
{
	if (x) golden_check(c, kind, nr_plan_data(m->plan, x), nr_len(x), "out.%s", name);
}

void golden_model_check(struct golden_case *c, struct golden_model *m)
{
	golden_model_out(c, m, m->loss, "loss", "loss");
	for (int64_t i = 0; i < nr_model_int(&m->model, "depth"); i++) {
		const char *name = nr_arena_printf(c->arena, "block%lld", (long long)i);
		golden_model_out(c, m, nr_plan_tap(m->plan, name, NULL), "out", name);
	}
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		if (e->buffer) theirs(c, m, e, "outbuffer", COMPARE, nr_value(e), "buf");
		else if (!e->frozen) theirs(c, m, e, "grad", COMPARE, nr_grad(e), "grad");
	}
}

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static bool listed(const json_t *names, const char *name)
{
	for (size_t k = 0; k < json_array_size(names); k++)
		if (!strcmp(json_string_value(json_array_get(names, k)), name)) return true;
	return false;
}
static bool ends_with(const char *name, const json_t *suffixes)
{
	for (size_t k = 0; k < json_array_size(suffixes); k++) {
		const char *end = json_string_value(json_array_get(suffixes, k));
		const size_t n = strlen(name), tail = strlen(end);
		if (n >= tail && !strcmp(name + n - tail, end)) return true;
	}
	return false;
}

/* Parameters that the file holds but that take no part, and their unchanged values after the steps. */
static void untouched(struct golden_case *c)
{
	const json_t *names = json_object_get(c->config, "no_grad_params");
	for (size_t k = 0; k < json_array_size(names); k++) {
		const char *name = json_string_value(json_array_get(names, k));
		if (!golden_has(c, nr_arena_printf(c->arena, "param.%s", name))) continue;
		const struct golden_tensor x = golden_tensor(c, -1, "param.%s", name);
		golden_check(c, "step3", x.x, x.n, "step3.%s", name);
	}
}

/* DTN by the paper's equations was never released: nobody but the file says which of its parameters decay. */
static bool published(struct golden_case *c)
{
	const char *naming = nr_st_metadata(c->file, "naming"), *tail = naming ? strstr(naming, "+dtn-paper") : NULL;
	return !tail || tail[10];
}

/* The parameters that train, by their public names: query, key and value are one of ours. Those without decay are either listed in
 * the file, and must be those of our own flags where code was published, or end in what the file lists. */
int64_t golden_model_segments(struct golden_case *c, struct golden_model *m, const json_t *optim, struct nr_segment **out)
{
	const json_t *spared = json_object_get(optim, "no_decay"), *suffixes = json_object_get(optim, "no_decay_suffixes");
	const json_t *frozen = json_object_get(c->config, "no_grad_params");
	enum { MOST_NAMES = 4 };
	struct nr_segment *s = *out = golden_alloc(c, MOST_NAMES * nr_store_count(m->store), sizeof *s);
	int64_t count = 0;
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		char order;
		const char *text = nr_naming_text(m->naming, e->name, &order, c->arena);
		const int64_t parts = nr_naming_parts(text), one = e->count / parts;
		char name[256];
		golden_expect(c, parts <= MOST_NAMES, text);
		for (int64_t share, k = 0; !e->buffer && !e->frozen && (share = nr_naming_word(&text, name, sizeof name)); k += share) {
			const int64_t n = one * share;
			const bool decay = !listed(spared, name) && !ends_with(name, suffixes);
			if (listed(frozen, name)) continue;
			if (!suffixes && published(c))
				golden_expect(c, decay == !(e->init & NR_NO_DECAY), nr_arena_printf(c->arena, "weight decay of %s", name));
			s[count++] = (struct nr_segment){ .value = nr_value(e) + k * one, .grad = nr_grad(e) + k * one,
				.m = golden_reals(c, n),
				.v = golden_reals(c, n), .count = n, .nd = e->nd, .lr_scale = 1, .decay = decay };
		}
	}
	return count;
}

void golden_model_train(struct golden_case *c, struct golden_model *m)
{
	const char *text = nr_st_metadata(c->file, "optim");
	json_t *optim = text ? json_loads(text, 0, NULL) : json_incref(json_object_get(c->config, "optim"));
	untouched(c);
	if (!optim) return;
	const json_t *betas = json_object_get(optim, "betas"), *lr = json_object_get(optim, "lr");
	const bool list = json_is_array(lr);
	const int64_t steps = list ? (int64_t)json_array_size(lr) : json_integer_value(json_object_get(optim, "steps"));
	struct nr_optim o;
	nr_option_defaults(nr_optim_options(), &o);
	o.kind = nr_optim_kind("adamw");
	o.lr = number(optim, "lr");
	o.weight_decay = number(optim, "weight_decay");
	o.eps = number(optim, "eps");
	o.beta1 = json_number_value(json_array_get(betas, 0));
	o.beta2 = json_number_value(json_array_get(betas, 1));
	struct nr_segment *s;
	const int64_t n = golden_model_segments(c, m, optim, &s);
	void *scratch = golden_alloc(c, 1, nr_optim_scratch(&o, s, n));
	if ((o.clip_norm = number(optim, "max_grad_norm")) > 0) o.clip = NR_CLIP_GLOBAL;
	real *losses = golden_reals(c, steps + 1), *lengths = golden_reals(c, steps);
	read_all(c, m);                                 /* the first pass moved the buffers */
	for (int64_t t = 1; t <= steps; t++) {
		const struct nr_rates rates = { list ? json_number_value(json_array_get(lr, (size_t)t - 1)) : o.lr, o.weight_decay };
		struct nr_optim_info info;
		golden_model_run(c, m, t);
		losses[t - 1] = *(const real *)nr_plan_data(m->plan, m->loss);
		nr_optim_step(&o, &rates, t, s, n, scratch, &info);
		lengths[t - 1] = (real)info.grad_norm;
	}
	for (int64_t i = 0; i < nr_store_count(m->store); i++) {
		const struct nr_entry *e = nr_store_at(m->store, i);
		theirs(c, m, e, e->buffer ? "step3buffer" : "step3", COMPARE, nr_value(e), e->buffer ? "buf" : "step3");
	}
	if (list) {                                     /* and the loss that the last step leads to */
		golden_model_run(c, m, steps + 1);
		losses[steps] = *(const real *)nr_plan_data(m->plan, m->loss);
	}
	golden_check(c, "out", losses, steps + list, "out.step_losses");
	golden_check(c, "out", lengths, steps, "out.step_grad_norms");
	json_decref(optim);
}

void golden_model_close(struct golden_model *m)
{
	nr_plan_free(m->plan);
	nr_net_free(m->net);
	nr_store_free(m->store);
}
