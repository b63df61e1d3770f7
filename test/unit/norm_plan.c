/* src/norms/{plan,plan_text,pattern,residual,text}.c: which norm a site gets, and what a wrong plan says. */
#include <math.h>

#include "unit/rig.h"

#include "models/block.h"
#include "norma/norm.h"

static const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre", .sites = "embed", .eps = 1e-6 };

/* A model of `depth` blocks without arithmetic: it only asks for its sites. */
static int ask(struct rig *r, const char *plan, int depth)
{
	if (nr_norms_use(r->n, plan, &defaults, &r->err)) return r->err.code;
	nr_t *x = reals(r, 3, 2, 5, 12, 1);
	nr_with_tokens(r->n, x, (struct nr_tokens){ .special = 1, .h = 2, .w = 2, .heads = 3 });
	nr_norm(r->n, "patch.in", x);
	nr_norm(r->n, "patch.out", x);
	nr_norm(r->n, "patch.pos", x);
	nr_norm(r->n, "embed", x);
	static const char *const sites[] = { "attn.qk", "attn.v", "attn.heads", "attn.inner", "attn.out", "attn.res", "mlp.hidden",
		"mlp.inner", "mlp.out", "mlp.res" };
	enum { MLP = 6 };
	for (int i = 0; i < depth; i++) {
		nr_push_nth(r->n, "blocks", i, depth);
		for (size_t k = 0; k < sizeof sites / sizeof *sites; k++) {
			nr_t *stream = x;
			if (k == 0 || k == MLP) nr_branch(r->n, k ? "mlp" : "attn", &stream);
			nr_norm(r->n, sites[k], x);
		}
		nr_pop(r->n, x);
	}
	nr_norm(r->n, "final", x);
	return nr_norms_done(r->n, &r->err);
}

/* "blocks.0.attn.in=layer ..." for all sites that have a norm. */
static const char *resolved(const struct rig *r)
{
	static char text[4096];
	int64_t count, used = 0;
	const struct nr_site *s = nr_sites(r->n, &count);
	text[0] = 0;
	for (int64_t i = 0; i < count; i++)
		if (s[i].norm)
			used += snprintf(text + used, sizeof text - (size_t)used, "%s%s=%s", used ? " " : "", s[i].name, s[i].norm);
	return text;
}

static void plan_gives(const char *plan, int depth, const char *want)
{
	struct rig r = rig();
	char text[1200];
	if (ask(&r, plan, depth)) fail_msg("%s: %s", plan, nr_error_text(&r.err, text, sizeof text));
	assert_string_equal(resolved(&r), want);
	release(&r);
}

static void one_norm_alone_goes_to_the_default_sites(void **state)
{
	(void)state;
	plan_gives("", 1, "embed=layer blocks.0.attn.in=layer blocks.0.mlp.in=layer final=layer");
	plan_gives("bn", 1, "embed=bn blocks.0.attn.in=bn blocks.0.mlp.in=bn final=bn");
	plan_gives("sep(bn, ln)", 1,
		"embed=sep(bn, ln) blocks.0.attn.in=sep(bn, ln) blocks.0.mlp.in=sep(bn, ln) final=sep(bn, ln)");
}

static void the_last_matching_rule_wins(void **state)
{
	(void)state;
	plan_gives("ln mlp.in=rms", 1, "embed=ln blocks.0.attn.in=ln blocks.0.mlp.in=rms final=ln");
	plan_gives("attn.res=ln mlp.res=ln", 1, "blocks.0.attn.res=ln blocks.0.mlp.res=ln");
	plan_gives("mlp.in=rms ln", 1, "embed=ln blocks.0.attn.in=ln blocks.0.mlp.in=ln final=ln");
	plan_gives("ln final=none", 1, "embed=ln blocks.0.attn.in=ln blocks.0.mlp.in=ln");
}

