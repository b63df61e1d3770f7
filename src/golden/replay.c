/* Replaying norma-golden-1 files: see replay.h. The upstream gradient makes the loss sum(y dy). */
#include "golden/replay.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "norma/optim.h"

struct run { struct nr_store *store; struct nr_net *net; struct nr_plan *plan; nr_t *x, *dy, *y, *valid; };

static nr_t *input(struct nr_net *n, const char *name, const struct golden_tensor *t)
{
	struct nr_shape s = { .nd = t->nd };
	memcpy(s.d, t->d, sizeof s.d);
	return nr_input(n, name, NR_REAL, s);
}

static void record(struct golden_case *c, const struct replay *r, struct run *b)
{
	const struct golden_tensor x = golden_tensor(c, -1, "s0.x"), dy = golden_tensor(c, -1, "s0.dy");
	struct nr_error err = { 0 };
	char line[1024];
	nr_store_make(&b->store, 0, &err);
	b->net = b->store ? nr_net_make(b->store) : NULL;
	if (!b->net) golden_stop(c, NULL, "out of memory");
	b->x = input(b->net, "x", &x);
	b->dy = input(b->net, "dy", &dy);
	if (b->x) b->x->flags |= NR_GRAD;
	if (golden_has(c, "s0.mask")) b->valid = nr_input(b->net, "valid", NR_I32, NR_SHAPE(x.d[0]));
	b->y = nr_tap(b->net, "y", r->build(c, b->net, b->x, b->valid));
	if (nr_plan_make(&b->plan, b->net, nr_weighted_sum(b->net, b->y, b->dy), NR_PLAN_TRAIN, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
}

/* Calls f with each of the file's names of an entry and its share of the values. */
static void each_name(struct golden_case *c, const struct replay *r, const struct nr_entry *e, real *values,
	void (*f)(struct golden_case *, const struct nr_entry *, const char *, real *, int64_t, int), int step)
{
	const char *names = r->names ? r->names(c, e->name) : e->name;
	int64_t parts = 1;
	for (const char *s = names; *s; s++) parts += *s == ' ';
	for (int64_t i = 0; i < parts; i++, names += strcspn(names, " ") + 1) {
		char name[256];
		snprintf(name, sizeof name, "%.*s", (int)strcspn(names, " "), names);
		f(c, e, name, values + i * (e->count / parts), e->count / parts, step);
	}
}

static void load_one(struct golden_case *c, const struct nr_entry *e, const char *name, real *values, int64_t n, int step)
{
	(void)step;
	const struct golden_tensor t = golden_tensor(c, -1, "%s.%s", e->buffer ? "init" : "param", name);
	golden_expect(c, t.n == n, e->name);
	memcpy(values, t.x, (size_t)n * sizeof(real));
}

static void check_one(struct golden_case *c, const struct nr_entry *e, const char *name, real *values, int64_t n, int step)
{
	golden_check(c, e->buffer ? "buf" : "grad", values, n, "s%d.%s.%s", step, e->buffer ? "buf" : "grad", name);
}

/* Values at padding are free but must be finite: there the wanted ones take their place. */
static void check_real_tokens(struct golden_case *c, const char *kind, real *got, int64_t n, const struct golden_ints *mask, int k)
{
	const struct golden_tensor want = golden_tensor(c, -1, "s%d.%s", k, kind);
	real *copy = golden_reals(c, n);
	golden_expect(c, want.n == n, kind);
	for (int64_t i = 0; i < n; i++) {
		const bool real_token = !mask || mask->x[i / (n / mask->n)];
		if (!isfinite(got[i])) golden_stop(c, want.name, "value %lld is not finite", (long long)i);
		copy[i] = real_token ? got[i] : want.x[i];
	}
	golden_check(c, kind, copy, n, "s%d.%s", k, kind);
}

static void step(struct golden_case *c, const struct replay *r, struct run *b, int k, bool train)
{
	const struct golden_tensor x = golden_tensor(c, -1, "s%d.x", k), dy = golden_tensor(c, -1, "s%d.dy", k);
	struct golden_ints mask = { 0 };
	memcpy(nr_plan_data(b->plan, b->x), x.x, (size_t)x.n * sizeof(real));
	memcpy(nr_plan_data(b->plan, b->dy), dy.x, (size_t)dy.n * sizeof(real));
	if (b->valid) {
		mask = golden_ints(c, 2, "s%d.mask", k);
		int32_t *valid = nr_plan_data(b->plan, b->valid);     /* NULL when nothing reads the lengths */
		for (int64_t i = 0; valid && i < mask.d[0]; i++) {
			valid[i] = 0;
			for (int64_t t = 0; t < mask.d[1]; t++) valid[i] += mask.x[i * mask.d[1] + t];
		}
	}
	const struct nr_exec ex = { .train = train, .step = k };
	nr_plan_run(b->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | (train ? NR_RUN_COMMIT : 0));
	check_real_tokens(c, "y", nr_plan_data(b->plan, b->y), dy.n, b->valid ? &mask : NULL, k);
	check_real_tokens(c, "dx", nr_plan_grad(b->plan, b->x), x.n, b->valid ? &mask : NULL, k);
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		each_name(c, r, e, e->buffer ? nr_value(e) : nr_grad(e), check_one, k);
	}
}

static void check_stepped(struct golden_case *c, const struct nr_entry *e, const char *name, real *values, int64_t n, int step)
{
	(void)e, (void)step;
	golden_check(c, "step1", values, n, "step1.%s", name);
}

/* One AdamW step on the gradients of the first step, where the file has what comes of it. */
static void optimize(struct golden_case *c, const struct replay *r, struct run *b)
{
	const char *text = nr_st_metadata(c->file, "optim");
	json_t *o = text ? json_loads(text, 0, NULL) : NULL;
	struct nr_error err = { 0 };
	struct nr_optim adamw;
	struct nr_params params = { 0 };
	if (!o) return;
	if (nr_optim_init(&adamw, "adamw", &err) || nr_params_init(&params, b->store, &adamw, &err)) golden_stop(c, NULL, "out of memory");
	const json_t *betas = json_object_get(o, "betas");
	adamw.beta1 = json_number_value(json_array_get(betas, 0));
	adamw.beta2 = json_number_value(json_array_get(betas, 1));
	adamw.eps = json_number_value(json_object_get(o, "eps"));
	adamw.lr = json_number_value(json_object_get(o, "lr"));
	adamw.weight_decay = json_number_value(json_object_get(o, "weight_decay"));
	nr_params_step(&params, &adamw, NULL, 1, &err);
	for (int64_t i = 0; i < nr_store_count(b->store); i++)
		each_name(c, r, nr_store_at(b->store, i), nr_value(nr_store_at(b->store, i)), check_stepped, 0);
	nr_params_release(&params);
	json_decref(o);
}

int golden_replay(struct golden_case *c, const struct replay *r)
{
	struct run b = { 0 };
	record(c, r, &b);
	for (int64_t i = 0; i < nr_store_count(b.store); i++)
		each_name(c, r, nr_store_at(b.store, i), nr_value(nr_store_at(b.store, i)), load_one, 0);
	const char *steps = nr_st_metadata(c->file, "steps");
	for (int k = 0; steps && *steps; k++) {
		step(c, r, &b, k, !strncmp(steps, "train", 5));
		steps = strchr(steps, ',') ? strchr(steps, ',') + 1 : NULL;
	}
	optimize(c, r, &b);
	nr_plan_free(b.plan);
	nr_net_free(b.net);
	nr_store_free(b.store);
	return GOLDEN_RAN;
}

int64_t golden_meta_int(struct golden_case *c, const char *key, int64_t otherwise)
{
	const char *text = nr_st_metadata(c->file, key);
	return text ? strtoll(text, NULL, 10) : otherwise;
}
