/* mae: pre-training by masked autoencoding, MAE (arXiv:2111.06377) and U-MAE (arXiv:2210.08344); the graph is models/mae.c.
 *
 * An evaluation measures two things: the reconstruction of pictures that were not trained on, each with a mask of its own that
 * never changes; and how far the embeddings have collapsed: uniformity (SepNorm, Eq. 4) and effective rank of [CLS] and of patch
 * tokens, of whole pictures, with running statistics, which is what a probe will see. With `probe`, one is fitted on the way. */
#include <math.h>
#include <stdlib.h>

#include "base/real.h"
#include "analysis/uniformity.h"
#include "graph/comm.h"
#include "graph/streams.h"
#include "models/mae.h"
#include "norma/nn.h"
#include "norms/choice.h"
#include "tasks/mae_probe.h"
#include "tasks/reconstruction.h"
#include "train/task.h"

enum { METER = 2048, PICTURES = 8 };            /* embeddings that the collapse meter looks at; pictures that are drawn */
enum { LOSS, UNIFORMITY_CLS, UNIFORMITY_TOKENS, RANK_CLS, RANK_TOKENS, PROBE_CLS, PROBE_MEAN, OF_EVAL };

struct mae {
	struct nr_mae_graph g, held;            /* of a step; of held-out pictures */
	struct nr_mae_mask mask, held_mask;
	struct nr_net *held_net, *whole_net;
	struct nr_plan *held_plan, *whole_plan; /* whole: the encoder alone, on all patches */
	nr_t *pred;                             /* of held, as plain rows */
	nr_t *image, *tokens;                   /* of whole */
	int64_t batch;                          /* of an evaluation */
	real *cls, *token;                      /* (METER,C) */
	struct nr_reconstruction drawn;
};

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	if (r->source->classes > 0 && nr_task_set(r, "classes", r->source->classes, err)) return err->code;
	if (nr_task_set(r, "channels", r->source->channels, err)) return err->code;
	if (((const struct nr_mae *)r->settings)->probe && (r->source->classes < 2 || !r->source->count[NR_TRAIN]))
		return nr_fail(err, NR_EVALUE, "cannot probe", r->c->data, "the data have no classes");
	r->w->norms = nr_norms_without(r->norms, "decoder", r->arena);  /* a checkpoint is to be read as an encoder */
	return nr_mae_encoder(&r->w->model, r->settings, r->arena, err);
}

static nr_t *record(struct nr_task_run *r)
{
	struct mae *s = r->own;
	return nr_mae_record(r->net, &r->w->model, r->settings, r->c->batch, &s->g);
}

/* A graph of the same parameters. */
static struct nr_net *begin(struct nr_task_run *r, const char *norms, struct nr_error *err)
{
	struct nr_net *n = nr_net_make(r->w->store);
	if (!n) nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	else if (nr_norms_use(n, norms, &r->w->model.norms, err)) {
		nr_net_free(n);
		return NULL;
	}
	return n;
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct mae *s = r->own;
	const struct nr_model_spec *m = &r->w->model;
	const int64_t C = nr_model_int(m, "dim"), size = nr_model_int(m, "image");
	s->batch = batch;
	s->mask = nr_mae_mask(&s->g, r->plan);
	s->cls = malloc((size_t)(METER * C) * sizeof *s->cls);
	s->token = malloc((size_t)(METER * C) * sizeof *s->token);
	if (!s->cls || !s->token) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	if (!(s->held_net = begin(r, r->norms, err)) || !(s->whole_net = begin(r, r->w->norms, err))) return err->code;

	nr_t *loss = nr_mae_record(s->held_net, m, r->settings, batch, &s->held);
	s->pred = nr_tap(s->held_net, "pred", s->held.pred);
	if (nr_plan_make(&s->held_plan, s->held_net, loss, 0, err)) return err->code;
	s->held_mask = nr_mae_mask(&s->held, s->held_plan);

	s->image = nr_input(s->whole_net, "image", NR_REAL, NR_SHAPE(batch, nr_model_int(m, "channels"), size, size));
	s->tokens = nr_model_tokens(s->whole_net, m, &(struct nr_inputs){ .image = s->image });
	if (nr_plan_make(&s->whole_plan, s->whole_net, s->tokens, 0, err)) return err->code;
	return nr_reconstruction_open(&s->drawn, r, batch < PICTURES ? batch : PICTURES, err);
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	struct mae *s = r->own;
	s->mask = nr_mae_mask(&s->g, r->plan);
	nr_from_floats(nr_plan_data(r->plan, s->g.image), b->image, nr_len(s->g.image));
	nr_mae_mask_draw(&s->mask, nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK, (uint32_t)number), 0);
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct mae *s = r->own;
	(void)b;
	sum[0] += (double)r->c->batch * (double)*(const real *)nr_plan_data(r->plan, s->g.mae);
	sum[1] += s->g.unif ? (double)r->c->batch * (double)*(const real *)nr_plan_data(r->plan, s->g.unif) : NAN;
}