static void ranges_of_depth_are_pythons(void **state)
{
	(void)state;
	plan_gives("blocks[0:2].*=rms blocks[2:].attn.in=ln", 3,
		"blocks.0.attn.in=rms blocks.0.mlp.in=rms blocks.1.attn.in=rms blocks.1.mlp.in=rms blocks.2.attn.in=ln");
	plan_gives("blocks[-1].mlp.in=rms blocks[:-2].mlp.in=ln", 3, "blocks.0.mlp.in=ln blocks.2.mlp.in=rms");
	plan_gives("blocks[1].attn.in=rms blocks.2.attn.in=ln", 3, "blocks.1.attn.in=rms blocks.2.attn.in=ln");
	plan_gives("blocks[-1].attn.**=none:gain=head", 2,
		"blocks.1.attn.carry=none:gain=head blocks.1.attn.in=none:gain=head blocks.1.attn.qk=none:gain=head "
		"blocks.1.attn.v=none:gain=head blocks.1.attn.heads=none:gain=head blocks.1.attn.inner=none:gain=head "
		"blocks.1.attn.out=none:gain=head blocks.1.attn.res=none:gain=head");
	/* shares of all, to the nearest number: 1.5 of 6 is 2, and halves leave no block out */
	plan_gives("blocks[:25%].attn.in=rms", 6, "blocks.0.attn.in=rms blocks.1.attn.in=rms");
	plan_gives("blocks[:50%].attn.in=rms blocks[50%:].attn.in=ln", 3, "blocks.0.attn.in=rms blocks.1.attn.in=rms blocks.2.attn.in=ln");
	plan_gives("blocks[50%].attn.in=rms", 4, "blocks.2.attn.in=rms");
}

static void placements_are_names_for_sites(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "post", "blocks.0.attn.res=ln blocks.0.mlp.res=ln" },
		{ "prepost", "blocks.0.attn.in=ln blocks.0.attn.res=ln blocks.0.mlp.in=ln blocks.0.mlp.res=ln" },
		{ "sandwich", "blocks.0.attn.in=ln blocks.0.attn.out=ln blocks.0.mlp.in=ln blocks.0.mlp.out=ln final=ln" },
		{ "respost", "blocks.0.attn.out=ln blocks.0.mlp.out=ln final=ln" },
		{ "pre,post", "blocks.0.attn.in=ln blocks.0.mlp.res=ln" },
		{ "none,pre", "blocks.0.mlp.in=ln final=ln" },
		{ "subln", "blocks.0.attn.in=ln blocks.0.attn.inner=ln blocks.0.mlp.in=ln blocks.0.mlp.inner=ln final=ln" },
		{ "subln_before_act", "blocks.0.attn.in=ln blocks.0.attn.inner=ln blocks.0.mlp.in=ln blocks.0.mlp.hidden=ln final=ln" },
		{ "normformer", "blocks.0.attn.in=ln blocks.0.attn.heads=none:gain=head blocks.0.attn.out=ln blocks.0.mlp.in=ln "
				"blocks.0.mlp.inner=ln final=ln" },
		{ "peri", "blocks.0.attn.in=ln blocks.0.attn.out=ln blocks.0.mlp.in=ln blocks.0.mlp.out=ln final=ln" },
		{ "peri_embed", "blocks.0.attn.in=ln blocks.0.attn.out=ln blocks.0.mlp.in=ln blocks.0.mlp.out=ln final=ln" },
		{ "gemma2", "blocks.0.attn.in=ln blocks.0.attn.out=ln blocks.0.mlp.in=ln blocks.0.mlp.out=ln final=ln" },
		{ "olmo2", "blocks.0.attn.qk=ln blocks.0.attn.out=ln blocks.0.mlp.out=ln final=ln" },
		{ "hybrid", "blocks.0.attn.qk=ln blocks.0.attn.v=ln blocks.0.mlp.carry=ln final=ln" },
		{ "parallel", "blocks.0.attn.in=ln final=ln" },
		{ "keel", "blocks.0.attn.in=ln blocks.0.attn.res=ln blocks.0.mlp.in=ln blocks.0.mlp.res=ln" },
		{ "ngpt", "final=ln" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char plan[64], want[512];
		snprintf(plan, sizeof plan, "ln placement=%s", cases[i][0]);
		snprintf(want, sizeof want, "embed=ln %s", cases[i][1]);
		plan_gives(plan, 1, want);
	}
}

