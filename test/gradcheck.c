/* Every op and norm of the registries, and small graphs, through the checks of src/check.
 *
 * Built twice. The double program tries finite differences; the float one compares itself with the double one, which it runs with
 * --dump. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/real.h"
#include "check/check.h"

/* ---- small graphs that give the planner something to alias, fuse and rebuild ---------------------------------------- */

/* A large eps: of two channels some token has nearly equal ones, and finite differences fail where the norm is that steep. */
static nr_t *ln(struct nr_net *n, const char *name, nr_t *x) { return nr_norm_make(n, name, "layer:eps=0.1", x); }

static nr_t *pre_norm(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = x[0];
	for (int i = 0; i < 2; i++) { /* two blocks: skips of skips share one gradient */
		nr_push(n, "b.%d", i);
		t = nr_add(n, t, nr_linear(n, "fc2", nr_linear_gelu(n, "fc1", ln(n, "norm", t), 5), t->d[2]));
		nr_pop(n, t);
	}
	return ln(n, "final", t);
}
static nr_t *post_norm(struct nr_net *n, nr_t **x, const char *o)
{
	return ln(n, "norm", nr_add(n, nr_linear(n, "fc", x[0], x[0]->d[2]), x[0]));
}
static nr_t *twice(struct nr_net *n, nr_t **x, const char *o)
{
	return nr_add(n, ln(n, "norm", nr_add(n, x[0], x[0])), x[0]);
}
/* The skip is used again after the sum, so its gradient begins before the sum's backward. */
static nr_t *late_skip(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *s = ln(n, "a", x[0]), *z = nr_add(n, s, nr_linear(n, "fc", s, x[0]->d[2]));
	return nr_add(n, nr_linear(n, "fc2", z, x[0]->d[2]), s);
}
/* Both inputs of the sum have other users, recorded between. */
static nr_t *crossed(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = ln(n, "a", x[0]), *b = nr_linear(n, "b", x[0], x[0]->d[2]);
	nr_t *c = nr_linear(n, "c", a, x[0]->d[2]), *d = nr_linear(n, "d", b, x[0]->d[2]);
	return nr_add(n, nr_add(n, a, b), nr_add(n, d, c));
}
static nr_t *sums_of_views(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = nr_linear(n, "a", x[0], x[0]->d[2]);
	nr_t *r = nr_reshape(n, a, NR_SHAPE(x[0]->d[0], x[0]->d[1], x[0]->d[2]));
	nr_t *b = ln(n, "b", x[0]);
	return nr_add(n, b, nr_add(n, r, nr_linear(n, "c", b, x[0]->d[2])));
}
static nr_t *separate(struct nr_net *n, nr_t **x, const char *o)     /* SepNorm */
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	nr_t *y = nr_join(n, ln(n, "cls", nr_span(n, t, 0, 1)), ln(n, "tok", nr_span(n, t, 1, NR_END)));
	return nr_linear(n, "out", y, 3);
}
static nr_t *separate_residual(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_add(n, x[0], nr_linear(n, "fc", x[0], x[0]->d[2]));
	nr_t *y = nr_join(n, ln(n, "cls", nr_span(n, t, 0, 1)), ln(n, "tok", nr_span(n, t, 1, NR_END)));
	return nr_add(n, t, nr_linear(n, "out", y, t->d[2]));
}
static nr_t *class_head(struct nr_net *n, nr_t **x, const char *o)   /* only one token gets a gradient */
{
	nr_t *t = ln(n, "norm", nr_linear(n, "fc", x[0], x[0]->d[2]));
	return nr_linear(n, "head", nr_span(n, t, 0, 1), 2);
}
static nr_t *overlapping(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return nr_join(n, nr_span(n, t, 0, 2), ln(n, "norm", nr_span(n, t, 1, NR_END)));
}
static nr_t *nested_join(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *a = ln(n, "a", x[0]), *b = ln(n, "b", nr_linear(n, "fc", x[0], x[0]->d[2]));
	nr_t *j = nr_join(n, nr_join(n, a, b), ln(n, "c", a));
	return nr_add(n, j, ln(n, "d", j));
}
static nr_t *joined_with_itself(struct nr_net *n, nr_t **x, const char *o)   /* the copy is written into the join */
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return ln(n, "norm", nr_join(n, t, t));
}
static nr_t *tied(struct nr_net *n, nr_t **x, const char *o)
{
	nr_t *t = nr_linear(n, "fc", x[0], x[0]->d[2]);
	return nr_linear(n, "fc", ln(n, "norm", t), x[0]->d[2]);
}
static nr_t *both_outputs(struct nr_net *n, nr_t **x, const char *o) /* of fused pairs are used */
{
	nr_t *h = nr_linear(n, "fc", x[0], x[0]->d[2]), *g = nr_activate(n, "gelu", h);
	nr_t *s = nr_add(n, h, g);
	return nr_add(n, ln(n, "norm", s), s);
}

