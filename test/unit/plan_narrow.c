/* src/graph/plan_narrow.c: leaving out tokens that the loss does not read changes no value, no running statistic and, but for the
 * order of sums, no gradient; whoever looks on sees all tokens and changes no bit. Also built in double (test/unit64). */
#include <omp.h>

#include "unit/rig.h"

#include "graph/plan.h"
#include "norma/model.h"
#include "norma/norm.h"

enum { B = 5 };
static const double grad_bound = sizeof(real) == 8 ? 1e-13 : 2e-6;     /* of the largest gradient */

#define VIT "vit:image=8,patch=2,channels=1,dim=12,heads=3,mlp=2,classes=4,"
#define DROP "dropout=0.2,attention_dropout=0.2,drop_path=0.3,"
#define BERT "bert:vocab=40,length=11,positions=16,dim=12,heads=3,hidden=20,pool=cls,"
#define GRAPH "graphormer:dim=12,heads=3,hidden=20,atoms=20,bonds=9,in_degrees=8,out_degrees=8,distances=9,hop_matrices=6,"            \
	"node_features=2,edge_features=2,paths=3,hops=3,nodes=7,classes=4,"

struct trial { const char *model, *norms; int narrows; };
static const struct trial trials[] = {
	{ VIT "depth=2", "ln", 1 }, { VIT DROP "depth=2", "ln", 1 }, { VIT DROP "depth=1", "ln", 1 },
	{ VIT DROP "depth=2,registers=2", "ln placement=post", 1 }, { VIT "depth=2,pool=avg", "ln", 0 },
	{ VIT "depth=2,position_bias=1,attention_dropout=0.3", "ln residual=layerscale:init=0.5", 1 },
	{ VIT "depth=3,class_at=2,dropout=0.2", "rms placement=sandwich residual=rezero", 1 },
	{ VIT "depth=2", "scale attn.qk=rms placement=normformer", 1 }, { VIT "depth=2", "dyt placement=subln residual=deepnorm", 1 },
	{ VIT "depth=2", "group:scope=token,groups=3 placement=respost", 1 },
	{ VIT DROP "depth=2", "bn", 0 }, { VIT DROP "depth=2", "ln final=bn", 0 }, { VIT "depth=2", "bn placement=post", 0 },
	{ VIT "depth=2", "ln blocks[-1].mlp.in=bn", 1 },               /* all but the norm, its MLP and the sum are needed whole */
	{ VIT DROP "depth=2", "sep(bn,bn)", 1 }, { VIT DROP "depth=2", "sep(bn,ln)", 1 }, { VIT "depth=1", "sep(bn,bn) placement=post", 1 },
	{ VIT "depth=2,registers=3", "sep(bn,dtn)", 1 }, { VIT "depth=2,registers=3", "sep(ln,bn) placement=prepost", 1 },
	/* what begins a join is itself a span, with gaps that a product cannot bear */
	{ VIT "depth=2", "ln attn.heads=bn attn.inner=sep(none,ln)", 1 }, { VIT DROP "depth=2", "ln attn.res=bn mlp.in=sep(none,ln)", 1 },
	{ VIT "depth=2", "switch", 0 }, { VIT "depth=2,act=relu", "sep(power,instance) placement=post", 1 },
	{ VIT "depth=2,registers=4", "sep(power,bn)", 1 }, { VIT "depth=2,registers=2", "sep(switch,group:groups=2)", 1 },
	{ BERT DROP "depth=2", "", 1 }, { BERT DROP "depth=2", "sep(bn,bn)", 1 }, { BERT DROP "depth=1", "sep(bn,ln) placement=pre", 1 },
	{ BERT "depth=2,pool=pooler", "ln placement=pre", 1 }, { BERT "depth=2,pool=avg", "", 0 }, { BERT DROP "depth=2,length=1", "", 0 },
	{ GRAPH "depth=2,dropout=0.2,attention_dropout=0.2,activation_dropout=0.2", "", 1 }, { GRAPH "depth=1", "sep(bn,bn)", 1 },
	{ GRAPH "depth=2", "sep(bn,ln) placement=pre", 1 },
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* drop_path is ViT's alone. */
static const char *model_of(const struct trial *t, char *buf, size_t size)
{
	const char *drop_path = strstr(t->model, "drop_path=0.3,");
	if (!drop_path || t->model[0] == 'v') return t->model;
	snprintf(buf, size, "%.*s%s", (int)(drop_path - t->model), t->model, drop_path + strlen("drop_path=0.3,"));
	return buf;
}

struct built {
	struct rig r;
	struct nr_arena *arena;
	nr_t *logits, *loss;
	struct nr_inputs in;
	nr_t *label, *seen[64];
	int n_seen;
};

/* Who looks on: a site's two sides as taps, or watched. */
enum { NOBODY, TAPS, WATCHED };
struct look { struct built *b; int how; };

static nr_t *at_site(void *context, struct nr_net *n, const char *name, const char *full, nr_t *before, nr_t *after)
{
	const struct look *l = context;
	struct built *b = l->b;
	(void)name, (void)full;
	if (after->nd != 3 || b->n_seen == 64) return after;
	after = l->how == TAPS ? nr_tap(n, "seen", after) : after;
	after->flags |= NR_WATCHED;
	before->flags |= NR_WATCHED;
	return b->seen[b->n_seen++] = after;
}

static void put_ints(const struct built *b, const nr_t *t, int32_t below)
{
	int32_t *v = t ? nr_plan_data(b->r.plan, t) : NULL;
	for (int64_t i = 0; t && i < nr_len(t); i++) v[i] = (int32_t)(1 + (i * 7 + i / 5 * 3) % (below - 1));
}

static void put_inputs(const struct built *b)
{
	const struct nr_inputs *in = &b->in;
	const nr_t *of_size = in->ids ? in->ids : in->nodes;
	value_seed = 5;
	for (int64_t i = 0; in->image && i < nr_len(in->image); i++) ((real *)nr_plan_data(b->r.plan, in->image))[i] = 2 * value();
	put_ints(b, in->ids, 40);
	put_ints(b, in->nodes, 21);
	put_ints(b, in->in_degree, 8);
	put_ints(b, in->out_degree, 8);
	put_ints(b, in->distance, 9);
	put_ints(b, in->edges, 10);
	for (int64_t i = 0; in->valid && i < B; i++)
		((int32_t *)nr_plan_data(b->r.plan, in->valid))[i] = (int32_t)(1 + (i * 3 + 2) % of_size->d[1]);
	for (int64_t i = 0; i < B; i++) ((int32_t *)nr_plan_data(b->r.plan, b->label))[i] = (int32_t)(i % 4);
}

static struct built build(const struct trial *t, unsigned flags, int how)
{
	struct built b = { .r = rig(), .arena = nr_arena_make() };
	struct nr_model_spec m;
	char text[1200], buf[512];
	struct look look = { &b, how };
	if (nr_model_parse(&m, model_of(t, buf, sizeof buf), b.arena, &b.r.err) || nr_norms_use(b.r.n, t->norms, &m.norms, &b.r.err))
		fail_msg("%s", nr_error_text(&b.r.err, text, sizeof text));
	if (how) nr_norms_watch(b.r.n, (struct nr_norm_watch){ at_site, &look });
	if (how == TAPS) nr_net_keep_hidden(b.r.n, 1);
	b.in = nr_model_inputs(b.r.n, &m, B);
	nr_t *pooled = m.of->pool(b.r.n, nr_model_tokens(b.r.n, &m, &b.in), m.conf);
	b.logits = m.of->head ? nr_model_head(b.r.n, &m, pooled) : nr_linear(b.r.n, "head", pooled, 4);
	b.label = nr_input(b.r.n, "label", NR_I32, NR_SHAPE(B));
	if (flags & NR_PLAN_TRAIN) nr_tap(b.r.n, "logits", b.logits);
	b.loss = flags & NR_PLAN_TRAIN ? nr_cross_entropy(b.r.n, b.logits, b.label, 0, -1) : b.logits;
	if (nr_norms_done(b.r.n, &b.r.err) || nr_plan_make(&b.r.plan, b.r.n, b.loss, flags, &b.r.err))
		fail_msg("%s: %s", t->model, nr_error_text(&b.r.err, text, sizeof text));
	for (int64_t i = 0; i < nr_store_count(b.r.store); i++) { /* no gradient hides behind a zero */
		const struct nr_entry *e = nr_store_at(b.r.store, i);
		value_seed = (uint32_t)i + 3;
		for (int64_t k = 0; !e->buffer && k < e->count; k++) {
			nr_value(e)[k] += (real).3 * value();
			nr_grad(e)[k] = 77;            /* of a step before: nobody may take it for this one's */
		}
	}
	put_inputs(&b);
	return b;
}

static void pass(struct built *b, int64_t step, int accumulate)
{
	nr_plan_run(b->r.plan, &(struct nr_exec){ .train = 1, .seed = 9, .step = step, .accumulate = accumulate },
		NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
}

static void drop(struct built *b)
{
	release(&b->r);
	nr_arena_free(b->arena);
}

static void same_tensor(const struct built *a, const nr_t *x, const struct built *b, const nr_t *y)
{
	assert_same_bits(nr_plan_data(a->r.plan, x), nr_plan_data(b->r.plan, y), nr_len(x));
}

static void near_grads(const struct trial *t, const struct built *a, const struct built *b)
{
	int64_t n;
	const real *want = nr_store_grads(b->r.store, &n);
	double largest = 0;
	for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]) * (want[i] != 77));
	for (int64_t i = 0; i < nr_store_count(a->r.store); i++) {
		const struct nr_entry *e = nr_store_at(a->r.store, i), *f = nr_store_at(b->r.store, i);
		for (int64_t k = 0; !e->buffer && k < e->count; k++)
			if (!(fabs((double)nr_grad(e)[k] - (double)nr_grad(f)[k]) <= grad_bound * largest))
				fail_msg("%s %s: %s[%lld] is %.9g, not %.9g (largest %.3g)", t->model, t->norms, e->name, (long long)k,
					(double)nr_grad(e)[k], (double)nr_grad(f)[k], largest);
	}
}