/* The first quarter post, the others pre; or as many as mix:post says. */
static void some_placements_change_with_the_depth(void **state)
{
	(void)state;
	plan_gives("ln placement=mix", 4, "embed=ln blocks.0.attn.res=ln blocks.0.mlp.res=ln blocks.1.attn.in=ln blocks.1.mlp.in=ln "
		"blocks.2.attn.in=ln blocks.2.mlp.in=ln blocks.3.attn.in=ln blocks.3.mlp.in=ln final=ln");
	plan_gives("ln placement=mix:post=2", 3,
		"embed=ln blocks.0.attn.res=ln blocks.0.mlp.res=ln blocks.1.attn.res=ln blocks.1.mlp.res=ln "
		"blocks.2.attn.in=ln blocks.2.mlp.in=ln final=ln");
	plan_gives("ln placement=mix:post=0", 1, "embed=ln blocks.0.attn.in=ln blocks.0.mlp.in=ln final=ln");
	plan_gives("ln placement=hybrid_star", 2, "embed=ln blocks.0.attn.in=ln blocks.0.attn.qk=ln blocks.0.attn.v=ln blocks.0.mlp.in=ln "
		"blocks.1.attn.qk=ln blocks.1.attn.v=ln blocks.1.mlp.carry=ln final=ln");
}

static void patch_norms_add_to_the_rest(void **state)
{
	(void)state;
	const char *rest = "embed=layer blocks.0.attn.in=layer blocks.0.mlp.in=layer final=layer";
	static const char *const cases[][2] = {
		{ "dual", "patch.in=layer patch.out=layer" }, { "pre", "patch.in=layer" }, { "post", "patch.out=layer" },
		{ "post_posemb", "patch.pos=layer" }, { "rms", "patch.in=rms patch.out=rms" },
		{ "only_learnable", "patch.in=none:gain=channel,bias=1 patch.out=none:gain=channel,bias=1" },
		{ "no_learnable", "patch.in=layer:affine=0 patch.out=layer:affine=0" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char plan[64], want[512];
		snprintf(plan, sizeof plan, "patch=%s", cases[i][0]);
		snprintf(want, sizeof want, "%s %s", cases[i][1], rest);
		plan_gives(plan, 1, want);
	}
}

static void wrong_plans_name_the_nearest(void **state)
{
	(void)state;
	static const struct { const char *plan, *says; } cases[] = {
		{ "lyer", "did you mean 'layer'" },
		{ "ln atn.in=rms", "did you mean 'attn.in'" },
		{ "ln blocks[5:].attn.in=rms", "no site matches" },
		{ "ln placement=pots", "did you mean 'post'" },
		{ "ln placement=pre,pots", "did you mean 'post'" },
		{ "ln patch=daul", "did you mean 'dual'" },
		{ "ln residual=layerscal", "did you mean 'layerscale'" },
		{ "ln residual=rezero:init=1", "rezero has no option" },
		{ "ln residual=keel:alfa=1", "did you mean 'alpha'" },
		{ "ln placement=mix:pst=1", "did you mean 'post'" },
		{ "ln placement=hybird", "did you mean 'hybrid'" },
		{ "ln attn.qk=ln qk=hed", "did you mean 'head'" },
		{ "ln blocks[:x%].attn.in=ln", "ranges look like" },
		{ "ln:epss=1", "did you mean 'eps'" },
		{ "sep(bn)", "more norms" },
		{ "sep(bn,ln,rms)", "too many" },
		{ "sep(bn,lm)", "did you mean 'ln'" },
		{ "ln(rms)", "no norms in parentheses" },
		{ "blocks[a].attn.in=ln", "ranges look like" },
		{ "at*n.in=ln", "a star must" },
		{ "att$.in=ln", "unexpected" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		char text[1200];
		if (!ask(&r, cases[i].plan, 2)) fail_msg("'%s' was taken", cases[i].plan);
		if (!strstr(nr_error_text(&r.err, text, sizeof text), cases[i].says)) fail_msg("'%s' says: %s", cases[i].plan, text);
		release(&r);
	}
}

static void eps_of_the_model_counts_where_the_text_gives_none(void **state)
{
	(void)state;
	/* With eps as large as the variance the output tells which one was used. */
	struct rig r = rig();
	const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .eps = 1 };
	static const real v[] = { -1, 1 };
	nr_t *x = leaf(&r, NR_REAL, v, 2, 1, 2, 1, 1);
	assert_int_equal(nr_norms_use(r.n, "a=ln b=ln:eps=0", &d, &r.err), 0);
	nr_t *y = nr_join(r.n, nr_reshape(r.n, nr_norm(r.n, "a", x), NR_SHAPE(1, 1, 2)),
		nr_reshape(r.n, nr_norm(r.n, "b", x), NR_SHAPE(1, 1, 2)));
	const real *out = run(&r, y);
	assert_true(fabs((double)out[1] - sqrt(.5)) < 1e-6 && fabs((double)out[3] - 1) < 1e-6);
	release(&r);
}

static void eps_can_be_set_for_the_whole_plan(void **state)
{
	(void)state;
	struct rig r = rig();
	const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .rules = "a=layer", .eps = 7 };
	static const real v[] = { -1, 1 };
	nr_t *x = leaf(&r, NR_REAL, v, 2, 1, 2, 1, 1);
	assert_int_equal(nr_norms_use(r.n, "eps=1", &d, &r.err), 0);
	const real *out = run(&r, nr_norm(r.n, "a", x));
	assert_true(fabs((double)out[1] - sqrt(.5)) < 1e-6);
	release(&r);
}

