/* src/models/{graphormer,guess_graph}.c, src/nn/{path_bias,known}.c: padding, the virtual node, cut pairs, tables' row 0, files. */
#include <math.h>
#include <unistd.h>

#include "models/names.h"
#include "unit/rig.h"
#include "unit/folder.h"

#include "base/mem.h"
#include "base/save.h"
#include "models/graphormer.h"
#include "models/guess.h"
#include "norma/safetensors.h"

#define SMALL "dim=12,depth=2,heads=3,hidden=20,atoms=20,bonds=9,in_degrees=8,out_degrees=8,distances=9,hop_matrices=6"
#define MODEL "graphormer:" SMALL ",node_features=2,edge_features=2,paths=3,hops=3"

enum { B = 3, C = 12 };

struct graphs {
	struct rig r;
	struct nr_arena *arena;
	struct nr_model_spec model;
	struct nr_inputs in;
	nr_t *tokens, *logits;
	int64_t N;
};

static struct graphs built(const char *model, const char *norms)
{
	struct graphs x = { .r = rig(), .arena = nr_arena_make() };
	char text[1200];
	if (nr_model_parse(&x.model, model, x.arena, &x.r.err) || nr_norms_use(x.r.n, norms, &x.model.norms, &x.r.err))
		fail_msg("%s: %s", norms, nr_error_text(&x.r.err, text, sizeof text));
	x.N = nr_model_int(&x.model, "nodes");
	x.in = nr_model_inputs(x.r.n, &x.model, B);
	x.tokens = nr_tap(x.r.n, "tokens", nr_model_tokens(x.r.n, &x.model, &x.in));
	x.logits = nr_tap(x.r.n, "logits", nr_model_head(x.r.n, &x.model, x.model.of->pool(x.r.n, x.tokens, x.model.conf)));
	if (!x.logits) fail_msg("%s", nr_error_text(nr_net_error(x.r.n), text, sizeof text));
	return x;
}

/* Numbers of node i or pair (i, j) that do not depend on how far the graph is padded; `pad` stands behind the `most` nodes. */
static void put(const struct graphs *x, const nr_t *t, int64_t nodes, const int32_t *valid, int32_t below, int32_t pad)
{
	int32_t *v = nr_plan_data(x->r.plan, t);
	const int64_t pairs = nodes == 2 ? x->N : 1, each = nr_len(t) / (B * x->N * pairs);
	for (int64_t q = 0; q < nr_len(t); q++) {
		const int64_t p = q / each, b = p / (x->N * pairs), i = p / pairs % x->N, j = nodes == 2 ? p % x->N : 0;
		const int64_t number = ((b * 31 + i) * 17 + j) * 13 + q % each;
		v[q] = i < valid[b] && j < valid[b] ? 1 + (int32_t)(number % (below - 1)) : pad;
	}
}

static void ready(struct graphs *x, const int32_t *valid, int32_t pad)
{
	char text[1200];
	nr_t *weight = nr_input(x->r.n, "weight", NR_REAL, NR_SHAPE(B, x->logits->d[1]));
	nr_t *loss = nr_weighted_sum(x->r.n, x->logits, weight);
	if (nr_norms_done(x->r.n, &x->r.err) || nr_plan_make(&x->r.plan, x->r.n, loss, NR_PLAN_TRAIN | NR_PLAN_POISON, &x->r.err))
		fail_msg("%s", nr_error_text(&x->r.err, text, sizeof text));
	put(x, x->in.nodes, 1, valid, 21, pad);
	put(x, x->in.in_degree, 1, valid, 8, pad);
	put(x, x->in.out_degree, 1, valid, 8, pad);
	put(x, x->in.distance, 2, valid, 9, pad);
	put(x, x->in.edges, 2, valid, 10, pad);
	memcpy(nr_plan_data(x->r.plan, x->in.valid), valid, B * sizeof *valid);
	for (int64_t i = 0; i < nr_len(weight); i++) ((real *)nr_plan_data(x->r.plan, weight))[i] = (real)(i + 1);
}