static void same_buffers(const struct built *a, const struct built *b)
{
	for (int64_t i = 0; i < nr_store_count(a->r.store); i++) {
		const struct nr_entry *e = nr_store_at(a->r.store, i), *f = nr_store_at(b->r.store, i);
		if (e->buffer) assert_same_bits(nr_value(e), nr_value(f), e->count);
	}
}

static void training_is_that_of_all_tokens(void **state)
{
	(void)state;
	const unsigned train = NR_PLAN_TRAIN | NR_PLAN_POISON, kinds[] = { 0, NR_PLAN_NO_FUSE, NR_PLAN_REBUILD };
	for (int i = 0; i < TRIALS; i++)
		for (int k = 0; k < 3; k++) {
			const struct trial *t = &trials[i];
			struct built a = build(t, train | kinds[k], NOBODY), b = build(t, train | kinds[k] | NR_PLAN_NO_NARROW, NOBODY);
			if ((nr_plan_stats(a.r.plan).narrowed > 0) != t->narrows) fail_msg("%s %s narrows or not", t->model, t->norms);
			assert_int_equal(nr_plan_stats(b.r.plan).narrowed, 0);
			for (int64_t step = 1; step < 4; step++) {
				pass(&a, step, step == 2);
				pass(&b, step, step == 2);
				same_tensor(&a, a.loss, &b, b.loss);
				same_tensor(&a, a.logits, &b, b.logits);
				near_grads(t, &a, &b);
				same_buffers(&a, &b);
			}
			drop(&a);
			drop(&b);
		}
}

