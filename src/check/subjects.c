/* What can be checked: ops by their own cases, norms and models by cases that fit their kind. */
#include "laws/norm_card.h"
#include "base/mem.h"
#include "base/str.h"
#include "check/check.h"
#include "norms/norms.h"

/* ---- ops ------------------------------------------------------------------------------------------------------------- */

static nr_t *build_op(const struct nr_subject *s, struct nr_net *n, nr_t **x, const char *options)
{
	return ((const struct nr_op *)s->of)->try_case(n, x, options);
}

static struct nr_subject *make(struct nr_arena *arena, struct nr_subject s)
{
	struct nr_subject *kept = s.name ? nr_arena_alloc(arena, sizeof *kept) : NULL;
	if (kept) *kept = s;
	return kept;
}

const struct nr_subject *nr_subject_op(const struct nr_op *op, const char *owner, struct nr_arena *arena)
{
	return make(arena, (struct nr_subject){ .name = nr_arena_printf(arena, "%s%s%s", owner, *owner ? "." : "", op->name), .of = op,
		.build = build_op, .cases = op->cases, .backward = op->backward, .strided = op->flags & NR_STRIDED,
		.approximate = op->flags & NR_APPROX_GRAD });
}

/* ---- norms ----------------------------------------------------------------------------------------------------------- */

static nr_t *build_norm(const struct nr_subject *s, struct nr_net *n, nr_t **x, const char *options)
{
	char text[128];
	nr_t *y = nr_norm_try_tokens(n, x, &options);
	return nr_norm_make(n, "", nr_norm_example(s->of, text, sizeof text), y);
}

/* Kinds of tokens that a norm meets: any, also with lengths, after which they are padding; on a grid; with a special one. */
static const struct nr_case anywhere[] = { { "2x5x12", "heads=3 |" }, { "1x70x12", "heads=3 |" }, { "3x1x24", "heads=3 |" },
	{ "2x5x12 2x5x12", "sum heads=3 |" }, { "2x6x12 2:i1-6", "heads=3 valid |" }, { "2x7x12", "special=1 grid=2x3 heads=3 |" },
	{ NULL, NULL } };
static const struct nr_case on_grid[] = { { "2x6x12", "grid=2x3 heads=3 |" }, { "2x7x12", "special=1 grid=2x3 heads=3 |" },
	{ "1x64x12", "grid=8x8 heads=3 |" }, { "2x6x12 2x6x12", "sum grid=2x3 heads=3 |" }, { NULL, NULL } };
static const struct nr_case special[] = { { "2x7x12", "special=1 grid=2x3 heads=3 |" }, { "2x7x12 2:i2-7", "special=2 heads=3 valid |" },
	{ "1x65x12 1x65x12", "special=1 heads=3 sum |" }, { NULL, NULL } };

const struct nr_subject *nr_subject_norm(const struct nr_norm *norm, struct nr_arena *arena)
{
	bool approximate = false;
	for (int i = 0; i < 4 && norm->op[i]; i++) approximate |= norm->op[i]->flags & NR_APPROX_GRAD;
	return make(arena, (struct nr_subject){ .name = nr_arena_printf(arena, "%s", norm->name), .of = norm, .build = build_norm,
		.cases = norm->needs & NR_NEED_GRID ? on_grid : nr_norm_composite(norm) ? special : anywhere, .backward = true,
		.strided = true, .approximate = approximate });
}

/* ---- models ----------------------------------------------------------------------------------------------------------- */

static nr_t *build_model(const struct nr_subject *s, struct nr_net *n, nr_t **x, const char *options)
{
	const struct nr_model_spec *m = s->of;
	struct nr_inputs in = { 0 };
	struct nr_error err = { 0 };
	if (m->of->reads == NR_PICTURES) in.image = x[0];
	else in.ids = x[0], in.valid = x[1];
	if (nr_norms_use(n, options, &m->norms, &err)) return nr_net_fail(n, err.code, m->text, "%s", err.detail);
	return nr_model_logits(n, m, &in);
}

