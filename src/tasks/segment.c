/* segment: a linear decoder on the tokens of a model of pictures (models/segment.c) and cross entropy of every pixel (nn/pixel_loss.c).
 * Dual PatchNorm's section 5.3 (arXiv:2302.01327) with Segmenter's augmentation (arXiv:2105.05633). An evaluation takes whole pictures,
 * or squares that slide over them (infer/segmenter.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "infer/classes.h"
#include "infer/segmenter.h"
#include "infer/weights.h"
#include "norma/nn.h"
#include "norms/choice.h"
#include "norma/safetensors.h"
#include "tasks/segment_sheet.h"
#include "tasks/segment_view.h"
#include "train/task.h"

enum { PICTURES = 6 };                          /* that are drawn */
enum { LOSS, MIOU, PIXEL_ACC, MEAN_ACC };

struct settings {
	struct nr_segmentation decoder;
	struct nr_segment_view view;
	int64_t window;
	bool frozen;
	double zoom_min, zoom_max, most_of_one;
};

static const struct nr_option options[] = {
	NR_SEGMENT_OPTIONS(struct settings, decoder.),
	NR_OPT_BOOL(struct settings, frozen, "0", "train the decoder alone"),
	NR_OPT_INT(struct settings, window, 0, 0, 2048, "side of the squares that training pictures are cut to; 0: the model's"),
	NR_OPT_FLOAT(struct settings, zoom_min, 0.5, 0.01, 100, "smallest factor that training pictures are resized by"),
	NR_OPT_FLOAT(struct settings, zoom_max, 2, 0.01, 100, "largest factor"),
	NR_OPT_FLOAT(struct settings, most_of_one, 0.75, 0.01, 1, "a square of which one class has more is cut anew; 1: never"),
	NR_SEGMENT_VIEW_OPTIONS(struct settings, view., "whole"),
	NR_OPT_END
};

struct segment {
	nr_t *image, *label, *logits;
	struct nr_segmenter *eval;
	struct nr_segment_maker maker;
	struct nr_segment_sheet sheet;
	uint8_t (*colour)[3];                           /* (classes) */
	int64_t *confusion;                             /* (classes,classes) of the last evaluation */
	enum nr_split split;                            /* of that evaluation */
};

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct settings o = *(const struct settings *)r->settings;
	const struct nr_augment *a = &r->c->augment;
	if (nr_model_expect(&r->w->model, NR_PICTURES, err)) return err->code;
	if (!r->source->of->map) return nr_source_map(r->source, NR_TRAIN, 0, NULL, NULL, err);         /* says so */
	if (a->crop != NR_CROP_AUTO || *a->randaugment || a->erase > 0) {
		nr_fail(err, NR_EUSAGE, "cannot augment", NULL, "--crop, --randaugment and --erase move pixels but not their labels");
		return nr_hint(err, "pictures are cut by --window, --zoom-min and --zoom-max; --flip and colours are for both");
	}
	if (o.zoom_min > o.zoom_max)
		return nr_fail(err, NR_EVALUE, "cannot augment", NULL, "zoom_min %g is more than zoom_max %g", o.zoom_min, o.zoom_max);
	if (o.window && nr_model_set(&r->w->model, "image", nr_arena_printf(r->arena, "%lld", (long long)o.window), r->arena, err))
		return err->code;
	if (nr_task_set(r, "classes", r->source->classes, err) || nr_task_set(r, "channels", r->source->channels, err)) return err->code;
	r->w->norms = nr_norms_without(r->norms, "segment", r->arena);          /* a checkpoint is also read without its decoder */
	if (!r->w->norms) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	return nr_segment_settle(&r->w->model, &o.decoder, r->arena, err);
}

static struct nr_segmentation decoder_of(const struct nr_task_run *r)
{
	struct nr_segmentation o = ((const struct settings *)r->settings)->decoder;
	o.classes = r->source->classes;
	return o;
}

