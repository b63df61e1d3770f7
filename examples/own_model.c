/* A transformer of one's own with libnorma, trained on one's own arrays under any norm plan.
 *
 *   cc own_model.c -o own_model $(pkg-config --cflags --libs norma) && ./own_model "sep(bn,ln)"
 *
 * It learns which of eight symbols is more frequent in a row than chance would have it. */
#include <norma/norma.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 8192, TOKENS = 24, SYMBOLS = 8, BATCH = 32, DIM = 32, HEADS = 4, DEPTH = 2, STEPS = 400 };
static int32_t ids[ROWS][TOKENS], label[ROWS];

static nr_t *block(struct nr_net *n, nr_t *x) /* each norm is a named site, and the plan says what stands there */
{
	nr_t *a = nr_attention(n, nr_linear(n, "attn.qkv", nr_norm(n, "attn.in", x), 3 * DIM), HEADS);
	x = nr_residual(n, "attn", x, nr_linear(n, "attn.proj", a, DIM), 0);
	nr_t *h = nr_linear_gelu(n, "mlp.fc1", nr_norm(n, "mlp.in", x), 4 * DIM);
	return nr_residual(n, "mlp", x, nr_linear(n, "mlp.fc2", h, DIM), 0);
}

static nr_t *model(struct nr_net *n, nr_t *in)
{
	nr_t *x = nr_embedding(n, "symbol", in, SYMBOLS, DIM, -1);
	x = nr_with_tokens(n, x, (struct nr_tokens){ .h = 1, .w = TOKENS, .heads = HEADS });
	x = nr_prepend(n, nr_param(n, "cls", NR_NORMAL_02, NR_SHAPE(1, 1, DIM)), x);
	for (int i = 0; i < DEPTH; i++) {
		nr_push_nth(n, "blocks", i, DEPTH);
		x = nr_pop(n, block(n, x));
	}
	x = nr_reshape(n, nr_span(n, nr_norm(n, "final", x), 0, 1), NR_SHAPE(BATCH, DIM));
	return nr_linear(n, "head", x, SYMBOLS);
}

static int train(struct nr_net *n, const char *plan, struct nr_error *err)
{
	struct nr_plan *p = NULL;
	struct nr_optim adamw;
	struct nr_params params = { 0 };
	int code = nr_norms_use(n, plan, &(struct nr_norm_defaults){ .norm = "layer", .placement = "pre" }, err);
	nr_t *in = nr_input(n, "ids", NR_I32, NR_SHAPE(BATCH, TOKENS)), *want = nr_input(n, "label", NR_I32, NR_SHAPE(BATCH));
	nr_t *loss = code ? NULL : nr_cross_entropy(n, model(n, in), want, 0, -1);
	if (!code) code = nr_norms_done(n, err);
	if (!code) code = nr_plan_make(&p, n, loss, NR_PLAN_TRAIN, err);
	if (!code) code = nr_optim_init(&adamw, "adamw", err);
	if (!code) code = nr_params_init(&params, nr_net_store(n), &adamw, err);
	for (int step = 1; !code && step <= STEPS; step++) {
		const int first = (step - 1) * BATCH % ROWS;
		memcpy(nr_plan_data(p, in), ids[first], BATCH * sizeof ids[0]);
		memcpy(nr_plan_data(p, want), label + first, BATCH * sizeof label[0]);
		nr_plan_run(p, &(struct nr_exec){ .train = 1, .step = step }, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
		if (step % 100 == 0) printf("step %d  loss %.4f\n", step, (double)*(nr_real *)nr_plan_data(p, loss));
		code = nr_params_step(&params, &adamw, NULL, step, err);
	}
	nr_params_release(&params);
	nr_plan_free(p);
	return code;
}

int main(int argc, char **argv)
{
	struct nr_error err = { 0 };
	struct nr_store *store = NULL;
	char text[1024];
	uint32_t draw = 1;
	for (int i = 0; i < ROWS * TOKENS; i++) {
		draw = draw * 1664525 + 1013904223;
		label[i / TOKENS] = i / TOKENS % SYMBOLS;
		ids[i / TOKENS][i % TOKENS] = (int32_t)(draw >> 30 ? draw >> 27 & (SYMBOLS - 1) : (uint32_t)label[i / TOKENS]);
	}
	struct nr_net *n = nr_store_make(&store, 1, &err) ? NULL : nr_net_make(store);
	if (n) train(n, argc > 1 ? argv[1] : NULL, &err);
	if (err.code) fprintf(stderr, "%s\n", nr_error_text(&err, text, sizeof text));
	nr_net_free(n);
	nr_store_free(store);
	return err.code || !n ? 1 : 0;
}
