/* norma infer CKPT --input X.npy --output Y.npy: raw tensors in, logits, pooled features or tokens out. For scripts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/progress.h"
#include "base/real.h"
#include "cli.h"
#include "data/npy.h"
#include "infer/runner.h"
#include "infer_text.h"

struct infer { char *model, *norm, *from, *resample, *input, *output; int32_t what; int64_t batch; bool partial; };

static const char *const whats[] = { "logits", "pooled", "tokens", NULL };
static const struct nr_option options[] = {
	CLI_TEXT(struct infer, model, "", "MODEL", "model, if the file does not name it (norma models)"),
	CLI_TEXT(struct infer, norm, "", "PLAN", "norm plan, if the file does not name it"),
	CLI_TEXT(struct infer, from, "auto", "NAMES",
		"tensor names of the file: timm, huggingface, norma; auto: those that fit best"),
	CLI_TEXT(struct infer, resample, "", "KIND",
		"how to resize a position table of another grid: timm, mae, dino, bigvision"),
	CLI_TEXT(struct infer, input, NULL, "X.npy",
		"pictures (N,channels,height,width) as float32, already normalised; or token ids (N,T)"),
	CLI_TEXT(struct infer, output, NULL, "Y.npy", "results: logits (N,classes), pooled (N,width) or tokens (N,T,width)"),
	NR_OPT_ENUM(struct infer, what, "logits", whats, "what to write"),
	NR_OPT_INT(struct infer, batch, 16, 1, 100000, "pictures at once; does not change the results"),
	NR_OPT_BOOL(struct infer, partial, "0", "allow unused tensors in the file and missing ones"),
	NR_OPT_END
};

static int check_input(const struct nr_st_tensor *x, const struct nr_runner *r, const char *path, struct nr_error *err)
{
	char have[128] = "a scalar";
	size_t used = 0;
	for (int i = 0; i < x->nd && used < sizeof have; i++)
		used += (size_t)snprintf(have + used, sizeof have - used, "%s%lld", i ? "," : "", (long long)x->shape[i]);
	if (x->dtype != NR_ST_F32 && x->dtype != NR_ST_F64 && x->dtype != NR_ST_F16) {
		nr_fail(err, NR_EVALUE, "cannot run on", path,
			"its values are %s instead of floats", nr_st_dtype_name(x->dtype));
		return nr_hint(err, "normalise pictures first, or give the files to `norma predict`");
	}
	const int64_t *d = r->image->d;
	if (x->nd != 4 || x->shape[0] < 1 || x->shape[1] != d[1] || x->shape[2] != d[2] || x->shape[3] != d[3]) {
		nr_fail(err, NR_ESHAPE, "cannot run on", path,
			"its shape is (%s), the model needs (N,%lld,%lld,%lld)", have,
			(long long)d[1], (long long)d[2], (long long)d[3]);
		return nr_hint(err, "N at least 1");
	}
	return NR_OK;
}

/* Pictures from .. of the array, zeros after the last one, so that every batch has the plan's size. */
static int load(const struct nr_st_tensor *x, const struct nr_runner *r, int64_t from, float *to, struct nr_error *err)
{
	const int64_t one = nr_len(r->image) / r->batch, n = x->shape[0] - from < r->batch ? x->shape[0] - from : r->batch;
	const size_t width = nr_st_width(x->dtype);
	const struct nr_st_tensor part = { .name = x->name, .dtype = x->dtype, .nd = 1, .shape = { n * one },
		.data = (const char *)x->data + (size_t)(from * one) * width, .bytes = (size_t)(n * one) * width };
	memset(to + n * one, 0, (size_t)((r->batch - n) * one) * sizeof *to);
	return nr_st_to_f32(&part, to, n * one, err);
}

static int run_all(struct nr_runner *r, const struct nr_st_tensor *x, const nr_t *what, float *image, float *out, struct nr_error *err)
{
	const int64_t n = x->shape[0], one = nr_len(what) / r->batch;
	struct nr_progress bar;
	nr_progress_init(&bar, stderr, "infer", n, 0);
	for (int64_t i = 0; i < n && !load(x, r, i, image, err); i += r->batch) {
		const int64_t m = n - i < r->batch ? n - i : r->batch;
		nr_runner_run(r, image, NR_STATS_RUNNING);
		const real *y = nr_plan_data(r->plan, what);
		for (int64_t k = 0; k < m * one; k++) out[i * one + k] = (float)y[k];
		nr_progress_update(&bar, i + m, NULL);
	}
	nr_progress_release(&bar);
	return err->code;
}

