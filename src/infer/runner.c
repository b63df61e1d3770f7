/* Models of pictures at work: batches of inputs, or of pictures as the evaluation of the training saw them. */
#include <math.h>
#include <stdlib.h>

#include "base/real.h"
#include "infer/features.h"
#include "infer/runner.h"
#include "norma/nn.h"

struct nr_runner_eye {                      /* what pictures go through */
	struct nr_augment_scratch *scratch;
	struct nr_picture picture;          /* the file that was read last */
	float *image;                       /* (batch,channels,size,size) */
};

/* h x w: size of the pictures; 0: the model's own. */
enum { HEAD = 1 << 0, LAYERS = 1 << 1 };        /* with its head; blocks stay readable */
static int record(struct nr_runner *r, const struct nr_weights *w, int64_t batch, unsigned what, int64_t h, int64_t width,
	struct nr_error *err)
{
	const bool head = what & HEAD;
	*r = (struct nr_runner){ .net = nr_net_make(w->store), .batch = batch, .channels = nr_model_int(&w->model, "channels"),
		.size = nr_model_int(&w->model, "image"), .classes = nr_model_int(&w->model, "classes"), .class_name = w->class_name,
		.model = w->model.text };
	r->view = nr_augment_for_eval(&w->view, r->size, (int32_t)r->channels, w->view.crop_share);
	if (!r->net) return nr_fail(err, NR_EMEMORY, "cannot record the model", w->model.text, "out of memory");
	const struct nr_model *m = w->model.of;
	int code = nr_model_expect(&w->model, NR_PICTURES, err);
	if (!code) code = nr_norms_use(r->net, w->norms, &w->model.norms, err);
	if (what & LAYERS) nr_net_keep_hidden(r->net, 1);
	if (!code) {
		struct nr_inputs in = { 0 };
		if (h) in.image = nr_input(r->net, "image", NR_REAL, NR_SHAPE(batch, r->channels, h, width));
		else in = nr_model_inputs(r->net, &w->model, batch);
		r->image = in.image;
		r->tokens = nr_tap(r->net, "tokens", nr_model_tokens(r->net, &w->model, &in));
		r->pooled = nr_tap(r->net, "pooled", m->pool(r->net, r->tokens, w->model.conf));
		if (head) r->logits = nr_model_head(r->net, &w->model, r->pooled);
		code = nr_norms_done(r->net, err);
	}
	if (!code) code = nr_plan_make(&r->plan, r->net, head ? r->logits : r->pooled, 0, err);
	if (code) nr_runner_close(r);
	else r->width = nr_cols(r->pooled);
	return code;
}

int nr_runner_open(struct nr_runner *r, const struct nr_weights *w, int64_t batch, struct nr_error *err)
{
	*r = (struct nr_runner){ 0 };
	if (nr_store_find(w->store, "head.weight")) return record(r, w, batch, HEAD, 0, 0, err);
	nr_fail(err, NR_EVALUE, "cannot run the model", w->model.of->name, "it was pre-trained and has no head");
	return nr_hint(err, "`norma probe` and `norma knn` measure its features, `norma finetune` gives it a head");
}

int nr_runner_open_at(struct nr_runner *r, const struct nr_weights *w, int64_t batch, bool head, int64_t h, int64_t width,
	struct nr_error *err)
{
	const int64_t size = nr_model_int(&w->model, "image");
	if (!w->model.of->levels || (h == size && width == size))
		return head ? nr_runner_open(r, w, batch, err) : nr_runner_open_encoder(r, w, batch, err);
	*r = (struct nr_runner){ 0 };
	return record(r, w, batch, head ? HEAD : 0, h, width, err);
}

int nr_runner_open_encoder(struct nr_runner *r, const struct nr_weights *w, int64_t batch, struct nr_error *err)
{
	return record(r, w, batch, 0, 0, 0, err);
}

int nr_runner_open_layers(struct nr_runner *r, const struct nr_weights *w, int64_t batch, struct nr_error *err)
{
	return record(r, w, batch, LAYERS, 0, 0, err);
}

void nr_runner_run(struct nr_runner *r, const float *image, enum nr_stats stats)
{
	const struct nr_exec ex = { .train = stats == NR_STATS_BATCH, .no_dropout = 1 };
	if (!image && r->eye) image = r->eye->image;
	if (image) nr_from_floats(nr_plan_data(r->plan, r->image), image, nr_len(r->image));
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD);
}

