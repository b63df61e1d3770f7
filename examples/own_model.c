/* A transformer of one's own with libnorma: recorded once, planned once, trained under any norm plan.
 *
 *   cc own_model.c -o own_model $(pkg-config --cflags --libs norma) && ./own_model "sep(bn,ln)"
 *
 * It learns which of eight symbols is the most frequent in a row, and prints loss and accuracy as it goes. */
#include <stdio.h>
#include <stdlib.h>

#include <norma/norma.h>

enum { BATCH = 32, TOKENS = 24, SYMBOLS = 8, DIM = 32, HEADS = 4, DEPTH = 2, STEPS = 400, ENTRIES = 256 };

/* ---- the model: each norm is a named site, and the plan says what stands there ---- */

static nr_t *block(struct nr_net *n, nr_t *x)
{
	nr_t *a = nr_attention(n, nr_linear(n, "attn.qkv", nr_norm(n, "attn.in", x), (int64_t)3 * DIM), HEADS);
	x = nr_residual(n, "attn", x, nr_linear(n, "attn.proj", a, DIM), 0);
	nr_t *h = nr_linear_gelu(n, "mlp.fc1", nr_norm(n, "mlp.in", x), (int64_t)4 * DIM);
	return nr_residual(n, "mlp", x, nr_linear(n, "mlp.fc2", h, DIM), 0);
}

static nr_t *model(struct nr_net *n, nr_t *ids)
{
	nr_t *x = nr_embedding(n, "symbol", ids, SYMBOLS, DIM, -1);
	if (x) nr_with_tokens(n, x, (struct nr_tokens){ .h = 1, .w = TOKENS, .heads = HEADS });
	x = nr_prepend(n, nr_param(n, "cls", NR_NORMAL_02, 3, (int64_t)1, (int64_t)1, (int64_t)DIM), x);
	for (int i = 0; i < DEPTH; i++) {
		nr_push_nth(n, "blocks", i, DEPTH);
		x = nr_pop(n, block(n, x));
	}
	x = nr_reshape(n, nr_span(n, nr_norm(n, "final", x), 0, 1), 2, (int64_t)BATCH, (int64_t)DIM);
	return nr_linear(n, "head", x, SYMBOLS);
}

/* ---- data: rows of symbols, one of them more frequent than chance would have it ---- */

static void draw(uint32_t *state, int32_t *ids, int32_t *label)
{
	for (int b = 0; b < BATCH; b++) {
		int count[SYMBOLS] = { 0 };
		const uint32_t often = (*state = *state * 1664525 + 1013904223) >> 29;
		for (int t = 0; t < TOKENS; t++) {
			*state = *state * 1664525 + 1013904223;
			const uint32_t symbol = *state >> 30 ? *state >> 27 & (SYMBOLS - 1) : often;
			count[ids[b * TOKENS + t] = (int32_t)symbol]++;
		}
		label[b] = 0;
		for (int k = 1; k < SYMBOLS; k++)
			if (count[k] > count[label[b]]) label[b] = k;
	}
}

/* ---- training ---- */

static int64_t list_parameters(struct nr_store *s, struct nr_segment *seg, struct nr_error *err)
{
	int64_t n = 0;
	for (int64_t i = 0; i < nr_store_count(s) && n < ENTRIES; i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		if (e->buffer) continue;
		seg[n++] = (struct nr_segment){ .value = nr_value(e), .grad = nr_grad(e), .m = nr_moment(e, 0, err), .v = nr_moment(e, 1, err),
			.count = e->count, .nd = e->nd, .d = e->d, .lr_scale = 1, .decay = e->init & NR_NO_DECAY ? 0 : 1 };
		if (!seg[n - 1].m || !seg[n - 1].v) return -1;
	}
	return n;
}

static int train(struct nr_net *n, nr_t *ids, nr_t *label, nr_t *logits, nr_t *loss, struct nr_error *err)
{
	struct nr_segment seg[ENTRIES];
	struct nr_plan *p = NULL;
	struct nr_optim adamw;
	uint32_t state = 1;
	if (nr_plan_make(&p, n, loss, NR_PLAN_TRAIN, err)) return err->code;
	const int64_t parameters = list_parameters(nr_net_store(n), seg, err);
	nr_option_defaults(nr_optim_options(), &adamw);
	adamw.kind = nr_optim_kind("adamw");
	void *scratch = parameters > 0 ? malloc(nr_optim_scratch(&adamw, seg, parameters)) : NULL;
	int code = scratch ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot train", NULL, "out of memory");
	double right = 0;
	for (int64_t step = 0; !code && step < STEPS; step++) {
		const struct nr_exec exec = { .train = 1, .step = step, .seed = 1 };
		const int32_t *want = nr_plan_data(p, label);
		draw(&state, nr_plan_data(p, ids), nr_plan_data(p, label));
		nr_plan_run(p, &exec, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
		code = nr_optim_step(&adamw, &(struct nr_rates){ .lr = 2e-3, .weight_decay = 0.01 }, step + 1, seg, parameters, scratch, NULL);
		const real *y = nr_plan_data(p, logits);
		for (int b = 0; b < BATCH; b++, y += SYMBOLS) {
			int best = 0;
			for (int k = 1; k < SYMBOLS; k++)
				if (y[k] > y[best]) best = k;
			right += best == want[b];
		}
		if ((step + 1) % 100) continue;
		printf("step %3d  loss %.4f  accuracy of the last 100 %.3f\n", (int)step + 1, (double)*(real *)nr_plan_data(p, loss),
			right / (100 * BATCH));
		right = 0;
	}
	free(scratch);
	nr_plan_free(p);
	return code;
}

int main(int argc, char **argv)
{
	static const struct nr_norm_defaults defaults = { .norm = "layer", .placement = "pre" };
	struct nr_error err = { 0 };
	struct nr_store *store = NULL;
	struct nr_net *n = NULL;
	char text[1024];
	nr_bound_spin(argv);            /* the steps are small: threads that spin for long would slow them on a busy machine */
	int code = nr_store_make(&store, 1, &err);
	if (!code && !(n = nr_net_make(store))) code = nr_fail(&err, NR_EMEMORY, "cannot record the model", NULL, "out of memory");
	if (!code) code = nr_norms_use(n, argc > 1 ? argv[1] : NULL, &defaults, &err);
	if (!code) {
		nr_t *ids = nr_input(n, "ids", NR_I32, 2, (int64_t)BATCH, (int64_t)TOKENS);
		nr_t *label = nr_input(n, "label", NR_I32, 1, (int64_t)BATCH);
		nr_t *logits = nr_tap(n, "logits", model(n, ids));
		nr_t *loss = nr_cross_entropy(n, logits, label, 0, -1);
		code = nr_norms_done(n, &err);
		if (!code) code = train(n, ids, label, logits, loss, &err);
	}
	if (code) fprintf(stderr, "%s\n", nr_error_text(&err, text, sizeof text));
	nr_net_free(n);
	nr_store_free(store);
	return code ? 1 : 0;
}
