/* dino: pre-training by self-distillation, Caron et al. 2021, arXiv:2104.14294; graphs, targets and schedules are in models/dino.c.
 *
 * The student is the trainer's own network. The teacher has a store of its own, which checkpoints hold too, and its plan lies in the
 * memory of the student's: it runs first, its targets are put aside, then the student gets its inputs. It takes its batch statistics
 * from its own batches, and no dropout; its parameters follow the student's after each step, its buffers do not.
 *
 * An evaluation is one of the teacher: neighbours, spread, and at the end a linear head (dino_eval.c). */
#include "models/dino.h"

#include <math.h>
#include <stdlib.h>

#include "norma/nn.h"
#include "norma/optim.h"
#include "tasks/dino_eval.h"
#include "train/task.h"

enum { PICTURES = 6 };                          /* whose attention is drawn */

struct dino {
	struct nr_dino_graph g, teacher;
	struct nr_net *net;                     /* of the teacher */
	struct nr_plan *plan;
	struct nr_weights w;                    /* the model with the teacher's store */
	struct nr_augment view[NR_DINO_MOST_VIEWS];
	real *target, *next, *room;             /* (2 B,K); (K): the centre after this step; see nr_dino_room */
	struct nr_dino_meter meter;
	struct nr_dino_maps maps;
	int64_t batch, step;                    /* of an evaluation; of the training, how many are done */
};

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory"); }

/* ---- before the first step -------------------------------------------------------------------------------------------------- */

/* Can the model take pictures of that size beside its own? Records without memory. */
static int try_local(struct nr_task_run *r, int64_t size, struct nr_error *err)
{
	struct nr_store *store = NULL;
	struct nr_net *n = nr_store_make(&store, 0, err) ? NULL : nr_net_make(store);
	const struct nr_model_spec *m = &r->w->model;
	struct nr_dino_graph g;
	struct nr_dino o = *(const struct nr_dino *)r->settings;
	int code = n ? nr_norms_use(n, r->norms, &m->norms, err) : no_memory(err);
	o.local_size = size;
	if (!code && !nr_dino_student(n, m, &o, 1, &g)) {
		code = nr_fail(err, NR_EUSAGE, "cannot make local crops for", m->text, "%s, with crops of %lld pixels beside those of %lld",
			nr_net_error(n)->detail, (long long)size, (long long)nr_model_int(m, "image"));
		nr_hint(err, "use another --local-size, or --local-crops 0");
	}
	nr_net_free(n);
	nr_store_free(store);
	return code;
}

static int check_crops(struct nr_task_run *r, struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	const struct nr_model_spec *m = &r->w->model;
	const int64_t size = nr_dino_local_size(o, m), patch = nr_model_int(m, "patch");
	if (!o->local_crops) return NR_OK;
	if (patch > 0 && size < patch) {
		nr_fail(err, NR_EVALUE, "cannot make local crops for", m->text, "%lld pixels are less than a patch of %lld",
			(long long)size, (long long)patch);
		return nr_hint(err, "use --local-size %lld or more, or --local-crops 0", (long long)patch);
	}
	if (patch > 0 && size % patch) {
		nr_fail(err, NR_EVALUE, "cannot make local crops for", m->text, "%lld pixels are not whole patches of %lld",
			(long long)size, (long long)patch);
		return nr_hint(err, "use --local-size %lld", (long long)(size / patch * patch));
	}
	return try_local(r, size, err);
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	if (r->source->classes > 0 && nr_task_set(r, "classes", r->source->classes, err)) return err->code;
	if (nr_task_set(r, "channels", r->source->channels, err)) return err->code;
	if (nr_model_expect(&r->w->model, NR_PICTURES, err)) return err->code;
	if (r->c->ema > 0) {
		nr_fail(err, NR_EUSAGE, "--ema cannot be used with", "norma dino", "the teacher is a moving average already");
		return nr_hint(err, "--teacher-momentum says how slow it is");
	}
	if (o->head_bn && r->c->batch < 2) {
		nr_fail(err, NR_EVALUE, "cannot normalize the head over", "--batch 1",
			"its batch norms would see the crops of one picture");
		return nr_hint(err, "use --batch 2 or more, or --no-head-bn");
	}
	if (o->linear && r->source->classes < 2)
		return nr_fail(err, NR_EVALUE, "cannot fit a linear head", r->c->data, "the data have no classes");
	if (r->source->classes < 2) r->decides = NR_DINO_RANK;
	return check_crops(r, err);
}

