/* RetinaNet on a hierarchical model by its name, as torchvision builds it on transformers' PVT: every picture has eight boxes. */
#include <string.h>

#include "base/real.h"
#include "bench.h"
#include "models/detector.h"

enum { BOXES = 8 };

static void settle(const struct bench_size *s, struct nr_detector *d)
{
	nr_option_defaults(nr_detector_options, d);
	d->convention = NR_TORCHVISION;
	d->neck_dim = s->dim;
	d->head_convs = s->depth;
}

static bool parse(struct nr_net *n, const struct bench_size *s, struct nr_model_spec *model)
{
	struct nr_error err = { 0 };
	if (!nr_model_parse(model, s->model, nr_net_arena(n), &err)) return true;
	nr_net_fail(n, err.code, s->model, "%s", err.detail);
	return false;
}

static nr_t *detect_loss(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_detector *d = nr_arena_alloc(nr_net_arena(n), sizeof *d);
	struct nr_detector_graph g;
	struct nr_model_spec model;
	if (!d || !parse(n, s, &model)) return NULL;
	settle(s, d);
	nr_t *loss = nr_detector_loss(n, &model, d, s->batch, BOXES, &g);
	in->image = g.image, in->truth = g.truth, in->labels = g.classes;
	return loss;
}

static nr_t *detect_boxes(struct nr_net *n, const struct bench_size *s, struct bench_inputs *in)
{
	struct nr_detector *d = nr_arena_alloc(nr_net_arena(n), sizeof *d);
	struct nr_detector_graph g;
	struct nr_model_spec model;
	if (!d || !parse(n, s, &model)) return NULL;
	settle(s, d);
	nr_t *boxes = nr_detector_detections(n, &model, d, s->batch, &g);
	in->image = g.image, in->sizes = g.sizes;
	return boxes;
}

/* Boxes of an eighth to a half of the side, along the diagonal, as the peer's. */
static void detect_fill(const struct bench *b)
{
	const struct bench_size *s = b->target.size;
	real *box = b->in.truth ? nr_plan_data(b->plan, b->in.truth) : NULL,
	     *size = b->in.sizes ? nr_plan_data(b->plan, b->in.sizes) : NULL;
	for (int64_t i = 0; box && i < s->batch * BOXES; i++) {
		const double from = (double)s->image * (double)(i % BOXES) / 16, side = (double)s->image * (1 + (double)(i % 4)) / 8;
		for (int j = 0; j < 4; j++) box[4 * i + j] = (real)(from + (j < 2 ? 0 : side));
	}
	for (int64_t i = 0; box && i < s->batch * BOXES; i++)
		((int32_t *)nr_plan_data(b->plan, b->in.labels))[i] = (int32_t)(i % s->classes);
	for (int64_t i = 0; size && i < 2 * s->batch; i++) size[i] = (real)s->image;
}

const struct bench_model bench_detect = { .train = detect_loss, .infer = detect_boxes, .fill = detect_fill };