/* ---- evaluation ----------------------------------------------------------------------------------------------------------- */

/* [CLS] and one patch token of each picture of the batch, another place for each. */
static void keep(struct mae *s, int64_t have)
{
	const struct nr_exec ex = { .train = 0 };
	const int64_t T = s->tokens->d[1], C = s->tokens->d[2], S = s->tokens->tok->special;
	const real *x = nr_plan_data(s->whole_plan, s->tokens);
	nr_plan_run(s->whole_plan, &ex, NR_RUN_FORWARD);
	for (int64_t i = 0; i < s->batch && have < METER; i++, have++) {
		if (S) memcpy(s->cls + have * C, x + i * T * C, (size_t)C * sizeof *x);
		memcpy(s->token + have * C, x + (i * T + S + have % (T - S)) * C, (size_t)C * sizeof *x);
	}
}

static int meter(int64_t n, int64_t C, const real *x, double *uniformity, double *rank, struct nr_error *err)
{
	struct nr_spread spread;
	double *s = malloc((size_t)(n < C ? n : C) * sizeof *s);
	const int code = s ? nr_spread(n, C, x, s, &spread, err)
			   : nr_fail(err, NR_EMEMORY, "cannot measure", "uniformity", "out of memory");
	if (!code) *uniformity = spread.uniformity, *rank = spread.rank;
	free(s);
	return code;
}

/* Every so many batches of this rank: the losses (batches), and what is kept of the pictures. */
static int look(struct mae *s, const struct nr_evaluation *e, int64_t batches, double *loss, struct nr_error *err)
{
	const struct nr_exec ex = { .train = 0 };
	const int64_t ranks = nr_comm_size(e->comm), rank = nr_comm_rank(e->comm);
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = s->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .drop_last = true,
		.share = { .of = ranks, .from = rank, .take = 1 }, .stop = (batches - rank + ranks - 1) / ranks };
	struct nr_loader *loader;
	if (nr_loader_open(&loader, &config, err)) return err->code;
	for (int64_t q = rank; q < batches && !err->code; q += ranks) {
		struct nr_batch *b;
		if (nr_loader_next(loader, &b, err)) break;
		nr_from_floats(nr_plan_data(s->held_plan, s->held.image), b->image, nr_len(s->held.image));
		nr_mae_mask_draw(&s->held_mask, nr_rng_make(0, NR_STREAM_MASK + 1, 0), q * s->batch);
		nr_plan_run(s->held_plan, &ex, NR_RUN_FORWARD);
		loss[q] = (double)*(const real *)nr_plan_data(s->held_plan, s->held.mae);
		if (!q) nr_reconstruction_keep(&s->drawn, b->image, nr_plan_data(s->held_plan, s->pred), s->held_mask.weight);
		if (q * s->batch < METER) {
			nr_from_floats(nr_plan_data(s->whole_plan, s->image), b->image, nr_len(s->image));
			keep(s, q * s->batch);
		}
		nr_loader_give_back(loader, b);
	}
	nr_loader_close(loader);
	return err->code;
}

/* What ranks saw, to all of them. kept: pictures. */
static int share(struct mae *s, struct nr_comm *comm, int64_t batches, double *loss, int64_t kept, struct nr_error *err)
{
	const size_t row = (size_t)s->tokens->d[2] * sizeof(real);
	if (nr_comm_spread(comm, batches, sizeof *loss, NULL, loss, err)) return err->code;
	if (s->tokens->tok->special && nr_comm_spread_batches(comm, kept, s->batch, row, s->cls, err)) return err->code;
	return nr_comm_spread_batches(comm, kept, s->batch, row, s->token, err);
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct mae *s = r->own;
	const int64_t all = e->count ? e->count : e->source->count[e->split], batches = all / s->batch, C = s->tokens->d[2];
	const int64_t have = batches * s->batch < METER ? batches * s->batch : METER;
	double *loss = calloc((size_t)batches + 1, sizeof *loss), sum = 0;
	int code = loss ? look(s, e, batches, loss, err) : nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	if (!code) code = share(s, e->comm, batches, loss, have, err);
	for (int64_t q = 0; q < batches && !code; q++) sum += loss[q];
	free(loss);
	if (code) return code;
	for (int i = 0; i < OF_EVAL; i++) value[i] = NAN;
	value[LOSS] = sum / (double)(batches ? batches : 1);
	*samples = batches * s->batch;
	const int64_t probed = ((const struct nr_mae *)r->settings)->probe;
	if (probed && nr_mae_probe(r, e, probed, s->batch, &value[PROBE_CLS], err)) return err->code;
	if (have < 2) return NR_OK;
	if (s->tokens->tok->special && meter(have, C, s->cls, &value[UNIFORMITY_CLS], &value[RANK_CLS], err)) return err->code;
	return meter(have, C, s->token, &value[UNIFORMITY_TOKENS], &value[RANK_TOKENS], err);
}