static nr_t *record(struct nr_task_run *r)
{
	struct dino *s = r->own;
	nr_t *loss = nr_dino_student(r->net, &r->w->model, r->settings, r->c->batch, &s->g);
	nr_dino_decay(r->w->store);
	return loss;
}

static int make_teacher(struct nr_task_run *r, struct dino *s, struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	const struct nr_model_spec *m = &r->w->model;
	if (nr_store_make(&r->teacher, (uint64_t)r->c->seed, err)) return err->code;
	if (!(s->net = nr_net_make(r->teacher))) return no_memory(err);
	if (nr_norms_use(s->net, r->norms, &m->norms, err)) return err->code;
	nr_t *out = nr_tap(s->net, "teacher", nr_dino_teacher(s->net, m, o, r->c->batch, &s->teacher));
	nr_buffer(s->net, "dino.center", NR_ZEROS, NR_SHAPE(1, o->prototypes));         /* last: the others are numbered as the student's */
	if (nr_norms_done(s->net, err) || nr_plan_make_beside(&s->plan, s->net, out, 0, r->plan, err)) return err->code;
	nr_dino_follow(r->teacher, r->w->store, 0);
	s->w = *r->w;
	s->w.store = r->teacher;
	return NR_OK;
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct dino *s = r->own;
	const int64_t K = ((const struct nr_dino *)r->settings)->prototypes, rows = NR_DINO_GLOBAL * r->c->batch;
	s->batch = batch;
	s->target = malloc((size_t)(rows * K) * sizeof *s->target);
	s->next = malloc((size_t)K * sizeof *s->next);
	s->room = malloc(nr_dino_room(rows, K) * sizeof *s->room);
	return s->target && s->next && s->room ? make_teacher(r, s, err) : no_memory(err);
}

/* Two global views, which differ in blur and solarization, then the local ones. */
static void load(const struct nr_task_run *r, struct nr_loader_config *c)
{
	struct dino *s = r->own;
	const struct nr_dino *o = r->settings;
	const int views = (int)(NR_DINO_GLOBAL + o->local_crops);
	for (int v = 0; v < views; v++) {
		struct nr_augment *a = &s->view[v];
		const bool local = v >= NR_DINO_GLOBAL;
		*a = r->c->augment;
		a->crop = NR_CROP_RANDOM_RESIZED;
		a->size = local ? nr_dino_local_size(o, &r->w->model) : nr_model_int(&r->w->model, "image");
		a->scale_min = local ? o->local_scale_min : o->global_scale_min;
		a->scale_max = local ? o->local_scale_max : 1;
		if (!local) a->blur = v ? o->blur_second : o->blur_first;
		if (v != 1) a->solarize = 0;
	}
	c->view = s->view;
	c->views = views;
}

/* ---- a step ------------------------------------------------------------------------------------------------------------------- */

