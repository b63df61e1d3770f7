/* The registry of normalizations. */
#include "norms/norms.h"

#include "base/registry.h"
#include "base/str.h"
#include "graph/net.h"
#include "graph/plan.h"

#define NORM(name) &nr_norm_##name,
static const struct nr_norm *const built_in[] = {
#include "norms/norms.def"
	NULL
};
#undef NORM

const struct nr_norm *const *nr_norms(void) { return NR_REGISTRY(NR_OF_NORMS, nr_norm, built_in); }

const struct nr_norm *nr_norm_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) {
		const char *alias = (*n)->alias;
		if (!strcmp((*n)->name, name) || (alias && !strcmp(alias, name))) return *n;
		nr_near_try(&near, (*n)->name);
		if (alias) nr_near_try(&near, alias);
	}
	nr_fail(err, NR_ENAME, "no normalization", name, "no such name");
	nr_hint(err, near.best ? "did you mean '%s'?" : "`norma norms` lists them", near.best);
	return NULL;
}

nr_t *nr_norm_make(struct nr_net *n, const char *scope, const char *text, nr_t *x)
{
	if (!x) return NULL;
	struct nr_error err = { 0 };
	const struct nr_norm *norm;
	void *conf;
	if (nr_norm_parse(text, nr_norms_eps(n), nr_net_arena(n), &norm, &conf, &err)) {
		char line[512];
		return nr_net_fail(n, err.code, text, "%s", nr_error_text(&err, line, sizeof line));
	}
	nr_push(n, "%s", scope);
	return nr_pop(n, norm->build(n, x, conf));
}

static bool is_norm(const struct nr_op *op)
{
	for (const struct nr_norm *const *n = nr_norms(); *n; n++)
		for (int i = 0; i < 4; i++)
			if ((*n)->op[i] == op) return true;
	return false;
}

double nr_norms_macs(const struct nr_net *n)
{
	double all = 0;
	for (int32_t i = 0; i < n->n_node; i++) {
		double forward = 0, backward = 0;
		if (is_norm(n->node[i]->op)) nr_node_cost(n->node[i], &forward, &backward);
		all += forward / 2;
	}
	return all;
}