/* Few values, where the model has an option for it: checks run it some thousand times. */
static int shrink(struct nr_model_spec *m, struct nr_arena *arena, struct nr_error *err)
{
	static const struct { const char *option; int64_t most; } few[] = { { "depth", 2 }, { "classes", 3 }, { "vocab", 40 },
		{ "length", 6 }, { "image", 16 }, { NULL, 0 } };
	const int64_t patch = nr_model_int(m, "patch");
	for (int i = 0; few[i].option; i++) {
		const int64_t now = nr_model_int(m, few[i].option);
		int64_t most = few[i].most;
		if (!strcmp(few[i].option, "image") && patch > 0) most = 2 * patch;
		const bool said = strstr(m->text, nr_arena_printf(arena, "%s=", few[i].option));
		if (now <= most || said) continue;
		if (nr_model_set(m, few[i].option, nr_arena_printf(arena, "%lld", (long long)most), arena, err)) return err->code;
	}
	return NR_OK;
}

const struct nr_subject *nr_subject_model(const char *text, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_model_spec *m = nr_arena_alloc(arena, sizeof *m);
	struct nr_case *cases = nr_arena_alloc(arena, 2 * sizeof *cases);
	if (!m || !cases || nr_model_parse(m, text, arena, err) || shrink(m, arena, err)) return NULL;
	const long long size = (long long)nr_model_int(m, "image"), length = (long long)nr_model_int(m, "length");
	if (m->of->reads == NR_PICTURES)
		cases[0].shapes = nr_arena_printf(arena, "2x%lldx%lldx%lld", (long long)nr_model_int(m, "channels"), size, size);
	else if (m->of->reads == NR_TEXTS)
		cases[0].shapes = nr_arena_printf(arena, "2x%lld:i%lld 2:i1-%lld", length, (long long)nr_model_int(m, "vocab"), length);
	else nr_fail(err, NR_EUSAGE, "cannot check the model", text, "graphs are not made up here");
	cases[0].options = "";
	return cases[0].shapes ? make(arena, (struct nr_subject){ .name = nr_arena_strdup(arena, text), .of = m, .build = build_model,
		.cases = cases, .backward = true, .deep = true }) : NULL;
}

/* ---- by name ----------------------------------------------------------------------------------------------------------- */

typedef void take(void *context, const struct nr_subject *);

static bool find_norm(const char *name, take *to, void *context, struct nr_arena *arena, struct nr_near *near)
{
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) {
		nr_near_try(near, (*n)->name);
		if (strcmp((*n)->name, name) != 0 && (!(*n)->alias || strcmp((*n)->alias, name) != 0)) continue;
		for (int i = 0; i < 4 && (*n)->op[i]; i++)
			if ((*n)->op[i]->cases) to(context, nr_subject_op((*n)->op[i], (*n)->name, arena));
		to(context, nr_subject_norm(*n, arena));
		return true;
	}
	return false;
}

static bool find_op(const char *name, take *to, void *context, struct nr_arena *arena, struct nr_near *near)
{
	for (const struct nr_op *const *op = nr_ops(); *op; op++) {
		nr_near_try(near, (*op)->name);
		if (strcmp((*op)->name, name) != 0) continue;
		to(context, nr_subject_op(*op, "", arena));
		return true;
	}
	return false;
}

int nr_subjects_find(const char *name, take *to, void *context, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	struct nr_error of_model = { 0 };
	if (find_norm(name, to, context, arena, &near) || find_op(name, to, context, arena, &near)) return NR_OK;
	const struct nr_subject *model = nr_subject_model(name, arena, &of_model);
	if (model) to(context, model);
	if (model) return NR_OK;
	if (of_model.code != NR_ENAME) {
		*err = of_model;
		return err->code;
	}
	for (const struct nr_model *const *m = nr_models(); *m; m++) nr_near_try(&near, (*m)->name);
	nr_fail(err, NR_ENAME, "nothing to check", name, "no norm, op or model has that name");
	return near.best ? nr_hint(err, "did you mean '%s'?", near.best) : NR_ENAME;
}