/* The teacher's targets for this batch, put aside; the centre is used as it was, then moved. */
static void teach(struct nr_task_run *r, struct dino *s, const float *image, int64_t step)
{
	const struct nr_dino *o = r->settings;
	const int64_t rows = s->teacher.out->d[0], K = o->prototypes;
	const struct nr_exec ex = { .train = 1, .no_dropout = 1 };
	real *out = nr_plan_data(s->plan, s->teacher.out), *centre = nr_value(nr_store_find(r->teacher, "dino.center"));
	nr_from_floats(nr_plan_data(s->plan, s->teacher.global), image, nr_len(s->teacher.global));
	nr_plan_run(s->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	nr_dino_centre(rows, K, out, o->center_momentum, centre, s->next, s->room);
	nr_dino_targets(rows, K, out, centre, nr_dino_temperature(o, step, r->per_epoch), s->target, s->room);
	s->meter = nr_dino_measure(rows, K, out, s->target, s->room);
	memcpy(centre, s->next, (size_t)K * sizeof *centre);
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	struct dino *s = r->own;
	s->step = number / r->parts;
	teach(r, s, b->image, s->step);
	nr_from_floats(nr_plan_data(r->plan, s->g.global), b->image, nr_len(s->g.global));
	if (s->g.local) nr_from_floats(nr_plan_data(r->plan, s->g.local), b->image + nr_len(s->g.global), nr_len(s->g.local));
	memcpy(nr_plan_data(r->plan, s->g.target), s->target, (size_t)nr_len(s->g.target) * sizeof *s->target);
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct dino *s = r->own;
	const double n = (double)r->c->batch, loss = (double)*(const real *)nr_plan_data(r->plan, s->g.loss);
	(void)b;
	sum[0] += n * s->meter.spread;
	sum[1] += n * s->meter.entropy;
	sum[2] += n * (loss - s->meter.entropy);
}

/* Both kinds of collapse: every picture gets the same prototype, or every prototype the same share of it. */
static void notice(const struct nr_task_run *r, const double *train, struct nr_str *text)
{
	const double most = log((double)((const struct nr_dino *)r->settings)->prototypes), spread = train[0], entropy = train[1];
	if (most <= 0) return;
	if (spread < .05 * most)
		nr_str_printf(text, "collapse: the teacher says the same of every picture (entropy of its mean output %.3g of %.3g nats): "
			"try a lower --center-momentum or a higher --teacher-temp", spread, most);
	else if (entropy > .99 * most)
		nr_str_printf(text, "collapse: the teacher's outputs are uniform (entropy %.3g of %.3g nats): try a lower --teacher-temp",
			entropy, most);
}

static int64_t still(const struct nr_task_run *r, const struct nr_entry *e)
{
	const struct nr_dino *o = r->settings;
	return nr_dino_last_layer(e->name) ? (int64_t)llround(o->freeze_last_layer * (double)r->per_epoch) : 0;
}

static void rates(const struct nr_task_run *r, int64_t step, struct nr_rates *rates)
{
	rates->weight_decay = nr_dino_weight_decay(r->settings, rates->weight_decay, step, r->steps);
}

static void moved(struct nr_task_run *r, int64_t step)
{
	nr_dino_follow(r->teacher, r->w->store, nr_dino_momentum(r->settings, step - 1, r->steps));
}

/* ---- evaluation --------------------------------------------------------------------------------------------------------------- */

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct dino *s = r->own;
	const bool last = s->step + 1 >= r->steps;
	if (!s->maps.size && nr_dino_maps_open(&s->maps, r, e, PICTURES, err)) return err->code;
	return nr_dino_evaluate(r, &s->w, e, s->batch, last, value, samples, err);
}

static int draw(struct nr_task_run *r, const char *path, struct nr_error *err)
{
	const struct dino *s = r->own;
	return nr_dino_maps_draw(&s->maps, &s->w, path, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct nr_dino *o = r->settings;
	nr_str_printf(text, "crops             2 of %lld pixels", (long long)nr_model_int(&r->w->model, "image"));
	if (o->local_crops)
		nr_str_printf(text, ", %lld of %lld, each size in a pass of its own", (long long)o->local_crops,
			(long long)nr_dino_local_size(o, &r->w->model));
	nr_str_printf(text, "\nhead              %lld layers of %lld, %lld, %lld prototypes (log is %.2f)%s\n", (long long)o->head_layers,
		(long long)o->head_hidden, (long long)o->head_bottleneck, (long long)o->prototypes, log((double)o->prototypes),
		o->norm_last_layer ? "" : ", of learned lengths");
	nr_str_printf(text, "teacher           temperature %g, momentum %g to 1, centre %g\n", o->teacher_temp, o->teacher_momentum,
		o->center_momentum);
}

static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	m[0] = (struct nr_st_meta){ "norma.dino", nr_options_text(nr_dino_options, r->settings, r->arena) };
	return 1;
}