static void a_models_own_rules_come_before_the_plans(void **state)
{
	(void)state;
	static const struct { const char *plan, *want; } cases[] = {
		{ "", "embed=layer final=layer" }, { "bn", "embed=layer final=bn" }, { "bn embed=rms", "embed=rms final=bn" },
		{ "**=bn", "embed=bn final=bn" }, { "embed=none", "" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .rules = "embed=layer unused=rms" };
		assert_int_equal(nr_norms_use(r.n, cases[i].plan, &d, &r.err), 0);
		nr_t *x = reals(&r, 3, 2, 5, 12, 1);
		nr_norm(r.n, "embed", x), nr_norm(r.n, "final", x);
		assert_int_equal(nr_norms_done(r.n, &r.err), 0);
		assert_string_equal(resolved(&r), cases[i].want);
		release(&r);
	}
}

static void residuals_scale_as_their_papers_say(void **state)
{
	(void)state;
	static const char *const plan[] = { "attn.zz=none residual=plain", "attn.zz=none residual=layerscale:init=0.5",
		"attn.zz=none residual=rezero", "attn.zz=none residual=deepnorm" };
	const double a = pow(2 * 8, .25), want[4][2] = { { 1, 1 }, { 1, .5 }, { 1, 0 }, { a, 1 } };
	for (int i = 0; i < 4; i++) {
		struct rig r = rig();
		assert_int_equal(nr_norms_use(r.n, plan[i], &defaults, &r.err), 0);
		nr_t *x = reals(&r, 3, 2, 3, 4, 1), *y = reals(&r, 3, 2, 3, 4, 1);
		nr_push_nth(r.n, "blocks", 2, 8);
		nr_t *z = nr_pop(r.n, nr_residual(r.n, "attn", x, y, 0));
		const real *out = run(&r, z);
		for (int k = 0; k < 24; k++) {
			const double sum = want[i][0] * (double)data(&r, 0)[k] + want[i][1] * (double)data(&r, 1)[k];
			close_to(&out[k], &sum, 1, 1e-6);
		}
		release(&r);
	}
}

