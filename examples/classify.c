/* Classifies pictures with libnorma: the best class of each and its probability, as `norma predict` gives them.
 *
 *   cc classify.c -o classify $(pkg-config --cflags --libs norma) -lm && ./classify run/best.safetensors cat.jpg
 *
 * The weights are one of norma's checkpoints, which say their model, classes and how pixels are scaled. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <norma/norma.h>

struct job { struct nr_weights *w; struct nr_runner run; struct nr_augment to_input; struct nr_augment_scratch *scratch; float *image; };

static int open_job(struct job *j, const char *weights, struct nr_error *err)
{
	if (nr_weights_open(&j->w, weights, NULL, NULL, NULL, false, err)) return err->code;
	if (nr_runner_open(&j->run, j->w, 1, err) || nr_augment_scratch_make(&j->scratch, err)) return err->code;
	nr_option_defaults(nr_augment_options, &j->to_input);
	j->to_input.size = j->run.size;
	j->to_input.channels = (int32_t)j->run.channels;
	j->to_input.crop = NR_CROP_CENTER;
	j->to_input.crop_share = 1;
	j->to_input.flip = 0;
	j->to_input.normalize = j->w->normalize;
	for (int i = 0; i < 3; i++) j->to_input.mean[i] = j->w->mean[i], j->to_input.std[i] = j->w->std[i];
	j->image = malloc((size_t)(j->run.channels * j->run.size * j->run.size) * sizeof *j->image);
	return j->image ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot run", weights, "out of memory");
}

static int classify(struct job *j, const char *path, struct nr_error *err)
{
	struct nr_picture picture = { 0 };
	int code = nr_picture_read(&picture, path, j->to_input.channels, err);
	if (!code) code = nr_augment_run(&j->to_input, NULL, &picture, 0, 0, 0, j->image, j->scratch, err);
	nr_picture_release(&picture);
	if (code) return code;
	nr_runner_run(&j->run, j->image, NR_STATS_RUNNING);
	const real *logit = nr_plan_data(j->run.plan, j->run.logits);
	int64_t best = 0;
	double sum = 0;
	for (int64_t k = 1; k < j->run.classes; k++)
		if (logit[k] > logit[best]) best = k;
	for (int64_t k = 0; k < j->run.classes; k++) sum += exp((double)logit[k] - (double)logit[best]);
	printf("%s: class %lld (%s), %.4f\n", path, (long long)best, j->w->class_name ? j->w->class_name[best] : "without a name", 1 / sum);
	return NR_OK;
}

int main(int argc, char **argv)
{
	struct nr_error err = { 0 };
	struct job j = { 0 };
	char text[1024];
	if (argc < 3) return fprintf(stderr, "usage: %s WEIGHTS PICTURE...\n", argv[0]), 2;
	int code = open_job(&j, argv[1], &err);
	for (int i = 2; !code && i < argc; i++) code = classify(&j, argv[i], &err);
	if (code) fprintf(stderr, "%s\n", nr_error_text(&err, text, sizeof text));
	free(j.image);
	nr_augment_scratch_free(j.scratch);
	nr_runner_close(&j.run);
	nr_weights_close(j.w);
	return code ? 1 : 0;
}