static void close(struct nr_task_run *r)
{
	struct dino *s = r->own;
	nr_plan_free(s->plan);
	nr_net_free(s->net);
	nr_store_free(r->teacher);
	nr_dino_maps_close(&s->maps);
	free(s->target);
	free(s->next);
	free(s->room);
}

static const struct nr_task_default defaults[] = { { "lr", "5e-4" }, { "weight_decay", "0.04" }, { "min_lr", "1e-6" }, { "epochs", "20" },
	{ "warmup", "2" }, { "clip", "tensor" }, { "clip_norm", "3" }, { "flip", "0.5" }, { "brightness", "0.4" }, { "contrast", "0.4" },
	{ "saturation", "0.2" }, { "hue", "0.1" }, { "jitter", "0.8" }, { "grey", "0.2" }, { "blur", "0.5" }, { "solarize", "0.2" },
	{ NULL, NULL } };

#define BETWEEN "nats, mean between evaluations"
static const struct nr_task_metric of_step[] = {
	{ .name = "spread", .label = "spread", .title = "Entropy of the teacher's mean output", .unit = BETWEEN,
	  .says = "Collapse to one output is 0; the largest is the logarithm of the number of prototypes." },
	{ .name = "entropy", .title = "Entropy of the teacher's outputs", .unit = BETWEEN, .lower = true,
	  .says = "Collapse to the uniform output is the logarithm of the number of prototypes." },
	{ .name = "kl", .label = "KL", .title = "Divergence between teacher and student", .unit = BETWEEN,
	  .says = "0 is collapse: the student need not look at the picture to know what the teacher says." },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "knn", .label = "k-NN", .title = "Nearest neighbours, top-1", .unit = "%" },
	{ .name = "rank", .label = "rank", .title = "Effective rank of the features", .unit = "directions",
	  .says = "The highest uses most directions." },
	{ .name = "uniformity", .title = "Uniformity of the features", .lower = true,
	  .unit = "log mean Gaussian potential; lower is more even" },
	{ .name = "linear", .label = "linear", .title = "Linear head on the last blocks, top-1", .unit = "%" },
	{ .name = NULL },
};

const struct nr_task nr_task_dino = {
	.name = "dino",
	.title = "self-distillation (DINO)",
	.cite = "arXiv:2104.14294",
	.command = "dino",
	.summary = "pre-train a picture encoder without labels (DINO)",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "A student sees two large and several small crops of each picture and learns to say of each what a teacher says of the\n"
		 "other large ones. The teacher is a slow average of the student; its outputs are centred and sharpened so that both do\n"
		 "not collapse. Batch norms never mix crops of two sizes. Settings, metrics, checkpoints, Ctrl-C and resuming work as\n"
		 "in `norma train`; best.safetensors and model.safetensors hold the teacher, last.safetensors both.\n"
		 "\n"
		 "While training, `spread` (entropy of the teacher's mean output) and `KL` (teacher to student) tell a collapse: one of\n"
		 "them falls to 0. Each evaluation looks for nearest neighbours among --knn training pictures, measures the effective\n"
		 "rank of the features and draws what [CLS] looks at (pictures/dino-STEP.png: a row for each picture, a column for\n"
		 "each head). With --linear the last one fits a linear head. `norma probe` and `norma knn` go on from there.",
	.options = nr_dino_options,
	.settings_size = sizeof(struct nr_dino),
	.defaults = defaults,
	.sample = "picture",
	.own_size = sizeof(struct dino),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = NR_DINO_KNN,
	.settle = settle,
	.record = record,
	.ready = ready,
	.load = load,
	.bind = bind,
	.measure = measure,
	.notice = notice,
	.still = still,
	.rates = rates,
	.moved = moved,
	.evaluate = evaluate,
	.draw = draw,
	.picture = "attention.png",
	.describe = describe,
	.meta = meta,
	.close = close,
};
