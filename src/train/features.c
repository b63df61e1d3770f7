/* Features of a split, and recalibration of running statistics. See features.h. */
#include "train/features.h"

#include <math.h>
#include <stdlib.h>

#include "train/floats.h"

int nr_features_of(struct nr_feature_set *f, const struct nr_weights *w, const struct nr_evaluation *what,
	int64_t batch, struct nr_error *err)
{
	struct nr_runner r;
	struct nr_evaluation e = *what;
	*f = (struct nr_feature_set){ .count = e.count ? e.count : e.source->count[e.split] };
	if (!f->count) return nr_fail(err, NR_EVALUE, "no samples in the split", nr_split_name(e.split), NULL);
	if (nr_runner_open(&r, w, batch < f->count ? batch : f->count, err)) return err->code;
	f->width = r.width;
	f->x = malloc((size_t)(f->count * f->width) * sizeof *f->x);
	f->label = malloc((size_t)f->count * sizeof *f->label);
	e.count = f->count;
	e.pooled = f->x;
	e.label = f->label;
	struct nr_score score;
	int code = f->x && f->label
		? nr_evaluate(&r, &e, &score, err)
		: nr_fail(err, NR_EMEMORY, "cannot keep the features", NULL, "out of memory");
	nr_runner_close(&r);
	if (code) nr_features_release(f);
	return code;
}

void nr_features_release(struct nr_feature_set *f)
{
	free(f->x);
	free(f->label);
	*f = (struct nr_feature_set){ 0 };
}

/* A running mean moves by new = (1-m) old + m b. From old = 0 and old = 1 follow m and b, whatever the norm calls them. */
struct probe { real *zero, *kept; double *sum; };

static void set_buffers(const struct nr_store *s, const real *from, real value)
{
	int64_t total;
	const real *base = nr_store_values(s, &total);
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		for (int64_t k = 0; e->buffer && k < e->count; k++) nr_value(e)[k] = from ? from[nr_value(e) - base + k] : value;
	}
}

static void one_batch(struct nr_runner *r, const struct nr_weights *w, const struct probe *p)
{
	const struct nr_exec ex = { .train = 1 };
	int64_t total;
	real *base = nr_store_values(w->store, &total);
	set_buffers(w->store, NULL, 0);
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	memcpy(p->zero, base, (size_t)total * sizeof *base);
	set_buffers(w->store, NULL, 1);
	nr_plan_run(r->plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	for (int64_t i = 0; i < nr_store_count(w->store); i++) {
		const struct nr_entry *e = nr_store_at(w->store, i);
		const int64_t at = nr_value(e) - base;
		for (int64_t k = 0; e->buffer && k < e->count; k++) {
			const double m = 1 - ((double)base[at + k] - (double)p->zero[at + k]);
			p->sum[at + k] += m > 1e-6 ? (double)p->zero[at + k] / m : NAN;
		}
	}
}

static int64_t put_means(const struct nr_weights *w, const struct probe *p, int64_t batches)
{
	int64_t total, changed = 0;
	real *base = nr_store_values(w->store, &total);
	for (int64_t i = 0; i < nr_store_count(w->store); i++) {
		const struct nr_entry *e = nr_store_at(w->store, i);
		const int64_t at = nr_value(e) - base;
		bool measured = e->buffer;
		for (int64_t k = 0; measured && k < e->count; k++) measured = isfinite(p->sum[at + k]);
		for (int64_t k = 0; e->buffer && k < e->count; k++)
			base[at + k] = measured ? (real)(p->sum[at + k] / (double)batches) : p->kept[at + k];
		changed += measured;
	}
	return changed;
}

int nr_recalibrate(const struct nr_weights *w, const struct nr_evaluation *train, int64_t batch, int64_t batches, int64_t *changed,
	struct nr_error *err)
{
	struct nr_runner r;
	struct nr_loader *loader = NULL;
	int64_t total, done = 0;
	real *base = nr_store_values(w->store, &total);
	struct probe p = { malloc((size_t)total * sizeof(real)), malloc((size_t)total * sizeof(real)),
		calloc((size_t)total, sizeof(double)) };
	const struct nr_loader_config config = { .source = train->source, .split = train->split, .augment = &train->augment, .batch = batch,
		.index = train->index, .count = train->count, .threads = train->workers, .shuffle = true, .drop_last = true };
	int code = p.zero && p.kept && p.sum ? nr_runner_open(&r, w, batch, err)
					     : nr_fail(err, NR_EMEMORY, "cannot measure statistics", NULL, "out of memory");
	if (!code) {
		memcpy(p.kept, base, (size_t)total * sizeof *base);
		code = nr_loader_open(&loader, &config, err);
		for (; !code && done < batches && done < nr_loader_batches(loader); done++) {
			struct nr_batch *b;
			if ((code = nr_loader_next(loader, &b, err))) break;
			nr_from_floats(nr_plan_data(r.plan, r.image), b->image, nr_len(r.image));
			nr_loader_give_back(loader, b);
			one_batch(&r, w, &p);
		}
		if (!code && !done) code = nr_fail(err, NR_EVALUE, "cannot measure statistics", NULL, "the split does not fill one batch");
		if (!code) *changed = put_means(w, &p, done);
		else set_buffers(w->store, p.kept, 0);
		if (loader) nr_loader_close(loader);
		nr_runner_close(&r);
	}
	free(p.zero);
	free(p.kept);
	free(p.sum);
	return code;
}
