/* See infer_text.h. */
#include "infer_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "data/npy.h"
#include "norma/nn.h"

struct recorded { struct nr_net *net; struct nr_plan *plan; struct nr_inputs in; nr_t *out; };

static int check(const struct infer_text *o, const struct nr_weights *w, const struct nr_st_tensor *x, struct nr_error *err)
{
	const bool whole = x->dtype == NR_ST_I64 || x->dtype == NR_ST_I32 || x->dtype == NR_ST_I16 || x->dtype == NR_ST_U16;
	if (!whole || x->nd != 2 || x->shape[0] < 1 || x->shape[1] < 1) {
		nr_fail(err, NR_ESHAPE, "cannot run on", o->input,
			"%s reads texts: token ids (N,T), N and T at least 1",
			w->model.of->name);
		return nr_hint(err, "np.save(\"x.npy\", ids.astype(\"int32\")), short rows padded with %lld",
			(long long)nr_model_int(&w->model, "pad"));
	}
	if (o->what != INFER_LOGITS || nr_weights_has_head(w)) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot run the model", w->model.text, "it has no classification head");
	return nr_hint(err, "--what pooled or --what tokens");
}

static int record(struct recorded *r, const struct infer_text *o, const struct nr_weights *w, int64_t batch, struct nr_error *err)
{
	*r = (struct recorded){ .net = nr_net_make(w->store) };
	if (!r->net) return nr_fail(err, NR_EMEMORY, "cannot record the model", w->model.text, "out of memory");
	if (nr_norms_use(r->net, w->norms, &w->model.norms, err)) return err->code;
	r->in = nr_model_inputs(r->net, &w->model, batch);
	r->out = nr_model_tokens(r->net, &w->model, &r->in);
	if (o->what != INFER_TOKENS) r->out = w->model.of->pool(r->net, r->out, w->model.conf);
	if (o->what == INFER_LOGITS) r->out = nr_model_head(r->net, &w->model, r->out);
	if (nr_norms_done(r->net, err)) return err->code;
	return nr_plan_make(&r->plan, r->net, r->out, 0, err);
}

/* Rows from .. of ids (N,T) into the plan; rows beyond the last one are a single pad. */
static void fill(const struct recorded *r, const int64_t *ids, int64_t n, int64_t T, int64_t pad)
{
	int32_t *to = nr_plan_data(r->plan, r->in.ids), *valid = nr_plan_data(r->plan, r->in.valid);
	for (int64_t b = 0; b < r->in.ids->d[0]; b++) {
		int64_t length = b < n ? T : 1;
		for (int64_t t = 0; t < T; t++) to[b * T + t] = (int32_t)(b < n ? ids[b * T + t] : pad);
		while (b < n && length > 1 && ids[b * T + length - 1] == pad) length--;
		valid[b] = (int32_t)length;
	}
}

static int out_of_range(const struct infer_text *o, const struct nr_weights *w, const int64_t *ids, int64_t n, int64_t T,
	struct nr_error *err)
{
	const int64_t vocab = nr_model_int(&w->model, "vocab");
	for (int64_t i = 0; i < n * T; i++)
		if (ids[i] < 0 || ids[i] >= vocab)
			return nr_fail(err, NR_EVALUE, "cannot run on", o->input,
				"row %lld has the id %lld, but the vocabulary has %lld entries", (long long)(i / T), (long long)ids[i],
				(long long)vocab);
	return NR_OK;
}

static int run_all(const struct recorded *r, const struct infer_text *o, const struct nr_weights *w, const int64_t *ids, int64_t n,
	struct nr_error *err)
{
	const int64_t batch = r->in.ids->d[0], T = r->in.ids->d[1], one = nr_len(r->out) / batch, pad = nr_model_int(&w->model, "pad");
	float *out = malloc((size_t)(n * one) * sizeof *out);
	if (!out) return nr_fail(err, NR_EMEMORY, "cannot run on", o->input, "out of memory");
	for (int64_t i = 0; i < n; i += batch) {
		const int64_t rows = n - i < batch ? n - i : batch;
		fill(r, ids + i * T, rows, T, pad);
		nr_plan_run(r->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
		const real *y = nr_plan_data(r->plan, r->out);
		for (int64_t k = 0; k < rows * one; k++) out[i * one + k] = (float)y[k];
	}
	struct nr_st_tensor y = { .name = o->output, .dtype = NR_ST_F32, .nd = r->out->nd, .data = out,
		.bytes = (size_t)(n * one) * sizeof *out };
	memcpy(y.shape, r->out->d, (size_t)r->out->nd * sizeof *r->out->d);
	y.shape[0] = n;
	const int code = nr_npy_write(o->output, &y, err);
	free(out);
	return code;
}

int cli_infer_text(struct cli *c, const struct infer_text *o, struct nr_weights *w, const struct nr_st_tensor *x)
{
	struct recorded r = { 0 };
	char length[32];
	if (check(o, w, x, c->err)) return c->err->code;
	const int64_t n = x->shape[0], T = x->shape[1];
	int64_t *ids = malloc((size_t)(n * T) * sizeof *ids);
	snprintf(length, sizeof length, "%lld", (long long)T);
	int code = ids ? nr_st_to_i64(x, ids, n * T, c->err) : nr_fail(c->err, NR_EMEMORY, "cannot run on", o->input, "out of memory");
	if (!code) code = out_of_range(o, w, ids, n, T, c->err);
	if (!code) code = nr_model_set(&w->model, "length", length, w->arena, c->err);
	if (!code) code = record(&r, o, w, o->batch < n ? o->batch : n, c->err);
	if (!code) code = run_all(&r, o, w, ids, n, c->err);
	nr_plan_free(r.plan);
	nr_net_free(r.net);
	free(ids);
	return code;
}