/* a x + y where the sum is normed, x + y elsewhere; a is 2 per block unless given. A residual that is named beats the placement's. */
static void keel_scales_the_stream_where_the_sum_has_a_norm(void **state)
{
	(void)state;
	static const struct { const char *plan; double a; } cases[] = {
		{ "attn.res=rms residual=keel", 16 }, { "attn.res=rms residual=keel:alpha=3", 3 }, { "mlp.res=rms residual=keel", 1 },
		{ "rms placement=keel", 16 }, { "rms placement=keel residual=plain", 1 }, { "rms placement=keel blocks[2].attn.res=none",
			1 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		assert_int_equal(nr_norms_use(r.n, cases[i].plan, &defaults, &r.err), 0);
		nr_t *x = reals(&r, 3, 1, 1, 4, 1), *y = reals(&r, 3, 1, 1, 4, 1);
		nr_push_nth(r.n, "blocks", 2, 8);
		const real *out = run(&r, nr_pop(r.n, nr_residual(r.n, "attn", x, y, 0)));
		double sum[4], square = 0;
		for (int k = 0; k < 4; k++) {
			sum[k] = cases[i].a * (double)data(&r, 0)[k] + (double)data(&r, 1)[k];
			square += sum[k] * sum[k] / 4;
		}
		const int normed = nr_store_find(r.store, "blocks.2.attn.res.weight") != NULL;
		for (int k = 0; k < 4 && normed; k++) sum[k] /= sqrt(square + 1e-6);
		close_to(out, sum, 4, 1e-5);
		release(&r);
	}
}

/* A block of its own: one gain for all heads, one for each, one for the whole width. */
static void qk_says_what_its_norm_sees(void **state)
{
	(void)state;
	static const struct { const char *plan; int64_t count, nd; } cases[] = {
		{ "attn.qk=rms", 3, 1 }, { "attn.qk=rms qk=head", 3, 1 }, { "attn.qk=rms qk=heads", 6, 2 }, { "attn.qk=rms qk=width", 6,
			1 },
		{ "rms placement=olmo2", 6, 1 }, { "rms placement=olmo2 qk=head", 3, 1 },
		{ "attn.qk=rms:offset=1 qk=heads", 6, 2 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		assert_int_equal(nr_norms_use(r.n, cases[i].plan, &defaults, &r.err), 0);
		nr_t *y = nr_block(r.n, reals(&r, 3, 2, 5, 6, 1), &(struct nr_block){ .heads = 2, .hidden = 4 });
		assert_int_equal(nr_norms_done(r.n, &r.err), 0);
		run(&r, y);
		const struct nr_entry *gain = nr_store_find(r.store, "attn.qk.q.weight");
		assert_int_equal(gain->count, cases[i].count);
		assert_int_equal(gain->nd, cases[i].nd);
		assert_null(nr_store_find(r.store, "attn.v.weight"));
		release(&r);
	}
}

/* What a block cannot be built with is said, not left out. */
static void blocks_refuse_what_they_cannot_be(void **state)
{
	(void)state;
	const struct nr_rope rope = { .width = 3 };
	static const struct { const char *plan, *says; int rope; } cases[] = {
		{ "attn.qk=dyt:affine=0 attn.v=scale qk=heads", "the option 'affine'", 0 },
		{ "rms placement=ngpt", "plain attention alone", 1 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		char text[1200];
		assert_int_equal(nr_norms_use(r.n, cases[i].plan, &defaults, &r.err), 0);
		nr_block(r.n, reals(&r, 3, 2, 5, 6, 1), &(struct nr_block){ .heads = 2, .hidden = 4,
			.rope = cases[i].rope ? &rope : NULL });
		assert_int_not_equal(nr_norms_done(r.n, &r.err), 0);
		if (!strstr(nr_error_text(&r.err, text, sizeof text), cases[i].says)) fail_msg("'%s' says: %s", cases[i].plan, text);
		release(&r);
	}
	/* a model whose blocks are not nr_block */
	static const char *const others[] = { "ln placement=parallel", "ln placement=ngpt", "ln placement=hybrid" };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct rig r = rig();
		assert_int_equal(nr_norms_use(r.n, others[i], &defaults, &r.err), 0);
		nr_norm(r.n, "attn.in", reals(&r, 3, 2, 5, 6, 1));
		assert_int_equal(nr_norms_done(r.n, &r.err), NR_EVALUE);
		release(&r);
	}
}

/* Same names, same seed: the weights differ by the gain alone. Sub-LN sqrt(log 2N), DeepNorm (8N)^(-1/4), on all but queries
 * and keys. */
static void subln_and_deepnorm_start_with_other_weights(void **state)
{
	(void)state;
	static const char *const plan[] = { "ln", "ln placement=subln", "ln placement=post residual=deepnorm" };
	const double gain[] = { 1, sqrt(log(2 * 6)), pow(8 * 6, -.25) };
	real first[4] = { 0 };
	for (int i = 0; i < 3; i++) {
		struct rig r = rig();
		assert_int_equal(nr_norms_use(r.n, plan[i], &defaults, &r.err), 0);
		const struct nr_block b = { .heads = 2, .hidden = 16 };
		nr_push_nth(r.n, "blocks", 0, 6);
		run(&r, nr_pop(r.n, nr_block(r.n, reals(&r, 3, 1, 3, 8, 1), &b)));
		const real *qkv = nr_value(nr_store_find(r.store, "blocks.0.attn.qkv.weight"));
		const real *proj = nr_value(nr_store_find(r.store, "blocks.0.attn.proj.weight"));
		const real *fc1 = nr_value(nr_store_find(r.store, "blocks.0.mlp.fc1.weight"));
		const real now[] = { qkv[127], qkv[128], proj[5], fc1[7] };
		for (int k = 0; k < 4; k++) {
			const double want = (k ? gain[i] : 1) * (double)first[k];
			if (i == 0) first[k] = now[k];
			else close_to(&now[k], &want, 1, 1e-6);
		}
		release(&r);
	}
}

/* QK norm against its definition: rms of each head's queries and keys, by comparing attention with hand-made ones. */
static void qk_norm_works_per_head(void **state)
{
	(void)state;
	struct rig r = rig();
	assert_int_equal(nr_norms_use(r.n, "attn.qk=rms:eps=0", &defaults, &r.err), 0);
	const struct nr_block b = { .heads = 2, .hidden = 4 };
	nr_t *x = reals(&r, 3, 2, 5, 6, 1);
	nr_t *y = nr_block(r.n, x, &b);
	assert_int_equal(nr_norms_done(r.n, &r.err), 0);
	const real first = run(&r, y)[3];
	assert_int_equal(nr_store_find(r.store, "attn.qk.q.weight")->count, 3);
	/* With a norm on them the size of queries and keys does not matter. */
	const struct nr_entry *w = nr_store_find(r.store, "attn.qkv.weight");
	for (int64_t i = 0; i < 2 * 6 * 6; i++) nr_value(w)[i] *= 7;
	const double want = (double)first;
	close_to(&run(&r, y)[3], &want, 1, 1e-5);
	for (int64_t i = 0; i < 3; i++) nr_value(nr_store_find(r.store, "attn.qk.k.weight"))[i] *= 7;
	assert_true(fabs((double)run(&r, y)[3] - want) > 1e-4);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_norm_alone_goes_to_the_default_sites),
		cmocka_unit_test(the_last_matching_rule_wins),
		cmocka_unit_test(ranges_of_depth_are_pythons),
		cmocka_unit_test(placements_are_names_for_sites),
		cmocka_unit_test(some_placements_change_with_the_depth),
		cmocka_unit_test(patch_norms_add_to_the_rest),
		cmocka_unit_test(wrong_plans_name_the_nearest),
		cmocka_unit_test(eps_of_the_model_counts_where_the_text_gives_none),
		cmocka_unit_test(eps_can_be_set_for_the_whole_plan),
		cmocka_unit_test(a_models_own_rules_come_before_the_plans),
		cmocka_unit_test(residuals_scale_as_their_papers_say),
		cmocka_unit_test(keel_scales_the_stream_where_the_sum_has_a_norm),
		cmocka_unit_test(qk_says_what_its_norm_sees),
		cmocka_unit_test(blocks_refuse_what_they_cannot_be),
		cmocka_unit_test(subln_and_deepnorm_start_with_other_weights),
		cmocka_unit_test(qk_norm_works_per_head),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
