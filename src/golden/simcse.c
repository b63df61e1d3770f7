/* norma-golden-model-1: task simcse of bert and roberta, with every pooling, hard negatives, masked words and SepNorm; the loss
 * alone (family simcse_loss_only); uniformity and alignment (family uniformity). */
#include <string.h>

#include "analysis/uniformity.h"
#include "golden/text.h"
#include "norma/nn.h"

static int pooling_of(struct golden_case *c)
{
	const char *name = golden_text(c, "pooler");
	for (int i = 0; nr_text_poolings[i]; i++)
		if (!strcmp(nr_text_poolings[i], name)) return i;
	golden_stop(c, NULL, "no code for the pooler '%s'", name);
}

/* The second, masked copy: the same lengths and segments. */
static nr_t *words_loss(struct golden_case *c, struct golden_text *t, nr_t **ids, nr_t **labels)
{
	struct nr_net *n = t->m.net;
	struct nr_inputs in = t->in;
	struct nr_text masked;
	*ids = in.ids = nr_input(n, "mlm_ids", NR_I32, NR_SHAPE(t->rows, t->length));
	*labels = nr_input(n, "mlm_labels", NR_I32, NR_SHAPE(t->rows, t->length));
	nr_net_keep_hidden(n, 0);
	nr_text_encode(n, &t->m.model, &in, &masked);
	const bool own = golden_has(c, "param.lm_head.decoder.weight");
	return nr_tap(n, "words", nr_cross_entropy(n, nr_mlm_logits(n, &t->m.model, masked.tokens, !own), *labels, 0, NR_TEXT_IGNORED));
}

int golden_text_simcse(struct golden_case *c)
{
	struct golden_text t = { .rows = 0 };
	const bool separate = strstr(nr_st_metadata(c->file, "task"), "sepnorm") != NULL, words = golden_has(c, "in.mlm_input_ids");
	const bool bert = !strcmp(nr_st_metadata(c->file, "family"), "bert");
	const char *norms = separate ? golden_sep_text(c) : "";
	golden_text_open(c, &t, bert ? "simcse" : "huggingface", norms);
	struct nr_net *n = t.m.net;
	const int64_t S = (int64_t)golden_number(c, "num_sent"), C = nr_model_int(&t.m.model, "dim");
	const int kind = pooling_of(c);
	nr_t *pooled = nr_tap(n, "pooled", nr_text_pool(n, &t.text, (enum nr_text_pooling)kind));
	nr_t *sim, *ids = NULL, *labels = NULL, *mlm = NULL;
	nr_t *z = kind == NR_TEXT_CLS ? nr_tap(n, "z", nr_simcse_layer(n, pooled)) : pooled;
	nr_t *contrast = nr_simcse_loss(n, nr_reshape(n, z, NR_SHAPE(t.rows / S, S, C)), golden_number(c, "temperature"),
		golden_number_or(c, "hard_negative_weight", 0), &sim), *loss = contrast;
	nr_tap(n, "sim", sim);
	if (words) {
		mlm = words_loss(c, &t, &ids, &labels);
		loss = nr_add(n, nr_tap(n, "contrast", contrast), nr_scale(n, mlm, golden_number(c, "mlm_weight")));
	}
	golden_text_load(c, &t, loss);
	if (words) golden_text_put(c, &t, ids, "in.mlm_input_ids"), golden_text_put(c, &t, labels, "in.mlm_labels");
	golden_text_run(c, &t);
	golden_model_out(c, &t.m, pooled, "out", "pooled");
	golden_model_out(c, &t.m, z, "out", "z");
	golden_model_out(c, &t.m, sim, "out", "sim");
	if (words) golden_model_out(c, &t.m, contrast, "loss", "contrastive_loss");
	golden_model_out(c, &t.m, mlm, "loss", "mlm_loss");
	golden_text_finish(c, &t);
	return GOLDEN_RAN;
}

/* ---- losses of given embeddings -------------------------------------------------------------------------------------------- */

struct alone { struct nr_store *store; struct nr_net *net; struct nr_plan *plan; nr_t *x; };

static void demand(struct golden_case *c, int code, const struct nr_error *err)
{
	char line[1024];
	if (code) golden_stop(c, NULL, "%s", nr_error_text(err, line, sizeof line));
}

/* param.NAME as the one parameter of a net. */
static struct golden_tensor open_alone(struct golden_case *c, struct alone *a, const char *name, int nd)
{
	struct nr_error err = { 0 };
	const struct golden_tensor x = golden_tensor(c, nd, "param.%s", name);
	demand(c, nr_store_make(&a->store, 0, &err), &err);
	a->net = nr_net_make(a->store);
	if (!a->net) golden_stop(c, NULL, "out of memory");
	a->x = nr_param(a->net, name, NR_ZEROS, nd == 3 ? NR_SHAPE(x.d[0], x.d[1], x.d[2]) : NR_SHAPE(x.d[0], x.d[1]));
	return x;
}

static void run_alone(struct golden_case *c, struct alone *a, const struct golden_tensor *x, nr_t *loss, const char *name)
{
	struct nr_error err = { 0 };
	demand(c, nr_plan_make(&a->plan, a->net, loss, NR_PLAN_TRAIN, &err), &err);
	memcpy(nr_value(a->x->entry), x->x, (size_t)x->n * sizeof(real));
	nr_plan_run(a->plan, &(struct nr_exec){ .train = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	golden_check(c, "loss", nr_plan_data(a->plan, loss), 1, "out.loss");
	golden_check(c, "grad", nr_grad(a->x->entry), x->n, "grad.%s", name);
}

static void close_alone(struct alone *a)
{
	nr_plan_free(a->plan);
	nr_net_free(a->net);
	nr_store_free(a->store);
}

int golden_model_simcse_loss_only(struct golden_case *c)
{
	struct alone a = { 0 };
	const struct golden_tensor z = open_alone(c, &a, "z", 3);
	const double temperature = golden_number(c, "temperature"), hard = golden_number_or(c, "hard_negative_weight", 0);
	nr_t *sim, *loss = nr_simcse_loss(a.net, a.x, temperature, hard, &sim);
	nr_tap(a.net, "sim", sim);
	run_alone(c, &a, &z, loss, "z");
	golden_check(c, "out", nr_plan_data(a.plan, sim), nr_len(sim), "out.sim");
	close_alone(&a);
	return GOLDEN_RAN;
}

int golden_model_uniformity(struct golden_case *c)
{
	struct alone a = { 0 };
	const struct golden_tensor h = open_alone(c, &a, "h", 2), p = golden_tensor(c, 2, "in.h_pos");
	golden_expect(c, p.d[0] == h.d[0] && p.d[1] == h.d[1], "in.h_pos");
	nr_t *loss = nr_reshape(a.net, nr_pair_loss(a.net, a.x, (struct nr_pair_options){ .kind = NR_PAIRS_GAUSS }), NR_SHAPE(1));
	run_alone(c, &a, &h, loss, "h");
	struct nr_pairs pairs;
	struct nr_error err = { 0 };
	demand(c, nr_uniformity(h.d[0], h.d[1], h.x, 2, &pairs, &err), &err);
	golden_check_value(c, "out", pairs.uniformity, "out.uniformity");
	golden_check_value(c, "out", nr_alignment(h.d[0], h.d[1], h.x, p.x, 2), "out.alignment");
	close_alone(&a);
	return GOLDEN_RAN;
}
