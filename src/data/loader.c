/* The loader: threads that keep batches ready. See norma/data.h.
 *
 * Batches are opened in order, each in a free slot; workers take runs of samples from the oldest batch that has some left, and
 * whoever finishes its last run mixes it and marks it ready. What a sample becomes depends on (seed, epoch, number) alone, so the
 * bytes are the same for any number of threads. Slots, pictures and scratch are allocated once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "data/listed.h"
#include "data/mix.h"
#include "picture/augment.h"

enum { READY_AHEAD = 2, THREADS = 256 };

enum state { FREE, FILLING, READY, TAKEN };

struct slot {
	struct nr_batch batch;          /* first: what the caller gives back */
	int64_t place;                  /* among the batches that are delivered */
	enum state state;
	int64_t taken, done;            /* samples */
	int64_t bad;                    /* the first sample that failed; batch.samples if none did */
	struct nr_error err;
};

struct nr_loader {
	struct nr_loader_config c;
	struct nr_augment augment;
	const struct nr_augment *view;      /* (views): the caller's, or augment alone */
	int views;
	struct nr_pixel_stats stats;        /* of the source */
	int64_t count, batches;         /* samples and batches per epoch */
	int64_t opened, next;           /* batches: the next to be opened, the next to be delivered */
	int64_t run;                    /* samples that a worker takes at once */
	int32_t channels;
	size_t image_bytes, target_bytes, extra_bytes;
	double waited;
	bool stopping;
	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	struct slot *slot;              /* those ready, and those with the caller */
	int slots;
	int threads;                    /* that run */
	struct worker *worker;
};

struct worker {
	pthread_t thread;
	struct nr_loader *of;
	struct nr_picture picture;
	struct nr_augment_scratch *scratch;
};

/* ---- one sample ---- */

/* Which sample stands at a place of an epoch; repeats of one follow each other. */
static int64_t sample_at(const struct nr_loader *l, int64_t epoch, int64_t place, int64_t *repeat)
{
	const int64_t r = l->augment.repeats;
	int64_t i = place / r;
	*repeat = place % r;
	if (l->c.shuffle)
		i = (int64_t)nr_rng_permute(nr_rng_make(l->c.seed, NR_STREAM_ORDER, (uint32_t)epoch), (uint64_t)i, (uint64_t)l->count);
	return l->c.index ? l->c.index[i] : i;
}

/* Values of one sample in a view. */
static int64_t values(const struct nr_loader *l, int view)
{
	const int64_t area = l->c.make ? (int64_t)l->c.height * l->c.width : l->view[view].size * l->view[view].size;
	return l->channels * area;
}

static int make(struct worker *w, const struct nr_batch *b, int64_t i, int64_t sample, int64_t number, struct nr_error *err)
{
	const struct nr_loader *l = w->of;
	const struct nr_draw_of what = { .source = l->c.source, .split = l->c.split, .sample = sample, .epoch = b->epoch, .number = number,
		.seed = l->c.seed, .scratch = w->scratch };
	char *extra = b->extra ? (char *)b->extra + (size_t)i * l->c.extra : NULL;
	if (extra) memset(extra, 0, l->c.extra);
	return l->c.make(l->c.maker, &w->picture, &what, b->image + i * values(l, 0), extra, err);
}

static int augment(struct worker *w, const struct nr_batch *b, int64_t i, int64_t number, struct nr_error *err)
{
	const struct nr_loader *l = w->of;
	float *out = b->image;
	int code = NR_OK;
	for (int v = 0; v < l->views && !code; v++, out += l->c.batch * values(l, v - 1))
		code = nr_augment_run(&l->view[v], &l->stats, &w->picture, l->c.seed, b->epoch, number * l->views + v,
			out + i * values(l, v), w->scratch, err);
	return code;
}

static int load(struct worker *w, const struct slot *s, int64_t i, struct nr_error *err)
{
	const struct nr_loader *l = w->of;
	const struct nr_source *source = l->c.source;
	const struct nr_batch *b = &s->batch;
	int64_t repeat;
	const int64_t sample = sample_at(l, b->epoch, (b->number % l->batches) * l->c.batch + i, &repeat);
	int32_t label = -1;
	int code = nr_source_get(source, l->c.split, sample, &w->picture, &label, err);
	if (!code && source->classes > 0 && label >= source->classes)
		code = nr_fail(err, NR_EFORMAT, "bad label", NULL, "%d of %d classes", (int)label, (int)source->classes);
	const int64_t number = sample * l->augment.repeats + repeat;
	if (!code) code = l->c.make ? make(w, b, i, sample, number, err) : augment(w, b, i, number, err);
	b->label[i] = label;
	b->index[i] = (int32_t)sample;
	if (!code) return NR_OK;
	char file[sizeof err->subject];
	if (!*err->subject)
		snprintf(err->subject, sizeof err->subject, "%s", nr_source_file(source, l->c.split, sample, file, sizeof file));
	const size_t end = strlen(err->detail);
	snprintf(err->detail + end, sizeof err->detail - end, " (sample %lld of '%s', %s)", (long long)sample, source->of->name,
		nr_split_name(l->c.split));
	return code;
}

