/* norma-golden-1: one normalization over several steps with buffers, for every norm of the registry.
 *
 * Settings are the metadata's keys that the norm's option table has; the upstream gradient makes the loss sum(y dy). */
#include <string.h>

#include "golden/check.h"
#include "norma/nn.h"
#include "norma/norm.h"

struct built { struct nr_store *store; struct nr_net *net; struct nr_plan *plan; nr_t *x, *dy, *y; };

/* "layer:eps=1e-05,affine=0" from the metadata. */
static const char *norm_text(struct golden_case *c, const struct nr_norm *norm)
{
	const char *text = norm->name;
	char sep = ':';
	for (const struct nr_option *o = norm->options; o->name; o++) {
		const char *value = nr_st_metadata(c->file, o->name);
		if (!value) continue;
		text = nr_arena_printf(c->arena, "%s%c%s=%s", text, sep, o->name, value);
		sep = ',';
	}
	return text;
}

static void build(struct golden_case *c, const struct nr_norm *norm, const struct golden_tensor *x, struct built *b)
{
	struct nr_error err = { 0 };
	char line[1024];
	nr_store_make(&b->store, 0, &err);
	b->net = b->store ? nr_net_make(b->store) : NULL;
	if (!b->net) golden_stop(c, NULL, "out of memory");
	b->x = nr_input(b->net, "x", NR_REAL, x->nd, x->d[0], x->d[1], x->d[2], x->d[3], x->d[4], x->d[5]);
	b->dy = nr_input(b->net, "dy", NR_REAL, x->nd, x->d[0], x->d[1], x->d[2], x->d[3], x->d[4], x->d[5]);
	if (b->x) b->x->flags |= NR_GRAD;
	b->y = nr_tap(b->net, "y", nr_norm_make(b->net, "", norm_text(c, norm), b->x));
	if (nr_plan_make(&b->plan, b->net, nr_weighted_sum(b->net, b->y, b->dy), NR_PLAN_TRAIN, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
}

static void load(struct golden_case *c, struct built *b)
{
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		const struct golden_tensor t = golden_tensor(c, -1, "%s.%s", e->buffer ? "init" : "param", e->name);
		golden_expect(c, t.n == e->count, e->name);
		memcpy(nr_value(e), t.x, (size_t)t.n * sizeof(real));
	}
}

static void step(struct golden_case *c, struct built *b, int k, bool train)
{
	const struct golden_tensor x = golden_tensor(c, -1, "s%d.x", k), dy = golden_tensor(c, -1, "s%d.dy", k);
	memcpy(nr_plan_data(b->plan, b->x), x.x, (size_t)x.n * sizeof(real));
	memcpy(nr_plan_data(b->plan, b->dy), dy.x, (size_t)x.n * sizeof(real));
	const struct nr_exec ex = { .train = train, .step = k };
	nr_plan_run(b->plan, &ex, NR_RUN_FORWARD | NR_RUN_BACKWARD | (train ? NR_RUN_COMMIT : 0));
	golden_check(c, "y", nr_plan_data(b->plan, b->y), x.n, "s%d.y", k);
	golden_check(c, "dx", nr_plan_grad(b->plan, b->x), x.n, "s%d.dx", k);
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		if (e->buffer) golden_check(c, "buf", nr_value(e), e->count, "s%d.buf.%s", k, e->name);
		else golden_check(c, "grad", nr_grad(e), e->count, "s%d.grad.%s", k, e->name);
	}
}

static int run(struct golden_case *c, const char *name)
{
	const struct nr_norm *norm = nr_norm_find(name, NULL);
	const struct golden_tensor first = golden_tensor(c, -1, "s0.x");
	struct built b = { 0 };
	if (golden_has(c, "s0.mask")) return GOLDEN_SKIP;
	build(c, norm, &first, &b);
	load(c, &b);
	const char *steps = nr_st_metadata(c->file, "steps");
	for (int k = 0; steps && *steps; k++) {
		step(c, &b, k, !strncmp(steps, "train", 5));
		steps = strchr(steps, ',') ? strchr(steps, ',') + 1 : NULL;
	}
	nr_plan_free(b.plan);
	nr_net_free(b.net);
	nr_store_free(b.store);
	return GOLDEN_RAN;
}

int golden_norm_layer(struct golden_case *c) { return run(c, "layer"); }
int golden_norm_rms(struct golden_case *c) { return run(c, "rms"); }