static void has_one(const struct nr_call *k) { (void)k; }
static const struct nr_case block_cases[] = { { "2x4x3", "" }, { "1x3x6", "" }, { "3x70x2", "" }, { NULL, NULL } };
#define GRAPH(f) { .name = #f, .try_case = f, .cases = block_cases, .backward = has_one }
static const struct nr_op graphs[] = {
	GRAPH(pre_norm), GRAPH(post_norm), GRAPH(twice), GRAPH(late_skip), GRAPH(crossed), GRAPH(sums_of_views), GRAPH(separate),
	GRAPH(separate_residual), GRAPH(class_head), GRAPH(overlapping), GRAPH(nested_join), GRAPH(joined_with_itself), GRAPH(tied),
	GRAPH(both_outputs),
};

static void tell(void *context, const struct nr_subject *s, const struct nr_case *c, enum nr_check_kind kind, bool ok, const char *detail)
{
	(void)context;
	if (!ok) fprintf(stderr, "FAIL %s [%s] (%s): %s: %s\n", s->name, c->shapes, c->options, nr_check_names[kind], detail);
}

static FILE *open_twin(const char *only)
{
	char self[4096], command[4400];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (length <= 0) return NULL;
	self[length] = 0;
	snprintf(command, sizeof command, "'%s/gradcheck64' --dump '%s'", dirname(self), only ? only : "");
	return popen(command, "r");
}

int main(int argc, char **argv)
{
	const bool dump = argc > 1 && !strcmp(argv[1], "--dump");
	const char *only = argc > 1 + dump && *argv[1 + dump] ? argv[1 + dump] : NULL;     /* this op or norm alone */
	struct nr_arena *arena = nr_arena_make();
	struct nr_checker k = { .tell = tell, .dump = dump ? stdout : NULL, .values = dump };
	int ops = 0;
	if (sizeof(real) == sizeof(float) && !(k.twin = open_twin(only))) {
		fprintf(stderr, "FAIL: cannot run gradcheck64\n");
		return 1;
	}
	for (const struct nr_op *const *op = nr_ops(); *op; op++) {
		if (only && strcmp(only, (*op)->name) != 0) continue;
		ops++;
		if (!(*op)->cases || !(*op)->cases->shapes || !(*op)->try_case) {
			fprintf(stderr, "FAIL %s: it has no cases\n", (*op)->name);
			k.failed++;
		} else nr_check_run(&k, nr_subject_op(*op, "", arena));
	}
	for (const struct nr_norm *const *norm = nr_norms(); *norm; norm++) {
		if (only && strcmp(only, (*norm)->name) != 0) continue;
		for (int i = 0; i < 4 && (*norm)->op[i]; i++, ops++) nr_check_run(&k, nr_subject_op((*norm)->op[i], (*norm)->name, arena));
		nr_check_run(&k, nr_subject_norm(*norm, arena));
	}
	for (size_t i = 0; i < sizeof graphs / sizeof *graphs && !only; i++) nr_check_run(&k, nr_subject_op(&graphs[i], "graph", arena));
	if (k.twin) pclose(k.twin);
	if (!dump) printf("%d ops, %d checks, %d failed\n", ops, k.checks, k.failed);
	nr_arena_free(arena);
	return k.failed != 0;
}