/* ---- workers ---- */

static struct slot *find(struct nr_loader *l, int64_t place)
{
	for (int i = 0; i < l->slots; i++)
		if (l->slot[i].state != FREE && l->slot[i].place == place) return &l->slot[i];
	return NULL;
}

/* The number of the batch that is delivered at a place. */
static int64_t number_at(const struct nr_loader *l, int64_t place)
{
	const int64_t take = l->c.share.take, rows = l->c.share.across;
	if (!l->c.share.of) return place;
	int64_t i = place % take;
	if (rows > 1) i = i % rows * (take / rows) + i / rows;
	return place / take * l->c.share.of + l->c.share.from + i;
}

static struct slot *open_next(struct nr_loader *l)
{
	if (l->c.stop > 0 && l->opened >= l->c.stop) return NULL;
	for (int i = 0; i < l->slots; i++) {
		struct slot *s = &l->slot[i];
		if (s->state != FREE) continue;
		const int64_t number = number_at(l, l->opened), left = l->count - number % l->batches * l->c.batch;
		s->state = FILLING;
		s->taken = s->done = 0;
		s->place = l->opened++;
		s->batch.number = number;
		s->batch.epoch = s->batch.number / l->batches;
		s->batch.samples = s->bad = left < l->c.batch ? left : l->c.batch;
		s->err.code = NR_OK;
		return s;
	}
	return NULL;
}

/* The oldest batch with samples left; a new one if there is room. */
static struct slot *find_work(struct nr_loader *l)
{
	for (int64_t n = l->next; n < l->opened; n++) {
		struct slot *s = find(l, n);
		if (s && s->state == FILLING && s->taken < s->batch.samples) return s;
	}
	return open_next(l);
}

static void finish(struct nr_loader *l, struct slot *s)
{
	struct nr_batch *b = &s->batch;
	if (!b->target || s->err.code) return;
	const int32_t size = (int32_t)l->augment.size;
	const struct nr_mixing m = nr_mix_draw(&l->c, b->number, size, size);
	nr_mix_run(&m, b->samples, l->channels, size, size, b->image);
	nr_mix_soften(&m, b->samples, l->c.source->classes, b->label, l->c.smoothing, b->target);
}