static nr_t *record(struct nr_task_run *r)
{
	struct segment *s = r->own;
	const struct settings *o = r->settings;
	struct nr_net *n = r->net;
	const struct nr_model_spec *m = &r->w->model;
	const struct nr_segmentation decoder = decoder_of(r);
	const int64_t B = r->c->batch, size = nr_model_int(m, "image");
	s->image = nr_input(n, "image", NR_REAL, NR_SHAPE(B, nr_model_int(m, "channels"), size, size));
	s->label = nr_input(n, "label", NR_I32, NR_SHAPE(B, size, size));
	s->logits = nr_tap(n, "logits", nr_segment_logits(n, m, &decoder, &(struct nr_inputs){ .image = s->image }));
	for (int64_t i = 0; o->frozen && i < nr_store_count(r->w->store); i++) {
		struct nr_entry *e = nr_store_at(r->w->store, i);
		if (!nr_segment_entry(e->name)) e->frozen = 1;
	}
	return nr_pixel_cross_entropy(n, s->logits, s->label, NR_NO_CLASS, decoder.align_corners);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct segment *s = r->own;
	const struct settings *o = r->settings;
	const struct nr_segmentation decoder = decoder_of(r);
	const struct nr_pixel_stats stats = nr_source_pixel_stats(r->source);
	const size_t K = (size_t)r->source->classes;
	(void)batch;
	s->maker = nr_segment_maker_of(&r->c->augment, r->source);
	s->maker.side = o->view.side;
	s->maker.zoom_min = o->zoom_min, s->maker.zoom_max = o->zoom_max;
	s->maker.most = o->most_of_one;
	s->colour = nr_arena_alloc(r->arena, K * sizeof *s->colour);
	s->confusion = calloc(K * K, sizeof *s->confusion);
	if (!s->colour || !s->confusion)
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	nr_class_colours(r->source->colour, r->source->classes, s->colour);
	return nr_segmenter_open(&s->eval, r->w, &decoder, r->norms, &o->view, &r->c->augment, &stats, err);
}

static void load(const struct nr_task_run *r, struct nr_loader_config *l)
{
	const struct segment *s = r->own;
	l->make = nr_segment_make;
	l->maker = &s->maker;
	l->height = l->width = s->maker.size;
	l->extra = (size_t)s->maker.size * (size_t)s->maker.size;
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	const struct segment *s = r->own;
	const uint8_t *from = b->extra;
	int32_t *to = nr_plan_data(r->plan, s->label);
	(void)number;
	nr_from_floats(nr_plan_data(r->plan, s->image), b->image, nr_len(s->image));
	for (int64_t i = 0; i < nr_len(s->label); i++) to[i] = from[i];
}

/* Of the pixels in the middle of each place of the grid: the share that is right. */
static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct segment *s = r->own;
	const int64_t B = s->logits->d[0], h = s->logits->d[1], w = s->logits->d[2], K = s->logits->d[3], S = s->maker.size;
	const real *x = nr_plan_data(r->plan, s->logits);
	for (int64_t i = 0; i < B; i++) {
		const uint8_t *map = (const uint8_t *)b->extra + i * S * S;
		int64_t right = 0, all = 0;
		for (int64_t q = 0; q < h * w; q++, x += K) {
			const uint8_t truth = map[(2 * (q / w) + 1) * S / (2 * h) * S + (2 * (q % w) + 1) * S / (2 * w)];
			int64_t best = 0;
			for (int64_t k = 1; k < K; k++)
				if (x[k] > x[best]) best = k;
			all += truth != NR_NO_CLASS;
			right += truth == best;
		}
		sum[0] += all ? (double)right / (double)all : 0;
	}
}

static int64_t counted_pixels(const struct segment *s, int64_t classes)
{
	int64_t n = 0;
	for (int64_t i = 0; i < classes * classes; i++) n += s->confusion[i];
	return n;
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct segment *s = r->own;
	struct nr_evaluation counted = *e;
	struct nr_segment_score score;
	counted.confusion = s->confusion;
	s->split = e->split;
	const struct nr_segment_each each = { PICTURES, nr_segment_sheet_see, &s->sheet };
	nr_segment_sheet_begin(&s->sheet, r->source->classes, (const uint8_t(*)[3])s->colour);
	if (nr_segmenter_score(s->eval, &counted, &each, &score, err)) return err->code;
	value[LOSS] = score.loss;
	value[MIOU] = score.miou;
	value[PIXEL_ACC] = score.pixel_acc;
	value[MEAN_ACC] = score.mean_acc;
	if (!counted_pixels(s, r->source->classes))             /* nothing was measured */
		for (int i = LOSS; i <= MEAN_ACC; i++) value[i] = (double)NAN;
	*samples = score.samples;
	return NR_OK;
}

static int draw(struct nr_task_run *r, const char *path, struct nr_error *err)
{
	const struct segment *s = r->own;
	return nr_segment_sheet_draw(&s->sheet, path, err);
}

