/* DINO through models/dino.c, with the settings of bench/peers/dino_step.py: a whole step, with the teacher's pass, targets and centre
 * before the student's, clipping by parameter, AdamW, and the teacher's moving average after it. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "math/random.h"
#include "models/dino.h"
#include "norma/nn.h"

enum { DINO_SEED = 5, DINO_STREAM = 1 };

struct dino_own {
	struct nr_store *store;                 /* of the teacher */
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_dino_graph g;
	struct nr_dino o;
	real *image, *local, *target, *centre, *next, *room;
};

static int dino_model(struct nr_net *n, const struct bench_size *s, struct nr_model_spec *m, struct nr_dino *o)
{
	struct nr_error err = { 0 };
	char model[256], rest[256];
	snprintf(model, sizeof model, "vit:image=%lld,channels=%lld,patch=%lld,dim=%lld,depth=%lld,heads=%lld", (long long)s->image,
		(long long)s->channels, (long long)s->patch, (long long)s->dim, (long long)s->depth, (long long)s->heads);
	snprintf(rest, sizeof rest, "local_crops=%lld,local_size=%lld,prototypes=%lld,head_hidden=%lld,head_bottleneck=%lld",
		(long long)s->crops, (long long)s->image / 2, (long long)s->classes, (long long)s->decoder_dim,
		(long long)s->decoder_dim / 4);
	nr_option_defaults(nr_dino_options, o);
	if (nr_option_parse(nr_dino_options, o, rest, nr_net_arena(n), &err) || nr_model_parse(m, model, nr_net_arena(n), &err))
		nr_net_fail(n, err.code, model, "%s", err.detail);
	return err.code;
}

static nr_t *dino_features(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec m;
	struct nr_dino o;
	if (dino_model(n, s, &m, &o)) return NULL;
	in->image = nr_input(n, "image", NR_REAL, NR_SHAPE(s->batch, s->channels, s->image, s->image));
	return m.of->pool(n, nr_model_tokens(n, &m, &(struct nr_inputs){ .image = in->image }), m.conf);
}

static nr_t *dino_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_model_spec m;
	struct nr_dino o;
	struct nr_dino_graph g;
	if (dino_model(n, s, &m, &o)) return NULL;
	nr_t *loss = nr_dino_student(n, &m, &o, s->batch, &g);
	*in = (struct bench_inputs){ .image = g.global, .local = g.local, .target = g.target };
	return loss;
}

/* ---- the teacher ------------------------------------------------------------------------------------------------------------ */

static int dino_make_teacher(struct bench *b, struct dino_own *w, struct nr_error *err)
{
	const struct bench_size *s = b->target.size;
	struct nr_model_spec m;
	if (nr_store_make(&w->store, DINO_SEED, err)) return err->code;
	if (!(w->net = nr_net_make(w->store)) || dino_model(w->net, s, &m, &w->o))
		return nr_fail(err, NR_EMEMORY, "cannot open the case", b->target.of->name, "out of memory");
	if (nr_norms_use(w->net, b->target.norm, &m.norms, err)) return err->code;
	nr_t *out = nr_tap(w->net, "teacher", nr_dino_teacher(w->net, &m, &w->o, s->batch, &w->g));
	if (nr_norms_done(w->net, err) || nr_plan_make_beside(&w->plan, w->net, out, 0, b->plan, err)) return err->code;
	nr_dino_follow(w->store, b->store, 0);
	return NR_OK;
}

static int dino_open(struct bench *b, struct nr_error *err)
{
	struct dino_own *w = b->own = calloc(1, sizeof *w);
	const int64_t K = b->target.size->classes, rows = NR_DINO_GLOBAL * b->target.size->batch;
	if (w) {
		w->image = malloc((size_t)nr_len(b->in.image) * sizeof(real));
		w->local = malloc((size_t)nr_len(b->in.local) * sizeof(real));
		w->target = malloc((size_t)(rows * K) * sizeof(real));
		w->centre = calloc((size_t)K, sizeof(real));
		w->next = calloc((size_t)K, sizeof(real));
		w->room = malloc(nr_dino_room(rows, K) * sizeof(real));
	}
	if (!w || !w->image || !w->local || !w->target || !w->centre || !w->next || !w->room)
		return nr_fail(err, NR_EMEMORY, "cannot open the case", b->target.of->name, "out of memory");
	nr_fill_normal(nr_len(b->in.image), w->image, 0, 1, nr_rng_make(DINO_SEED, DINO_STREAM, 0), 0);
	nr_fill_normal(nr_len(b->in.local), w->local, 0, 1, nr_rng_make(DINO_SEED, DINO_STREAM, 1), 0);
	b->optim.clip = NR_CLIP_TENSOR;
	b->optim.clip_norm = 3;
	return dino_make_teacher(b, w, err);
}

static void dino_copy(const struct nr_plan *p, const nr_t *to, const real *from)
{
	memcpy(nr_plan_data(p, to), from, (size_t)nr_len(to) * sizeof *from);
}

/* The teacher lies in the student's memory: it goes first, then the student gets its inputs. */
static void dino_before(struct bench *b)
{
	struct dino_own *w = b->own;
	const int64_t rows = w->g.out->d[0], K = w->g.out->d[1];
	real *out = nr_plan_data(w->plan, w->g.out);
	dino_copy(w->plan, w->g.global, w->image);
	nr_plan_run(w->plan, &(struct nr_exec){ .train = 1, .no_dropout = 1 }, NR_RUN_FORWARD | NR_RUN_COMMIT);
	nr_dino_centre(rows, K, out, w->o.center_momentum, w->centre, w->next, w->room);
	nr_dino_targets(rows, K, out, w->centre, w->o.teacher_temp, w->target, w->room);
	memcpy(w->centre, w->next, (size_t)K * sizeof *w->next);
	dino_copy(b->plan, b->in.image, w->image);
	dino_copy(b->plan, b->in.local, w->local);
	dino_copy(b->plan, b->in.target, w->target);
}

static void dino_after(struct bench *b) { nr_dino_follow(((struct dino_own *)b->own)->store, b->store, .996); }

static void dino_close(struct bench *b)
{
	struct dino_own *w = b->own;
	if (!w) return;
	nr_plan_free(w->plan);
	nr_net_free(w->net);
	nr_store_free(w->store);
	free(w->image);
	free(w->local);
	free(w->target);
	free(w->centre);
	free(w->next);
	free(w->room);
	free(w);
}

const struct bench_model bench_dino = { .train = dino_loss,
	.infer = dino_features,
	.open = dino_open,
	.before = dino_before,
	.after = dino_after,
	.close = dino_close,
	.norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 } };