void nr_runner_close(struct nr_runner *r)
{
	nr_plan_free(r->plan);
	nr_net_free(r->net);
	if (r->eye) {
		nr_picture_release(&r->eye->picture);
		nr_augment_scratch_free(r->eye->scratch);
		free(r->eye->image);
		free(r->eye);
	}
	*r = (struct nr_runner){ 0 };
}

/* ---- pictures --------------------------------------------------------------------------------------------------------------- */

/* Made for the first picture; zeros where none was put yet. */
static int open_eye(struct nr_runner *r, struct nr_error *err)
{
	if (r->eye) return NR_OK;
	struct nr_runner_eye *eye = calloc(1, sizeof *eye);
	float *image = calloc((size_t)nr_len(r->image), sizeof *image);
	if (!eye || !image || nr_augment_scratch_make(&eye->scratch, NULL)) {
		free(eye);
		free(image);
		return nr_fail(err, NR_EMEMORY, "cannot show pictures to the model", NULL, "out of memory");
	}
	eye->image = image;
	r->eye = eye;
	return NR_OK;
}

int nr_runner_picture(struct nr_runner *r, int64_t place, const struct nr_picture *p, struct nr_error *err)
{
	if (place < 0 || place >= r->batch)
		return nr_fail(err, NR_EVALUE, "cannot show a picture to the model", NULL, "place %lld of a batch of %lld",
			(long long)place, (long long)r->batch);
	const int code = open_eye(r, err);
	if (code) return code;
	float *image = r->eye->image + place * r->channels * r->size * r->size;
	return nr_augment_run(&r->view, NULL, p, 0, 0, 0, image, r->eye->scratch, err);
}

int nr_runner_file(struct nr_runner *r, int64_t place, const char *path, struct nr_error *err)
{
	int code = open_eye(r, err);
	if (!code) code = nr_picture_read(&r->eye->picture, path, (int32_t)r->channels, err);
	return code ? code : nr_runner_picture(r, place, &r->eye->picture, err);
}

/* ---- classes ---------------------------------------------------------------------------------------------------------------- */

static int by_probability(const void *a, const void *b)
{
	const struct nr_answer *x = a, *y = b;
	return x->probability != y->probability ? (x->probability < y->probability ? 1 : -1) : x->number < y->number ? -1 : 1;
}

/* Softmax in double, sorted; false: it is not finite. */
static bool rank(const struct nr_runner *r, int64_t place, struct nr_answer *all)
{
	const real *logit = (const real *)nr_plan_data(r->plan, r->logits) + place * r->classes;
	double most = -INFINITY, sum = 0;
	bool named = r->class_name != NULL;
	for (int64_t k = 0; k < r->classes; k++) most = fmax(most, (double)logit[k]);
	for (int64_t k = 0; k < r->classes; k++) sum += exp((double)logit[k] - most);
	for (int64_t k = 0; k < r->classes; k++) {
		named = named && r->class_name[k];
		all[k] = (struct nr_answer){ k, exp((double)logit[k] - most) / sum, named ? r->class_name[k] : NULL };
	}
	qsort(all, (size_t)r->classes, sizeof *all, by_probability);
	return isfinite(sum);
}

static int best_of(const struct nr_runner *r, int64_t place, const char *name, struct nr_answer *best, int64_t n, struct nr_error *err)
{
	struct nr_answer *all = malloc((size_t)r->classes * sizeof *all);
	if (!all) return nr_fail(err, NR_EMEMORY, "cannot tell", name, "out of memory");
	const bool finite = rank(r, place, all);
	for (int64_t i = 0; i < n; i++) best[i] = i < r->classes ? all[i] : (struct nr_answer){ .number = -1 };
	free(all);
	return finite ? NR_OK : nr_fail(err, NR_EDIVERGED, "cannot tell", name, "the model's output is not finite");
}

int nr_runner_best(const struct nr_runner *r, int64_t place, struct nr_answer *best, int64_t n, struct nr_error *err)
{
	return best_of(r, place, NULL, best, n, err);
}

int nr_runner_classify(struct nr_runner *r, const char *path, struct nr_answer *best, int64_t n, struct nr_error *err)
{
	const int code = nr_runner_file(r, 0, path, err);
	if (code) return code;
	nr_runner_run(r, NULL, NR_STATS_RUNNING);
	return best_of(r, 0, path, best, n, err);
}