/* Which classes it tells apart. */
static int predictions(struct nr_task_run *r, struct nr_str *text, struct nr_error *err)
{
	const struct segment *s = r->own;
	const struct nr_class_counts told = { .classes = r->source->classes, .confusion = s->confusion, .name = r->source->class_name,
		.pixels = true, .colour = (const uint8_t(*)[3])s->colour };
	return nr_class_counts_record(text, &told, nr_split_name(s->split), err);
}

static void describe(const struct nr_task_run *r, struct nr_str *s)
{
	const struct settings *o = r->settings;
	nr_str_printf(s, "decoder           %s, backbone %s; evaluation %s\n",
		o->decoder.decoder == NR_SEGMENT_BN ? "batch norm and dense layer"
		: "dense layer", o->frozen ? "frozen" : "tuned", nr_segment_views[o->view.view]);
}

static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	const struct settings *o = r->settings;
	const struct segment *s = r->own;
	const int64_t n = 3 * (int64_t)r->source->classes;
	double *colour = nr_arena_alloc(r->arena, (size_t)n * sizeof *colour);
	for (int64_t i = 0; colour && i < n; i++) colour[i] = s->colour[i / 3][i % 3];
	m[0] = (struct nr_st_meta){ "norma.segment", nr_options_text(nr_segment_options, &o->decoder, r->arena) };
	m[1] = (struct nr_st_meta){ "norma.segment.norms", r->norms };
	m[2] = (struct nr_st_meta){ "norma.segment.view", nr_options_text(nr_segment_view_options, &o->view, r->arena) };
	m[3] = (struct nr_st_meta){ "norma.colours", colour ? nr_numbers_text(colour, n, r->arena) : NULL };
	return 4;
}

static void close(struct nr_task_run *r)
{
	struct segment *s = r->own;
	nr_segmenter_close(s->eval);
	nr_segment_sheet_release(&s->sheet);
	free(s->confusion);
}

static const struct nr_task_default defaults[] = { { "model", "vit:image=128,patch=8,dim=192,depth=6,heads=3" }, { "batch", "16" },
	{ "epochs", "50" }, { "warmup", "2" }, { "flip", "0.5" }, { "brightness", "0.25" }, { "contrast", "0.5" }, { "saturation", "0.5" },
	{ "hue", "0.05" }, { "jitter", "0.5" }, { NULL, NULL } };
static const struct nr_task_metric of_step[] = {
	{ .name = "pixel_acc", .label = "pixels", .unit = "%", .title = "Training pixel accuracy", .says = "In the middle of each patch." },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	[LOSS] = { .name = "loss", .title = "Held-out loss", .lower = true, .wide = true },
	[MIOU] = { .name = "miou", .label = "mIoU", .unit = "%", .title = "Held-out mean IoU" },
	[PIXEL_ACC] = { .name = "pixel_acc", .unit = "%", .title = "Held-out pixel accuracy" },
	[MEAN_ACC] = { .name = "mean_acc", .unit = "%", .title = "Held-out mean accuracy of a class" },
	{ .name = NULL },
};

const struct nr_task nr_task_segment = {
	.name = "segment",
	.title = "segmentation of pictures",
	.cite = "arXiv:2302.01327",
	.command = "segment",
	.summary = "train a model to tell the class of every pixel",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Trains a linear decoder on the tokens of a model, and the model with it (or --frozen: the decoder alone), from scratch\n"
		 "or from weights (--init). Data are pictures with label maps: camvid, ade20k, or a folder of one's own with images/\n"
		 "and labels/ (docs/segmentation.md). Settings, checkpoints, Ctrl-C and resuming work as in `norma train`.\n"
		 "\n"
		 "Training pictures are resized by a random factor, cut to squares, mirrored and recoloured. An evaluation measures\n"
		 "mean IoU, pixel accuracy and every class on whole pictures, or on squares that slide over them (--view slide),\n"
		 "and draws some: picture, truth, prediction. `norma eval` and `norma predict` take the checkpoints.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.from = "init",
	.sample = "picture",
	.own_size = sizeof(struct segment),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = MIOU,
	.settle = settle,
	.record = record,
	.ready = ready,
	.load = load,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.draw = draw,
	.picture = "segmentation.png",
	.predictions = predictions,
	.predicted = "classes.json",
	.describe = describe,
	.meta = meta,
	.close = close,
};