/* A run of samples, outside of the lock. Returns the first that failed, or end. */
static int64_t fill(struct worker *w, const struct slot *s, int64_t from, int64_t end, struct nr_error *err)
{
	for (int64_t i = from; i < end && !__atomic_load_n(&w->of->stopping, __ATOMIC_RELAXED); i++)
		if (load(w, s, i, err)) return i;
	return end;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct nr_loader *l = w->of;
	pthread_mutex_lock(&l->lock);
	while (!l->stopping) {
		struct slot *s = find_work(l);
		if (!s) {
			pthread_cond_wait(&l->work, &l->lock);
			continue;
		}
		const int64_t from = s->taken, end = from + l->run < s->batch.samples ? from + l->run : s->batch.samples;
		struct nr_error err = { 0 };
		s->taken = end;
		pthread_mutex_unlock(&l->lock);
		const int64_t bad = fill(w, s, from, end, &err);
		pthread_mutex_lock(&l->lock);
		if (bad < end && bad < s->bad) {        /* the lowest sample's error is told, whoever met it */
			s->bad = bad;
			s->err = err;
		}
		s->done += end - from;
		if (s->done < s->batch.samples || l->stopping) continue;
		pthread_mutex_unlock(&l->lock);
		finish(l, s);
		pthread_mutex_lock(&l->lock);
		s->state = READY;
		pthread_cond_signal(&l->ready);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- the caller's side ---- */

int nr_loader_next(struct nr_loader *l, struct nr_batch **out, struct nr_error *err)
{
	*out = NULL;
	if (l->c.stop > 0 && l->next >= l->c.stop) return NR_OK;
	pthread_mutex_lock(&l->lock);
	struct slot *s = find(l, l->next);
	int held = 0;
	for (int i = 0; i < l->slots; i++) held += l->slot[i].state == TAKEN;
	if (!s && held == l->slots) {
		pthread_mutex_unlock(&l->lock);
		return nr_fail(err, NR_EUSAGE, "cannot load a batch", NULL,
			"the caller holds all %d: return one first", l->slots);
	}
	if (!s || s->state != READY) {
		const double start = nr_clock();
		while (!(s = find(l, l->next)) || s->state != READY) pthread_cond_wait(&l->ready, &l->lock);
		l->waited += nr_clock() - start;
	}
	const struct nr_error *e = &s->err;
	if (!e->code) {
		s->state = TAKEN;
		l->next++;
		*out = &s->batch;
	} else if (err && !err->code)
		*err = *e;
	pthread_mutex_unlock(&l->lock);
	return e->code;
}

void nr_loader_give_back(struct nr_loader *l, struct nr_batch *b)
{
	if (!b) return;
	pthread_mutex_lock(&l->lock);
	((struct slot *)b)->state = FREE;
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
}

int64_t nr_loader_batches(const struct nr_loader *l) { return l->batches; }
double nr_loader_waited(const struct nr_loader *l) { return l->waited; }

/* ---- open and close ---- */

void nr_loader_close(struct nr_loader *l)
{
	if (!l) return;
	pthread_mutex_lock(&l->lock);
	__atomic_store_n(&l->stopping, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&l->work);
	pthread_mutex_unlock(&l->lock);
	for (int i = 0; i < l->threads; i++) pthread_join(l->worker[i].thread, NULL);
	for (int i = 0; l->worker && i < l->c.threads; i++) {
		nr_picture_release(&l->worker[i].picture);
		nr_augment_scratch_free(l->worker[i].scratch);
	}
	for (int i = 0; l->slot && i < l->slots; i++) {
		struct nr_batch *b = &l->slot[i].batch;
		if (b->image) nr_slab_free(b->image, l->image_bytes);
		if (b->target) nr_slab_free(b->target, l->target_bytes);
		if (b->extra) nr_slab_free(b->extra, l->extra_bytes);
		free(b->label);
		free(b->index);
	}
	pthread_cond_destroy(&l->ready);
	pthread_cond_destroy(&l->work);
	pthread_mutex_destroy(&l->lock);
	free(l->slot);
	free(l->worker);
	free(l);
}

static int64_t samples(const struct nr_loader_config *c) { return c->count ? c->count : c->source->count[c->split]; }

static int check(const struct nr_loader_config *c, struct nr_error *err)
{
	static const char what[] = "cannot open the loader";
	if ((unsigned)c->split >= NR_SPLITS) return nr_fail(err, NR_EVALUE, what, NULL,
		"there is no split %d", (int)c->split);
	const int64_t all = c->source->count[c->split], count = samples(c);
	if (all < 1)
		return nr_fail(err, NR_EVALUE, what, c->source->of->name,
			"its split '%s' has no samples", nr_split_name(c->split));
	if (count < 1 || (!c->index && count > all) || count > INT32_MAX)
		return nr_fail(err, NR_EVALUE, what, c->source->of->name,
			"%lld samples were requested, but '%s' has %lld", (long long)count,
			nr_split_name(c->split), (long long)all);
	for (int64_t i = 0; c->index && i < count; i++)
		if (c->index[i] < 0 || c->index[i] >= all)
			return nr_fail(err, NR_EVALUE, what, c->source->of->name,
				"sample %d was requested, but '%s' has %lld", (int)c->index[i],
				nr_split_name(c->split), (long long)all);
	if (c->batch < 1 || c->batch > INT32_MAX || c->start < 0 || c->threads < 0 || c->threads > THREADS)
		return nr_fail(err, NR_EVALUE, what, NULL, "batch=%lld, start=%lld, threads=%d: at least 1, 0 and 0; at most %d threads",
			(long long)c->batch, (long long)c->start, c->threads, (int)THREADS);
	if (c->drop_last && count < c->batch)
		return nr_fail(err, NR_EVALUE, what, c->source->of->name,
			"%lld samples do not fill a batch of %lld (use a smaller --batch)", (long long)count,
			(long long)c->batch);
	const double share[] = { c->mix_prob, c->mix_switch, c->smoothing };
	for (int i = 0; i < 3; i++)
		if (!(share[i] >= 0 && share[i] <= 1))
			return nr_fail(err, NR_EVALUE, what, NULL,
				"mix_prob, mix_switch and smoothing must be from 0 to 1");
	if (!(c->mixup >= 0 && c->mixup <= 1000 && c->cutmix >= 0 && c->cutmix <= 1000))
		return nr_fail(err, NR_EVALUE, what, NULL, "mixup and cutmix must be from 0 to 1000");
	if ((c->mixup > 0 || c->cutmix > 0) && c->source->classes < 1)
		return nr_fail(err, NR_EVALUE, what, c->source->of->name, "mixing needs classes, but it has none");
	if ((c->mixup > 0 || c->cutmix > 0) && c->views > 1)
		return nr_fail(err, NR_EVALUE, what, NULL, "mixing is for one view of a picture, but there are %d", c->views);
	if (c->make && (c->mixup > 0 || c->cutmix > 0 || c->views > 0 || c->height < 1 || c->width < 1))
		return nr_fail(err, NR_EVALUE, what, NULL,
			"samples that a task makes itself (%d x %d) have one view and are not mixed", (int)c->height, (int)c->width);
	const struct nr_pixel_stats stats = nr_source_pixel_stats(c->source);
	for (int v = 0; v < c->views; v++)
		if (nr_augment_check(&c->view[v], &stats, err)) return err->code;
	return nr_augment_check(c->augment, &stats, err);
}

static int no_memory(const struct nr_loader *l, struct nr_error *err)
{
	return nr_fail(err, NR_EMEMORY, "cannot open the loader", NULL,
		"out of memory for %d batches of %zu MiB", l->slots,
		l->image_bytes >> 20);
}

static int make_slots(struct nr_loader *l, struct nr_error *err)
{
	const size_t B = (size_t)l->c.batch, soft = (size_t)l->c.source->classes * sizeof(float);
	size_t sample = 0;
	for (int v = 0; v < l->views; v++) sample += (size_t)values(l, v) * sizeof(float);
	if (sample > SIZE_MAX / 2 / B || l->c.extra > SIZE_MAX / 2 / B || soft > SIZE_MAX / 2 / B) return no_memory(l, err);
	l->image_bytes = B * sample;
	l->target_bytes = l->c.mixup > 0 || l->c.cutmix > 0 ? B * soft : 0;
	l->extra_bytes = l->c.make ? B * l->c.extra : 0;
	l->slots = READY_AHEAD + (int)(l->c.held > 1 ? l->c.held : 1);
	if (!(l->slot = calloc((size_t)l->slots, sizeof *l->slot))) return no_memory(l, err);
	for (int i = 0; i < l->slots; i++) {
		struct nr_batch *b = &l->slot[i].batch;
		b->image = nr_slab_make(l->image_bytes);
		b->label = calloc(B, sizeof *b->label);
		b->index = calloc(B, sizeof *b->index);
		if (l->target_bytes) b->target = nr_slab_make(l->target_bytes);
		if (l->extra_bytes) b->extra = nr_slab_make(l->extra_bytes);
		if (!b->image || !b->label || !b->index || (l->target_bytes && !b->target) || (l->extra_bytes && !b->extra))
			return no_memory(l, err);
	}
	return NR_OK;
}

static int start(struct nr_loader *l, struct nr_error *err)
{
	l->worker = calloc((size_t)l->c.threads, sizeof *l->worker);
	if (!l->worker) return no_memory(l, err);
	for (int i = 0; i < l->c.threads; i++) {
		l->worker[i].of = l;
		const int code = nr_augment_scratch_make(&l->worker[i].scratch, err);
		if (code) return code;
	}
	for (; l->threads < l->c.threads; l->threads++) {
		const int e = pthread_create(&l->worker[l->threads].thread, NULL, work, &l->worker[l->threads]);
		if (e) return nr_fail(err, NR_EIO, "cannot start a loader thread", NULL, "%s", strerror(e));
	}
	return NR_OK;
}

int nr_loader_open(struct nr_loader **out, const struct nr_loader_config *c, struct nr_error *err)
{
	*out = NULL;
	int code = check(c, err);
	if (code) return code;
	struct nr_loader *l = calloc(1, sizeof *l);
	if (!l) return nr_fail(err, NR_EMEMORY, "cannot open the loader", NULL, "out of memory");
	l->c = *c;
	l->augment = *c->augment;
	l->c.augment = &l->augment;
	if (l->augment.repeats < 1) l->augment.repeats = 1;
	l->view = c->views > 0 ? c->view : &l->augment;
	l->views = c->views > 0 ? c->views : 1;
	if (!l->c.threads) l->c.threads = 1;
	l->count = samples(c);
	l->batches = c->drop_last ? l->count / c->batch : (l->count + c->batch - 1) / c->batch;
	l->opened = l->next = c->start;
	l->stats = nr_source_pixel_stats(c->source);
	l->channels = nr_augment_channels(&l->augment, &l->stats);
	l->run = c->batch / (4 * l->c.threads);
	l->run = l->run < 1 ? 1 : l->run > 64 ? 64 : l->run;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	pthread_cond_init(&l->ready, NULL);
	code = make_slots(l, err);
	if (!code) code = start(l, err);
	if (code)
		nr_loader_close(l);
	else
		*out = l;
	return code;
}