static void inference_is_that_of_all_tokens(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		struct built a = build(&trials[i], 0, NOBODY), b = build(&trials[i], NR_PLAN_NO_NARROW, NOBODY);
		for (int train = 0; train < 2; train++) {
			const struct nr_exec ex = { .train = train, .seed = 9, .step = 1 };
			nr_plan_run(a.r.plan, &ex, NR_RUN_FORWARD);
			nr_plan_run(b.r.plan, &ex, NR_RUN_FORWARD);
			same_tensor(&a, a.logits, &b, b.logits);
		}
		drop(&a);
		drop(&b);
	}
}

struct watcher { struct built *b; real *copy[64]; int32_t call[64]; struct nr_view view[64]; };

static void after(void *context, int32_t call)
{
	struct watcher *w = context;
	for (int i = 0; i < w->b->n_seen; i++) {
		if (w->call[i] != call) continue;
		for (int64_t r = 0; r < w->view[i].rows; r++)
			memcpy(w->copy[i] + r * w->view[i].c, nr_row(&w->view[i], r), (size_t)w->view[i].c * sizeof(real));
	}
}

/* Sites as an onlooker sees them. */
static struct watcher watch(struct built *b)
{
	struct watcher w = { .b = b };
	for (int i = 0; i < b->n_seen; i++) {
		w.copy[i] = blank(nr_len(b->seen[i]));
		w.call[i] = nr_plan_made(b->r.plan, b->seen[i], &w.view[i]);
		assert_true(w.call[i] >= 0);
		assert_int_equal(w.view[i].rows, nr_rows(b->seen[i]));
	}
	return w;
}

