/* Running statistics measured anew: see recalibrate.h. */
#include "surgery/recalibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "infer/features.h"

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

static void one_batch(const struct nr_store *store, struct nr_plan *plan, const struct probe *p)
{
	const struct nr_exec ex = { .train = 1, .no_dropout = 1 };
	int64_t total;
	real *base = nr_store_values(store, &total);
	set_buffers(store, NULL, 0);
	nr_plan_run(plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	memcpy(p->zero, base, (size_t)total * sizeof *base);
	set_buffers(store, NULL, 1);
	nr_plan_run(plan, &ex, NR_RUN_FORWARD | NR_RUN_COMMIT);
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i);
		const int64_t at = nr_value(e) - base;
		for (int64_t k = 0; e->buffer && k < e->count; k++) {
			const double m = 1 - ((double)base[at + k] - (double)p->zero[at + k]);
			p->sum[at + k] += m > 1e-6 ? (double)p->zero[at + k] / m : NAN;
		}
	}
}

static int64_t put_means(const struct nr_store *store, const struct probe *p, int64_t batches)
{
	int64_t total, changed = 0;
	real *base = nr_store_values(store, &total);
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i);
		const int64_t at = nr_value(e) - base;
		bool measured = e->buffer;
		for (int64_t k = 0; measured && k < e->count; k++) measured = isfinite(p->sum[at + k]);
		for (int64_t k = 0; e->buffer && k < e->count; k++)
			base[at + k] = measured ? (real)(p->sum[at + k] / (double)batches) : p->kept[at + k];
		changed += measured;
	}
	return changed;
}

int nr_recalibrate_plan(struct nr_store *store, struct nr_plan *plan, const struct nr_feed *feed, int64_t *changed, struct nr_error *err)
{
	int64_t total;
	const real *base = nr_store_values(store, &total);
	struct probe p = { malloc((size_t)total * sizeof(real)), malloc((size_t)total * sizeof(real)),
		calloc((size_t)total, sizeof(double)) };
	int code = p.zero && p.kept && p.sum ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure statistics", NULL, "out of memory");
	if (!code) memcpy(p.kept, base, (size_t)total * sizeof *base);
	for (int64_t b = 0; b < feed->batches && !code; b++) {
		code = feed->put(feed->context, b, err);
		if (!code) one_batch(store, plan, &p);
	}
	if (!code && !feed->batches) code = nr_fail(err, NR_EVALUE, "cannot measure statistics", NULL,
		"the split does not fill a batch");
	if (!code) *changed = put_means(store, &p, feed->batches);
	else if (p.kept) set_buffers(store, p.kept, 0);
	free(p.zero);
	free(p.kept);
	free(p.sum);
	return code;
}

/* ---- pictures ------------------------------------------------------------------------------------------------------------------- */

struct pictures { struct nr_loader *loader; struct nr_runner *r; };

static int put(void *context, int64_t b, struct nr_error *err)
{
	struct pictures *p = context;
	struct nr_batch *batch;
	(void)b;
	if (nr_loader_next(p->loader, &batch, err)) return err->code;
	nr_from_floats(nr_plan_data(p->r->plan, p->r->image), batch->image, nr_len(p->r->image));
	nr_loader_give_back(p->loader, batch);
	return NR_OK;
}

int nr_recalibrate(const struct nr_weights *w, const struct nr_evaluation *train, int64_t batch, int64_t batches, int64_t *changed,
	struct nr_error *err)
{
	struct nr_runner r;
	struct pictures p = { .r = &r };
	const struct nr_loader_config config = { .source = train->source, .split = train->split, .augment = &train->augment, .batch = batch,
		.index = train->index, .count = train->count, .threads = train->workers, .shuffle = true, .drop_last = true };
	if (nr_runner_open_encoder(&r, w, batch, err)) return err->code;
	int code = nr_loader_open(&p.loader, &config, err);
	if (!code) {
		const int64_t there = nr_loader_batches(p.loader);
		code = nr_recalibrate_plan(w->store, r.plan, &(struct nr_feed){ batches < there ? batches : there, put, &p }, changed, err);
		nr_loader_close(p.loader);
	}
	nr_runner_close(&r);
	return code;
}
