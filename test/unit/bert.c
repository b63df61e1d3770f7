/* src/models/{bert,roberta,text_heads,hf_config}.c: padding, places, pooling, gradients of pads, files. */
#include <unistd.h>

#include "models/guess.h"
#include "unit/rig.h"
#include "unit/folder.h"

#include "base/mem.h"
#include "base/save.h"
#include "models/text_heads.h"
#include "norma/safetensors.h"

#define BERT "bert:vocab=19,dim=12,depth=2,heads=3,hidden=20,positions=9,length=7"
#define ROBERTA "roberta:vocab=19,dim=12,depth=2,heads=3,hidden=20,positions=9,length=7"

enum { B = 3, T = 7, C = 12 };
static const int32_t lengths[B] = { 5, 7, 1 };

struct text {
	struct rig r;
	struct nr_arena *arena;
	struct nr_model_spec model;
	struct nr_inputs in;
	struct nr_text t;
};

static struct text built(const char *model, const char *norms)
{
	struct text x = { .r = rig(), .arena = nr_arena_make() };
	char text[1200];
	if (nr_model_parse(&x.model, model, x.arena, &x.r.err) || nr_norms_use(x.r.n, norms, &x.model.norms, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	x.in = nr_model_inputs(x.r.n, &x.model, B);
	nr_text_encode(x.r.n, &x.model, &x.in, &x.t);
	if (nr_norms_done(x.r.n, &x.r.err)) fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	return x;
}

/* Ids from 2 on, `pads` behind the lengths; every parameter away from its first value. */
static void ready(struct text *x, nr_t *y, int32_t pads)
{
	char text[1200];
	if (nr_plan_make(&x->r.plan, x->r.n, y, NR_PLAN_TRAIN | NR_PLAN_POISON, &x->r.err))
		fail_msg("%s", nr_error_text(&x->r.err, text, sizeof text));
	int32_t *ids = nr_plan_data(x->r.plan, x->in.ids);
	for (int i = 0; i < B * T; i++) ids[i] = i % T < lengths[i / T] ? 2 + i % 11 : pads;
	memcpy(nr_plan_data(x->r.plan, x->in.valid), lengths, sizeof lengths);
	value_seed = 7;
	for (int64_t i = 0; i < nr_store_count(x->r.store); i++) {
		const struct nr_entry *e = nr_store_at(x->r.store, i);
		for (int64_t k = 0; !e->buffer && k < e->count; k++) nr_value(e)[k] += (real).3 * value();
	}
}

static void pass(struct text *x, int train)
{
	nr_plan_run(x->r.plan, &(struct nr_exec){ .train = train, .seed = 1, .step = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
}

static void discard(struct text *x)
{
	release(&x->r);
	nr_arena_free(x->arena);
}

/* What stands at padded places is seen by no real token, whatever the norms take their statistics over. */
static void padding_changes_no_real_token(void **state)
{
	(void)state;
	static const char *const plans[] = { "", "bn", "sep(bn,ln)", "sep(ln,bn)", "dtn", "sep(bn,dtn)", "pn:variant=pnv", "rms",
		"in", "gn:groups=3", "scale", "dyt", "placement=pre", "placement=normformer", "placement=subln", "residual=deepnorm",
		"sn", "embed=bn bn", "attn.qk=rms *=ln" };
	for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
		real *kept = NULL;
		for (int32_t pads = 0; pads < 4; pads += 3) {
			struct text x = built(BERT, plans[p]);
			nr_t *y = nr_tap(x.r.n, "y", x.t.tokens);
			ready(&x, nr_mse(x.r.n, nr_text_pool(x.r.n, &x.t, NR_TEXT_AVG), nr_text_pool(x.r.n, &x.t, NR_TEXT_CLS)), pads);
			pass(&x, 1);
			const real *got = nr_plan_data(x.r.plan, y);
			for (int b = 0; kept && b < B; b++) assert_near(got + b * T * C, kept + b * T * C, lengths[b] * C, 2e-6);
			for (int i = 0; i < B * T * C; i++) assert_true(isfinite(got[i]));
			if (!kept) kept = copy_of(got, B * T * C);
			discard(&x);
		}
		free(kept);
	}
}

static void a_text_of_one_token_works(void **state)
{
	(void)state;
	static const char *const plans[] = { "", "sep(bn,ln)", "sep(ln,dtn)", "bn" };
	for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
		struct text x = { .r = rig(), .arena = nr_arena_make() };
		assert_int_equal(nr_model_parse(&x.model, BERT ",length=1", x.arena, &x.r.err), 0);
		assert_int_equal(nr_norms_use(x.r.n, plans[p], &x.model.norms, &x.r.err), 0);
		x.in = nr_model_inputs(x.r.n, &x.model, 1);
		nr_text_encode(x.r.n, &x.model, &x.in, &x.t);
		nr_t *y = nr_text_pool(x.r.n, &x.t, NR_TEXT_AVG);
		assert_int_equal(nr_plan_make(&x.r.plan, x.r.n, y, 0, &x.r.err), 0);
		*(int32_t *)nr_plan_data(x.r.plan, x.in.ids) = 5;
		*(int32_t *)nr_plan_data(x.r.plan, x.in.valid) = 1;
		nr_plan_run(x.r.plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD);
		for (int i = 0; i < C; i++) assert_true(isfinite(((const real *)nr_plan_data(x.r.plan, y))[i]));
		discard(&x);
	}
}

static void robertas_places_leave_pads_out(void **state)
{
	(void)state;
	struct rig r = rig();
	static const int32_t ids[] = { 0, 5, 6, 1, 1, 4, 1, 7, 1, 9 };
	static const int32_t want[] = { 2, 3, 4, 1, 1, 2, 1, 3, 1, 4 };
	const real *y = run(&r, nr_tap(r.n, "y", nr_text_positions(r.n, ints(&r, ids, 2, 2, 5), 1)));
	assert_memory_equal(y, want, sizeof want);
	release(&r);
}

/* The lookup sends nothing to the padding's row; a tied decoder does. */
static void rows_of_pads_learn_from_the_decoder_alone(void **state)
{
	(void)state;
	static const char *const models[] = { BERT, ROBERTA };
	for (int tied = 0; tied < 2; tied++)
		for (int m = 0; m < 2; m++) {
			struct text x = built(models[m], "");
			nr_t *labels = nr_input(x.r.n, "labels", NR_I32, NR_SHAPE(B, T));
			nr_t *logits = nr_mlm_logits(x.r.n, &x.model, x.t.tokens, tied);
			ready(&x, nr_cross_entropy(x.r.n, logits, labels, 0, NR_TEXT_IGNORED), m);
			int32_t *label = nr_plan_data(x.r.plan, labels);
			for (int i = 0; i < B * T; i++) label[i] = i % 3 ? NR_TEXT_IGNORED : i % 19;
			pass(&x, 1);
			const real *word = nr_grad(nr_store_find(x.r.store, "word.weight"));
			const real *place = nr_grad(nr_store_find(x.r.store, "position.weight"));
			double most = 0, row = 0;
			for (int i = 0; i < C; i++) most += fabs((double)word[m * C + i]), row += fabs((double)place[C + i]);
			assert_true(tied ? most > 0 : most == 0);
			assert_true(m ? row == 0 : row > 0);            /* RoBERTa's place of pads; BERT's second token */
			discard(&x);
		}
}

/* Logits of one token by hand: a dense layer, the activation, a layer norm, the word table. */
static void head_by_hand(const struct text *x, const real *token, bool gelu, double *logit)
{
	const char *const names[] = { "mlm.dense.weight", "mlm.dense.bias", "mlm.norm.weight", "mlm.norm.bias", "word.weight", "mlm.bias" };
	const real *v[6];
	double h[C], mean = 0, var = 0;
	for (int i = 0; i < 6; i++) v[i] = nr_value(nr_store_find(x->r.store, names[i]));
	for (int o = 0; o < C; o++) {
		h[o] = (double)v[1][o];
		for (int i = 0; i < C; i++) h[o] += (double)v[0][o * C + i] * (double)token[i];
		h[o] = gelu ? h[o] * (1 + erf(h[o] / sqrt(2))) / 2 : h[o] > 0 ? h[o] : 0;
		mean += h[o] / C;
	}
	for (int o = 0; o < C; o++) var += (h[o] - mean) * (h[o] - mean) / C;
	for (int w = 0; w < 19; w++) {
		logit[w] = (double)v[5][w];
		for (int o = 0; o < C; o++)
			logit[w] += (double)v[4][w * C + o] * ((h[o] - mean) / sqrt(var + 1e-5) * (double)v[2][o] + (double)v[3][o]);
	}
}

static void robertas_head_is_gelu_whatever_its_blocks_have(void **state)
{
	(void)state;
	for (int roberta = 0; roberta < 2; roberta++) {
		struct text x = built(roberta ? ROBERTA ",act=relu" : BERT ",act=relu", "ln:eps=1e-5");
		nr_t *tokens = nr_tap(x.r.n, "tokens", x.t.tokens), *labels = nr_input(x.r.n, "labels", NR_I32, NR_SHAPE(B, T));
		nr_t *logits = nr_tap(x.r.n, "logits", nr_mlm_logits(x.r.n, &x.model, x.t.tokens, true));
		ready(&x, nr_cross_entropy(x.r.n, logits, labels, 0, NR_TEXT_IGNORED), roberta);
		memset(nr_plan_data(x.r.plan, labels), 0, B * T * sizeof(int32_t));
		pass(&x, 0);
		double want[19];
		head_by_hand(&x, nr_plan_data(x.r.plan, tokens), roberta, want);
		close_to(nr_plan_data(x.r.plan, logits), want, 19, 1e-5);
		discard(&x);
	}
}

static void poolings_are_means_of_the_layers_they_name(void **state)
{
	(void)state;
	struct text x = built(BERT, "");
	nr_t *y[5], *all = NULL;
	for (int k = 0; k < 5; k++) {
		y[k] = nr_tap(x.r.n, nr_text_poolings[k], nr_text_pool(x.r.n, &x.t, (enum nr_text_pooling)k));
		all = all ? nr_add(x.r.n, all, y[k]) : y[k];
	}
	nr_tap(x.r.n, "one", x.t.layer[0]), nr_tap(x.r.n, "two", x.t.layer[1]);
	ready(&x, nr_mse(x.r.n, all, y[0]), 0);
	pass(&x, 0);
	const real *one = nr_plan_data(x.r.plan, x.t.layer[0]), *two = nr_plan_data(x.r.plan, x.t.layer[1]);
	for (int b = 0; b < B; b++) {
		double want[5][C] = { { 0 } };
		for (int c = 0; c < C; c++) {
			const real *p = one + b * T * C + c, *q = two + b * T * C + c;
			want[0][c] = want[1][c] = (double)*q;
			for (int t = 0; t < lengths[b]; t++) {
				want[2][c] += (double)q[t * C] / lengths[b];
				want[3][c] += ((double)q[t * C] + (double)p[t * C]) / 2 / lengths[b];
			}
			want[4][c] = want[3][c];                        /* of two blocks the first is the second last */
		}
		for (int k = 0; k < 5; k++) close_to((const real *)nr_plan_data(x.r.plan, y[k]) + b * C, want[k], C, 1e-5);
	}
	discard(&x);
}

static void embeddings_of_no_length_have_a_finite_loss(void **state)
{
	(void)state;
	struct rig r = rig();
	static const real z[3 * 2 * 2] = { 0, 0, 1, 2, 1e-20f, 0, 3, 1, 2, 2, 0, 0 };
	const real *loss = step(&r, nr_simcse_loss(r.n, leaf(&r, NR_REAL, z, 3, 3, 2, 2, 1), .05, 0, NULL));
	assert_true(isfinite(*loss));
	const real *grad = nr_plan_grad(r.plan, r.leaf[0]);
	for (int i = 0; i < 12; i++) assert_true(isfinite(grad[i]));
	release(&r);
}

static void what_does_not_fit_is_said(void **state)
{
	(void)state;
	static const struct { const char *model, *norms, *says; } cases[] = {
		{ BERT ",length=10", "", "texts have 10 tokens, but there are only 9 positions" },
		{ ROBERTA ",length=8", "", "texts have 8 tokens, but there are only 7 positions" },
		{ BERT ",heads=5", "", "cannot be divided into 5 heads" },
		{ "vit_nano", "", "a text model" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rig r = rig();
		struct nr_arena *arena = nr_arena_make();
		struct nr_model_spec m;
		struct nr_text t;
		char text[1200];
		assert_int_equal(nr_model_parse(&m, cases[i].model, arena, &r.err), 0);
		assert_int_equal(nr_norms_use(r.n, cases[i].norms, &m.norms, &r.err), 0);
		const struct nr_inputs in = nr_model_inputs(r.n, &m, 2);
		nr_text_encode(r.n, &m, &in, &t);
		assert_true(nr_norms_done(r.n, &r.err) != 0);
		if (!strstr(nr_error_text(&r.err, text, sizeof text), cases[i].says)) fail_msg("%s", text);
		assert_int_equal(nr_model_expect(&m, m.of->reads, NULL), 0);
		const enum nr_kind other = m.of->reads == NR_TEXTS ? NR_PICTURES : NR_TEXTS;
		assert_int_equal(nr_model_expect(&m, other, NULL), NR_EUSAGE);
		nr_arena_free(arena);
		release(&r);
	}
}

/* ---- files ---------------------------------------------------------------------------------------------------------------- */

/* A model with every head, written under these names; what it is then taken for. */
static void guess_is(const char *model, const char *norms, const char *naming, const char *config, const char *want, const char *want_norms)
{
	struct text x = built(model, norms);
	struct nr_st_file *f;
	struct nr_guess g;
	char text[1200];
	nr_text_heads_record(x.r.n, &x.model, x.t.tokens, NR_TEXT_HAS_POOLER | NR_TEXT_HAS_MLM | NR_TEXT_HAS_SIMCSE);
	assert_int_equal(nr_store_seal(x.r.store, &x.r.err), 0);
	if (nr_model_export(x.r.store, x.model.of, made_path("model.safetensors"), naming, NULL, 0, &x.r.err))
		fail_msg("%s", nr_error_text(&x.r.err, text, sizeof text));
	if (config) assert_int_equal(nr_save_file(made_path("config.json"), config, strlen(config), &x.r.err), 0);
	else unlink(made_path("config.json"));
	assert_int_equal(nr_st_open(&f, made_path("model.safetensors"), &x.r.err), 0);
	assert_int_equal(nr_model_guess(&g, f, x.arena), 1);
	assert_string_equal(g.model, want);
	assert_string_equal(g.norms, want_norms);
	assert_string_equal(g.naming, naming);
	assert_int_equal(g.sure, config != NULL);
	assert_int_equal(nr_text_heads_in(x.model.of, f, x.arena), NR_TEXT_HAS_POOLER | NR_TEXT_HAS_MLM | NR_TEXT_HAS_SIMCSE);
	nr_st_close(f);
	discard(&x);
}

static void a_file_looks_like_its_model(void **state)
{
	(void)state;
	static const char *const namings[] = { "huggingface", "huggingface_base", "simcse", "norma" };
	for (int i = 0; i < 4; i++) {
		guess_is(BERT, "", namings[i], NULL, "bert:vocab=19,dim=12,depth=2,heads=1,hidden=20,positions=9,length=9", "");
		guess_is(BERT, "sep(bn,ln)", namings[i],
			"{\"model_type\": \"bert\", \"num_attention_heads\": 3, \"hidden_act\": \"gelu_new\", \"layer_norm_eps\": 1e-5, "
			"\"pad_token_id\": 4}",
			"bert:vocab=19,dim=12,depth=2,heads=3,hidden=20,positions=9,pad=4,length=9,act=gelu_tanh", "eps=1e-05 sep(bn,ln)");
	}
	guess_is(ROBERTA, "", "huggingface_base", NULL, "roberta:vocab=19,dim=12,depth=2,heads=1,hidden=20,positions=9,length=7", "");
	guess_is(ROBERTA ",types=2", "", "huggingface", "{\"model_type\": \"roberta\", \"num_attention_heads\": 3}",
		"roberta:vocab=19,dim=12,depth=2,heads=3,hidden=20,positions=9,types=2,length=7", "");
}

static void the_first_checkpoints_call_gains_gamma(void **state)
{
	(void)state;
	guess_is(BERT, "", "huggingface_gamma", NULL, "bert:vocab=19,dim=12,depth=2,heads=1,hidden=20,positions=9,length=9", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padding_changes_no_real_token),
		cmocka_unit_test(a_text_of_one_token_works),
		cmocka_unit_test(robertas_places_leave_pads_out),
		cmocka_unit_test(rows_of_pads_learn_from_the_decoder_alone),
		cmocka_unit_test(poolings_are_means_of_the_layers_they_name),
		cmocka_unit_test(robertas_head_is_gelu_whatever_its_blocks_have),
		cmocka_unit_test(embeddings_of_no_length_have_a_finite_loss),
		cmocka_unit_test(what_does_not_fit_is_said),
		cmocka_unit_test_setup_teardown(a_file_looks_like_its_model, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(the_first_checkpoints_call_gains_gamma, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