/* Every parameter away from its first value. */
static void stir(struct graphs *x)
{
	value_seed = 7;
	for (int64_t i = 0; i < nr_store_count(x->r.store); i++) {
		const struct nr_entry *e = nr_store_at(x->r.store, i);
		for (int64_t k = 0; !e->buffer && k < e->count; k++) nr_value(e)[k] += (real).3 * value();
	}
}

static void pass(struct graphs *x, int train)
{
	nr_plan_run(x->r.plan, &(struct nr_exec){ .train = train, .seed = 1, .step = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
}

static void discard(struct graphs *x)
{
	nr_arena_free(x->arena);
	release(&x->r);
}

static void padding_changes_no_answer(void **state)
{
	(void)state;
	static const char *const norms[] = { "", "ln placement=pre", "sep(bn,ln)", "bn", "sep(ln,bn) placement=sandwich" };
	static const int32_t valid[B] = { 4, 1, 2 };
	for (size_t k = 0; k < sizeof norms / sizeof *norms; k++) {
		struct graphs a = built(MODEL ",nodes=4", norms[k]);
		struct graphs b = built(MODEL ",nodes=7", norms[k]), c = built(MODEL ",nodes=7", norms[k]);
		ready(&a, valid, 0);
		ready(&b, valid, 0);
		ready(&c, valid, 5);            /* what stands in padding is not looked at */
		stir(&a), stir(&b), stir(&c);
		pass(&a, 1), pass(&b, 1), pass(&c, 1);
		const real *ya = nr_plan_data(a.r.plan, a.logits), *yb = nr_plan_data(b.r.plan, b.logits);
		const real *yc = nr_plan_data(c.r.plan, c.logits);
		for (int i = 0; i < B; i++) {
			assert_true(isfinite(ya[i]));
			assert_true(fabs((double)(ya[i] - yb[i])) < 1e-4 && fabs((double)(ya[i] - yc[i])) < 1e-4);
		}
		discard(&a), discard(&b), discard(&c);
	}
}

static void a_graph_of_one_node_works(void **state)
{
	(void)state;
	static const int32_t valid[B] = { 1, 1, 1 };
	struct graphs x = built("graphormer:" SMALL ",nodes=1,node_features=1,edge_features=1,edges=simple,paths=0,classes=4", "");
	ready(&x, valid, 0);
	pass(&x, 1);
	for (int i = 0; i < B * 4; i++) assert_true(isfinite(((const real *)nr_plan_data(x.r.plan, x.logits))[i]));
	assert_int_equal(nr_store_find(x.r.store, "head.bias")->count, 1);
	assert_null(nr_store_find(x.r.store, "bias.hop.weight"));
	discard(&x);
}

static void row_0_of_the_tables_is_zero_and_stays_so(void **state)
{
	(void)state;
	static const char *const tables[] = { "atom.weight", "in_degree.weight", "out_degree.weight", "bias.distance.weight",
		"bias.edge.weight" };
	static const int32_t valid[B] = { 4, 3, 2 };
	struct graphs x = built(MODEL ",nodes=4", "");
	ready(&x, valid, 0);
	pass(&x, 1);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		const struct nr_entry *e = nr_store_find(x.r.store, tables[i]);
		real rest = 0;
		for (int64_t k = 0; k < e->count; k++) {
			if (k < e->d[1]) assert_true(nr_value(e)[k] == 0 && nr_grad(e)[k] == 0);
			else rest += nr_value(e)[k] * nr_value(e)[k];
		}
		assert_true(rest > 0);
	}
	discard(&x);
}

static void pairs_beyond_the_cut_do_not_attend(void **state)
{
	(void)state;
	static const int32_t distance[9] = { 1, 2, 3, 2, 1, 2, 3, 2, 1 };         /* a path of three nodes */
	struct rig r = rig();
	nr_t *d = nr_input(r.n, "d", NR_I32, NR_SHAPE(1, 3, 3));
	nr_t *table = nr_param(r.n, "t", NR_ONES, NR_SHAPE(5, 2));
	nr_t *own = nr_param(r.n, "v", NR_ZEROS, NR_SHAPE(1, 2));
	nr_t *y = nr_path_bias(r.n, &(struct nr_path_bias){ .distance_table = table, .virtual_distance = own, .distance = d, .cut = 2 });
	assert_int_equal(nr_plan_make(&r.plan, r.n, y, 0, &r.err), 0);
	memcpy(nr_plan_data(r.plan, d), distance, sizeof distance);
	nr_plan_run(r.plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
	const real *v = nr_plan_data(r.plan, y);
	for (int h = 0; h < 2; h++)
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++) {
				const real want = !i || !j ? 0 : abs(i - j) == 2 ? (real)-1e30 : 1;
				assert_true(v[(h * 4 + i) * 4 + j] == want);
			}
	release(&r);
}

static void targets_that_are_missing_do_not_count(void **state)
{
	(void)state;
	static const real x[4] = { 1, -2, (real).5, 100 };
	static const real targets[3][4] = { { 0, 0, NAN, NAN }, { 1, 0, NAN, NAN }, { NAN, NAN, NAN, NAN } };
	const double no = (log(1 + exp(1)) + log(1 + exp(-2))) / 2; /* no positive */
	const double bce = (log(1 + exp(-1)) + log(1 + exp(-2))) / 2, want[3][3] = { { 1.5, 2.5, no }, { 1, 2, bce }, { 0, 0, 0 } };
	for (int kind = 0; kind < 3; kind++)
		for (int k = 0; k < 3; k++) {
			struct rig r = rig();
			nr_t *p = nr_input(r.n, "p", NR_REAL, NR_SHAPE(2, 2));
			nr_t *t = nr_input(r.n, "t", NR_REAL, NR_SHAPE(2, 2));
			nr_t *y = nr_known_loss(r.n, p, t, (enum nr_known)kind);
			p->flags |= NR_GRAD;
			assert_int_equal(nr_plan_make(&r.plan, r.n, y, NR_PLAN_TRAIN, &r.err), 0);
			memcpy(nr_plan_data(r.plan, p), x, sizeof x);
			memcpy(nr_plan_data(r.plan, t), targets[k], sizeof targets[k]);
			nr_plan_run(r.plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
			const double got = (double)*(const real *)nr_plan_data(r.plan, y);
			assert_true(fabs(got - want[k][kind]) < 1e-6);
			assert_true(nr_plan_grad(r.plan, p)[2] == 0 && nr_plan_grad(r.plan, p)[3] == 0);
			release(&r);
		}
}

static void norms_that_need_an_order_are_refused(void **state)
{
	(void)state;
	struct rig r = rig();
	struct nr_arena *arena = nr_arena_make();
	struct nr_model_spec m;
	char text[1200];
	assert_int_equal(nr_model_parse(&m, MODEL ",nodes=4", arena, &r.err), 0);
	assert_int_equal(nr_norms_use(r.n, "dtn", &m.norms, &r.err), 0);
	const struct nr_inputs in = nr_model_inputs(r.n, &m, B);
	assert_null(nr_model_logits(r.n, &m, &in));
	assert_true(nr_norms_done(r.n, &r.err) != 0);
	if (!strstr(nr_error_text(&r.err, text, sizeof text), "nodes of a graph have no order")) fail_msg("%s", text);
	assert_int_equal(nr_model_expect(&m, NR_MOLECULES, NULL), 0);
	assert_int_equal(nr_model_expect(&m, NR_PICTURES, NULL), NR_EUSAGE);
	nr_arena_free(arena);
	release(&r);
}

/* ---- files ---------------------------------------------------------------------------------------------------------------- */

/* A file under these names comes back whole, and looks like what it is. */
static void comes_back(const char *model, const char *norms, const char *naming, bool config, const char *want, const char *want_norms)
{
	struct graphs x = built(model, norms), y = built(model, norms);
	struct nr_import how = { .naming = "auto" };
	struct nr_st_file *f;
	struct nr_guess g;
	char text[1200];
	assert_int_equal(nr_store_seal(x.r.store, &x.r.err), 0);
	for (int64_t i = 0; i < nr_store_count(x.r.store); i++) *nr_value(nr_store_at(x.r.store, i)) += 1;
	if (nr_model_export(x.r.store, x.model.of, made_path("model.safetensors"), naming, NULL, 0, &x.r.err) ||
	    nr_model_import(y.r.store, y.model.of, made_path("model.safetensors"), &how, &y.r.err))
		fail_msg("%s%s", nr_error_text(&x.r.err, text, sizeof text / 2), nr_error_text(&y.r.err, text + 600, 600));
	assert_string_equal(how.used, naming);
	for (int64_t i = 0; i < nr_store_count(x.r.store); i++) {
		const struct nr_entry *a = nr_store_at(x.r.store, i), *b = nr_store_at(y.r.store, i);
		assert_memory_equal(nr_value(a), nr_value(b), (size_t)a->count * sizeof(real));
	}
	json_t *j = config ? x.model.of->file->config(&(struct nr_saved){ .model = &x.model, .store = x.r.store, .eps = 1e-5 }) : NULL;
	char *said = j ? json_dumps(j, 0) : NULL;
	if (said) assert_int_equal(nr_save_file(made_path("config.json"), said, strlen(said), &x.r.err), 0);
	else unlink(made_path("config.json"));
	free(said);
	json_decref(j);
	assert_int_equal(nr_st_open(&f, made_path("model.safetensors"), &x.r.err), 0);
	if (!nr_model_guess(&g, f, x.arena)) fail_msg("%s, %s: no guess", model, naming);
	assert_string_equal(g.model, want);
	assert_string_equal(g.norms, want_norms);
	assert_string_equal(g.naming, naming);
	assert_int_equal(g.sure, config);
	nr_st_close(f);
	discard(&x), discard(&y);
}

static void files_come_back_and_look_like_their_model(void **state)
{
	(void)state;
	static const char *const namings[] = { "norma", "huggingface", "official" };
	for (int i = 0; i < 3; i++) {
		comes_back("graphormer:" SMALL ",nodes=2", "", namings[i], false, "graphormer:" SMALL, "");
		comes_back("graphormer:" SMALL ",nodes=2,hops=3,cut=7,classes=4", "sep(bn,ln) placement=pre embed=none", namings[i], true,
			"graphormer:" SMALL ",hops=3,cut=7,classes=4", "sep(bn,ln) placement=pre embed=none");
	}
	comes_back("graphormer:dim=12,depth=1,heads=3,nodes=2,edges=simple,paths=0", "", "huggingface", true,
		"graphormer:dim=12,depth=1,heads=3,edges=simple,paths=0", "");
}

static void the_spare_norm_of_public_files_is_known(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_arena_make();
	struct nr_model_spec m;
	assert_int_equal(nr_model_parse(&m, "graphormer-nano", arena, &err), 0);
	const struct nr_naming *n = nr_naming_find(m.of, "huggingface", &err);
	assert_non_null(n);
	assert_true(nr_naming_ignores(n, "encoder.graph_encoder.final_layer_norm.weight"));
	assert_false(nr_naming_ignores(n, "encoder.graph_encoder.layers.0.final_layer_norm.weight"));
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padding_changes_no_answer),
		cmocka_unit_test(a_graph_of_one_node_works),
		cmocka_unit_test(row_0_of_the_tables_is_zero_and_stays_so),
		cmocka_unit_test(pairs_beyond_the_cut_do_not_attend),
		cmocka_unit_test(targets_that_are_missing_do_not_count),
		cmocka_unit_test(norms_that_need_an_order_are_refused),
		cmocka_unit_test(the_spare_norm_of_public_files_is_known),
		cmocka_unit_test_setup_teardown(files_come_back_and_look_like_their_model, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