static void who_looks_on_sees_all_tokens_and_changes_no_bit(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		const struct trial *t = &trials[i];
		struct built alone = build(t, NR_PLAN_TRAIN, NOBODY), taps = build(t, NR_PLAN_TRAIN, TAPS),
			     watched = build(t, NR_PLAN_TRAIN, WATCHED), ignored = build(t, NR_PLAN_TRAIN | NR_PLAN_POISON, WATCHED),
			     whole = build(t, NR_PLAN_TRAIN | NR_PLAN_NO_NARROW, TAPS);
		struct watcher w = watch(&watched);
		pass(&alone, 1, 0);
		pass(&taps, 1, 0);
		pass(&whole, 1, 0);
		pass(&ignored, 1, 0);
		nr_plan_run(watched.r.plan, &(struct nr_exec){ .train = 1, .seed = 9, .step = 1, .after = after, .context = &w },
			NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
		int64_t n;
		const real *grads = nr_store_grads(alone.r.store, &n);
		assert_same_bits(grads, nr_store_grads(taps.r.store, &n), n);
		assert_same_bits(grads, nr_store_grads(watched.r.store, &n), n);
		same_buffers(&alone, &taps);
		assert_same_bits(grads, nr_store_grads(ignored.r.store, &n), n);
		same_buffers(&alone, &watched);
		same_buffers(&alone, &ignored);
		assert_int_equal(taps.n_seen, whole.n_seen);
		for (int k = 0; k < taps.n_seen; k++) {
			same_tensor(&taps, taps.seen[k], &whole, whole.seen[k]);
			assert_same_bits(w.copy[k], nr_plan_data(whole.r.plan, whole.seen[k]), nr_len(whole.seen[k]));
			free(w.copy[k]);
		}
		drop(&alone);
		drop(&taps);
		drop(&watched);
		drop(&ignored);
		drop(&whole);
	}
}

static void threads_change_no_bit(void **state)
{
	(void)state;
	for (int i = 0; i < TRIALS; i++) {
		real *first = NULL;
		for (int threads = 1; threads < 4; threads++) {
			omp_set_num_threads(threads);
			struct built b = build(&trials[i], NR_PLAN_TRAIN | NR_PLAN_SHARE, NOBODY);
			pass(&b, 1, 0);
			int64_t n;
			const real *grads = nr_store_grads(b.r.store, &n);
			if (first) assert_same_bits(first, grads, n);
			else first = copy_of(grads, n);
			drop(&b);
		}
		free(first);
	}
	omp_set_num_threads(2);
}