static int infer(struct cli *c, const struct infer *o, const struct nr_weights *w, const struct nr_st_tensor *x)
{
	struct nr_runner r;
	const int64_t n = x->nd > 0 && x->shape[0] > 0 ? x->shape[0] : 1;
	const bool picture = x->nd == 4 && x->shape[2] > 0 && x->shape[3] > 0;
	const int64_t size = nr_model_int(&w->model, "image");
	const int64_t batch = o->batch < n ? o->batch : n, h = picture ? x->shape[2] : size, width = picture ? x->shape[3] : size;
	if (nr_runner_open_at(&r, w, batch, o->what == INFER_LOGITS, h, width, c->err)) return c->err->code;
	const nr_t *what = o->what == INFER_LOGITS ? r.logits : o->what == INFER_POOLED ? r.pooled : r.tokens;
	const int64_t total = nr_len(what) / r.batch * n;
	int code = check_input(x, &r, o->input, c->err);
	float *image = code ? NULL : malloc((size_t)nr_len(r.image) * sizeof *image);
	float *out = code ? NULL : malloc((size_t)total * sizeof *out);
	if (!code && (!image || !out)) code = nr_fail(c->err, NR_EMEMORY, "cannot run on", o->input, "out of memory");
	if (!code) code = run_all(&r, x, what, image, out, c->err);
	if (!code) {
		struct nr_st_tensor y = { .name = o->output, .dtype = NR_ST_F32, .nd = what->nd, .data = out,
			.bytes = (size_t)total * sizeof *out };
		memcpy(y.shape, what->d, (size_t)what->nd * sizeof *what->d);
		y.shape[0] = n;
		code = nr_npy_write(o->output, &y, c->err);
		int64_t bad = 0;
		for (int64_t i = 0; i < total; i++) bad += !isfinite(out[i]);
		if (bad)
			nr_log_line(NR_LOG_WARNING, "%lld of %lld values in '%s' are not finite", (long long)bad, (long long)total,
				o->output);
	}
	free(image);
	free(out);
	nr_runner_close(&r);
	return code;
}

static void warn_kept(void *context, enum nr_import_fate fate, const char *name)
{
	int *told = context;
	if (fate == NR_KEPT && (*told)++ < 5) nr_log_line(NR_LOG_WARNING, "the file has no '%s': it keeps its initial values", name);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct infer *o = conf;
	if (args->count != 1) {
		cli_usage(c, "infer needs one file of weights, not %d", (int)args->count);
		return nr_hint(c->err, "norma infer --help");
	}
	cli_bound_spin(c);
	struct nr_npy x;
	if (nr_npy_open(&x, o->input, c->err)) return c->err->code;
	int told = 0;
	struct nr_weights *w = NULL;
	const struct nr_weights_how how = { .model = o->model, .norms = o->norm, .naming = o->from, .resample = o->resample,
		.partial = o->partial, .texts = x.array.nd == 2, .tell = warn_kept, .context = &told };
	int code = nr_weights_open(&w, args->item[0], &how, c->err);
	if (!code) nr_store_fix(w->store);
	if (!code && w->model.of->reads == NR_TEXTS)
		code = cli_infer_text(c, &(struct infer_text){ o->input, o->output, (enum infer_what)o->what, o->batch }, w, &x.array);
	else if (!code) code = infer(c, o, w, &x.array);
	nr_weights_close(w);
	nr_npy_close(&x);
	return code;
}

const struct cli_command cli_infer = {
	.name = "infer",
	.title = "run a model on a NumPy array",
	.usage = "WEIGHTS --input X.npy --output Y.npy",
	.about = "Loads weights (norma's, timm's or Hugging Face's), runs the pictures of a .npy file through the model and writes\n"
		 "its logits, the pooled features that the head reads, or the tokens after the last block. For a text model the file\n"
		 "holds token ids (N,T); pad ids at the end of a row are padding, which other tokens do not see.\n"
		 "Of a file with two towers (CLIP) such an input takes the one for texts.\n"
		 "Norms use running statistics, so the result is the same for any batch size and number of threads.\n"
		 "\n"
		 "Without --norm, weights with Hugging Face's names get its eps of 1e-12.",
	.conf_size = sizeof(struct infer),
	.options = options,
	.run = run,
};
