/* The registry of normalizations. */
#include "norms/norms.h"

#include "base/str.h"

#define NORM(name) &nr_norm_##name,
static const struct nr_norm *const norms[] = {
#include "norms/norms.def"
	NULL
};
#undef NORM

const struct nr_norm *const *nr_norms(void) { return norms; }

const struct nr_norm *nr_norm_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int i = 0; norms[i]; i++) {
		if (!strcmp(norms[i]->name, name) || (norms[i]->alias && !strcmp(norms[i]->alias, name))) return norms[i];
		nr_near_try(&near, norms[i]->name);
		if (norms[i]->alias) nr_near_try(&near, norms[i]->alias);
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
