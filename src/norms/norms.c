/* The registry of normalizations. */
#include "base/mem.h"
#include "base/str.h"
#include "norms/norms.h"

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
	}
	nr_fail(err, NR_ENAME, "no normalization", name, "no such name");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

nr_t *nr_norm_make(struct nr_net *n, const char *scope, const char *text, nr_t *x)
{
	if (!x) return NULL;
	struct nr_error err = { 0 };
	const size_t length = strcspn(text, ":");
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)length, text);
	const struct nr_norm *norm = nr_norm_find(name, &err);
	void *conf = norm ? nr_arena_alloc(nr_net_arena(n), norm->conf_size + 1) : NULL;
	if (conf) {
		nr_option_defaults(norm->options, conf);
		nr_option_parse(norm->options, conf, text[length] ? text + length + 1 : "", nr_net_arena(n), &err);
	}
	if (err.code || !conf) {
		char line[512];
		return nr_net_fail(n, err.code ? err.code : NR_EMEMORY, text, "%s", nr_error_text(&err, line, sizeof line));
	}
	nr_push(n, "%s", scope);
	return nr_pop(n, norm->build(n, x, conf));
}