static int draw(struct nr_task_run *r, const char *path, struct nr_error *err)
{
	return nr_reconstruction_draw(&((struct mae *)r->own)->drawn, path, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct mae *s = r->own;
	const struct nr_mae *o = r->settings;
	nr_str_printf(text, "masking           %lld of %lld patches are seen; decoder of %lld blocks, %lld wide; %s\n",
		(long long)s->mask.visible, (long long)s->mask.patches, (long long)o->decoder_depth, (long long)o->decoder_dim,
		o->norm_pix ? "pixels standardised per patch" : "plain pixels");
	static const char *const on[] = { "none", "[CLS]", "visible tokens", "[CLS] and visible tokens" };
	if (o->uniform == NR_UNIFORM_NONE) return;
	if (o->power == NR_UNIFORM_INFONCE) {
		nr_str_printf(text, "uniformity        InfoNCE on [CLS], lambda %g, temperature %g, %lld samples\n", o->lambda,
			o->temperature, (long long)r->c->batch);
		return;
	}
	nr_str_printf(text, "uniformity        %s, lambda %g, pairs of %lld samples%s\n", on[o->uniform], o->lambda, (long long)r->c->batch,
		o->in_image && o->uniform != NR_UNIFORM_CLS ? ", tokens within their picture" : "");
}

/* So that weights can be read with their decoder. */
static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	m[0] = (struct nr_st_meta){ "norma.mae", nr_options_text(nr_mae_options, r->settings, r->arena) };
	m[1] = (struct nr_st_meta){ "norma.mae.norms", r->norms };
	return 2;
}

static void close(struct nr_task_run *r)
{
	struct mae *s = r->own;
	nr_plan_free(s->held_plan);
	nr_plan_free(s->whole_plan);
	nr_net_free(s->held_net);
	nr_net_free(s->whole_net);
	nr_reconstruction_close(&s->drawn);
	free(s->cls);
	free(s->token);
}

static const struct nr_task_default defaults[] = { { "beta2", "0.95" }, { "epochs", "20" }, { "warmup", "2" }, { "decoder_dim", "64" },
	{ "decoder_depth", "2" }, { "decoder_heads", "4" }, { NULL, NULL } };

#define EVEN "log mean Gaussian potential; lower is more even"
static const struct nr_task_metric of_step[] = {
	{ .name = "mae", .title = "Reconstruction part of the training loss", .unit = "mean between evaluations", .lower = true,
	  .wide = true },
	{ .name = "unif", .title = "Uniformity part of the training loss", .unit = "mean between evaluations", .lower = true },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "loss", .label = "held-out", .title = "Held-out loss", .lower = true, .wide = true },
	{ .name = "uniformity_cls", .label = "uniformity", .title = "Uniformity of [CLS]", .unit = EVEN, .lower = true,
	  .says = "The lowest spreads [CLS] most evenly." },
	{ .name = "uniformity_tokens", .title = "Uniformity of the tokens", .unit = EVEN, .lower = true,
	  .says = "The lowest spreads patches most evenly." },
	{ .name = "rank_cls", .label = "rank", .title = "Effective rank of [CLS]", .unit = "directions",
	  .says = "The highest uses most directions." },
	{ .name = "rank_tokens", .title = "Effective rank of the tokens", .unit = "directions",
	  .says = "The highest uses most directions." },
	{ .name = "probe_cls", .label = "probe", .title = "Linear probe of [CLS], top-1", .unit = "%" },
	{ .name = "probe_mean", .title = "Linear probe of the mean token, top-1", .unit = "%" },
	{ .name = NULL },
};

const struct nr_task nr_task_mae = {
	.name = "mae",
	.title = "masked autoencoding",
	.cite = "arXiv:2111.06377",
	.command = "pretrain",
	.summary = "pre-train a picture encoder without labels (MAE, U-MAE)",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Masks most patches of each picture, encodes the rest and learns to reconstruct the masked ones; --uniform adds\n"
		 "U-MAE's term, which spreads the embeddings. A norm plan covers encoder and decoder (sites decoder.*):\n"
		 "\"sep(bn,ln) decoder.*=ln\" is SepNorm in the encoder alone. Settings, metrics, checkpoints, Ctrl-C and resuming\n"
		 "work as in `norma train`.\n"
		 "\n"
		 "Each evaluation measures the reconstruction of held-out pictures, draws some of them (pictures/mae-STEP.png: "
		 "original,\n"
		 "masked, reconstructed) and measures how far the embeddings have collapsed: uniformity (0 is total collapse, about "
		 "-4\n"
		 "is evenly spread) and effective rank of [CLS] and of patch tokens. `norma probe` then measures how useful they are.",
	.options = nr_mae_options,
	.settings_size = sizeof(struct nr_mae),
	.defaults = defaults,
	.sample = "picture",
	.own_size = sizeof(struct mae),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = LOSS,
	.settle = settle,
	.record = record,
	.ready = ready,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.draw = draw,
	.picture = "reconstruction.png",
	.describe = describe,
	.meta = meta,
	.close = close,
};
