/* norma-golden-1, norms: every norm of the registry, SepNorm and its shared twin. Settings are the metadata's keys that the
 * norm's option table has. */
#include <string.h>

#include "golden/replay.h"

const char *golden_norm_text(struct golden_case *c, const char *prefix)
{
	const char *name = nr_st_metadata(c->file, nr_arena_printf(c->arena, "%snorm", prefix));
	if (!name) golden_stop(c, NULL, "the metadata has no '%snorm'", prefix);
	if (!strcmp(name, "sepnorm"))
		return nr_arena_printf(c->arena, "sep(%s,%s)", golden_norm_text(c, nr_arena_printf(c->arena, "%sspecial.", prefix)),
			golden_norm_text(c, nr_arena_printf(c->arena, "%srest.", prefix)));
	struct nr_error err = { 0 };
	const struct nr_norm *norm = nr_norm_find(name, &err);
	if (!norm) golden_stop(c, NULL, "no norm '%s'", name);
	const char *text = norm->name;
	char sep = ':';
	/* prepbn's parts have names of their own here */
	static const char *const parts[][2] = { { "norm1.norm", "first" }, { "norm1.eps", "first_eps" }, { "norm2.eps", "eps" },
		{ "norm2.momentum", "momentum" }, { "norm2.eta", "eta" } };
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !strcmp(norm->name, "prepbn"); i++) {
		const char *value = nr_st_metadata(c->file, nr_arena_printf(c->arena, "%s%s", prefix, parts[i][0]));
		if (!value) continue;
		text = nr_arena_printf(c->arena, "%s%c%s=%s", text, sep, parts[i][1], value);
		sep = ',';
	}
	for (const struct nr_option *o = norm->options; o->name; o++) {
		const char *value = nr_st_metadata(c->file, nr_arena_printf(c->arena, "%s%s", prefix, o->name));
		if (!value) continue;
		text = nr_arena_printf(c->arena, "%s%c%s=%s", text, sep, o->name, value);
		sep = ',';
	}
	return text;
}

static nr_t *build_norm(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid, const char *prefix)
{
	nr_with_tokens(n, x, (struct nr_tokens){ .special = (int32_t)golden_meta_int(c, "special_tokens", 0), .valid = valid });
	return nr_norm_make(n, "", golden_norm_text(c, prefix), x);
}

static nr_t *build(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	return build_norm(c, n, x, valid, "");
}
int golden_norm_registry(struct golden_case *c) { return golden_replay(c, &(struct replay){ build, NULL }); }

static nr_t *build_sep(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	if (!nr_st_metadata(c->file, "special_tokens"))
		return nr_norm_make(n, "", golden_norm_text(c, ""), nr_with_tokens(n, x, (struct nr_tokens){ 1, .valid = valid }));
	return build_norm(c, n, x, valid, "");
}
int golden_norm_sepnorm(struct golden_case *c) { return golden_replay(c, &(struct replay){ build_sep, NULL }); }

static nr_t *build_shared(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	return build_norm(c, n, x, valid, "shared.");
}
static const char *shared_name(struct golden_case *c, const char *entry)
{
	return golden_has(c, nr_arena_printf(c->arena, "param.shared.%s", entry)) ||
		golden_has(c, nr_arena_printf(c->arena, "init.shared.%s", entry)) ? nr_arena_printf(c->arena, "shared.%s", entry) : entry;
}
int golden_norm_sharenorm(struct golden_case *c) { return golden_replay(c, &(struct replay){ build_shared, shared_name }); }

static nr_t *build_pairs(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	(void)valid;
	const char *variant = nr_st_metadata(c->file, "variant");
	struct nr_pair_options o = { 0 };
	if (variant && !strcmp(variant, "metric")) o = (struct nr_pair_options){ NR_PAIRS_GAUSS, 1, 0 };
	else if (variant && !strcmp(variant, "umae")) o = (struct nr_pair_options){ NR_PAIRS_SQUARE, 1, 1 };
	else if (variant && !strcmp(variant, "eq8")) o = (struct nr_pair_options){ NR_PAIRS_LINEAR, 0, 1 };
	else golden_stop(c, NULL, "no variant '%s' of uniformity", variant ? variant : "");
	return nr_reshape(n, nr_pair_loss(n, x, o), NR_SHAPE(1));
}
int golden_norm_uniformity(struct golden_case *c) { return golden_replay(c, &(struct replay){ build_pairs, NULL }); }