static void the_environment_turns_it_off(void **state)
{
	(void)state;
	setenv("NORMA_NARROW", "0", 1);
	struct built b = build(&trials[0], NR_PLAN_TRAIN, NOBODY);
	unsetenv("NORMA_NARROW");
	assert_int_equal(nr_plan_stats(b.r.plan).narrowed, 0);
	drop(&b);
}

/* Behind attention of the last block only [CLS] is left: one row of each sample, and FLOPs are counted so. */
static void one_token_of_the_last_block_is_made(void **state)
{
	(void)state;
	const unsigned flags = NR_PLAN_TRAIN | NR_PLAN_NO_FUSE;
	struct built a = build(&trials[0], flags, NOBODY), b = build(&trials[0], flags | NR_PLAN_NO_NARROW, NOBODY);
	int found = 0;
	for (int32_t i = 0; i < a.r.plan->n_instr; i++) {
		const struct nr_node *k = a.r.plan->instr[i].call.node;
		if (strcmp(k->where.scope, "blocks.1.mlp.fc2") != 0) continue;
		assert_int_equal(nr_rows(k->out[0]), B);
		found++;
	}
	assert_int_equal(found, 2);
	/* a sample has 17 tokens: of 16 the projection, the MLP (2 x 12 wide) and both products of attention are saved */
	const double linear = 2.0 * B * 16 * 12 * (12 + 2 * 24), attention = 4.0 * B * 16 * 17 * 12;
	const struct nr_plan_stats s = nr_plan_stats(a.r.plan), t = nr_plan_stats(b.r.plan);
	assert_true(t.forward_flops - s.forward_flops >= linear + attention);
	assert_true(t.forward_flops - s.forward_flops <= 1.15 * (linear + attention));
	assert_true(fabs(t.forward_flops - s.forward_flops - s.left_out_flops) < 1e-9 * t.forward_flops);
	assert_true(t.left_out_flops == 0 && s.arena_bytes < t.arena_bytes);
	drop(&a);
	drop(&b);
}

/* An input that only left out tokens read has a gradient as before: zeros. */
static void a_gradient_that_is_asked_for_is_zeros_at_least(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r = rig();
		nr_t *x = leaf(&r, NR_REAL, NULL, 3, 2, 3, 4, 1), *z = leaf(&r, NR_REAL, NULL, 3, 2, 5, 4, 1);
		nr_t *y = nr_span(r.n, nr_linear(r.n, "out", nr_join(r.n, x, nr_linear(r.n, "in", z, 4)), 4), 0, 2);
		nr_t *loss = nr_mse(r.n, nr_pack(r.n, y), leaf(&r, NR_REAL, NULL, 3, 2, 2, 4, 1));
		if (nr_plan_make(&r.plan, r.n, loss, NR_PLAN_TRAIN | (k ? NR_PLAN_NO_NARROW : 0), &r.err)) fail_msg("%s", r.err.detail);
		assert_int_equal(nr_plan_stats(r.plan).narrowed, !k);
		const struct nr_entry *in = nr_store_find(r.store, "in.weight");
		for (int64_t i = 0; i < 16; i++) nr_grad(in)[i] = 3;
		for (int64_t i = 0; i < nr_len(z); i++) nr_plan_grad(r.plan, z)[i] = 3;
		run_with(&r, loss, (struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		for (int64_t i = 0; i < nr_len(z); i++) assert_true(nr_plan_grad(r.plan, z)[i] == 0);
		for (int64_t i = 0; i < 16; i++) assert_true(nr_grad(in)[i] == 0);
		release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_is_that_of_all_tokens), cmocka_unit_test(inference_is_that_of_all_tokens),
		cmocka_unit_test(who_looks_on_sees_all_tokens_and_changes_no_bit), cmocka_unit_test(threads_change_no_bit),
		cmocka_unit_test(the_environment_turns_it_off), cmocka_unit_test(one_token_of_the_last_block_is_made),
		cmocka_unit_test(a_gradient_that_is_asked_for_is_zeros_at_least),
	};
	omp_set_num_threads(2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
