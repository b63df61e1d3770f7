/* See detector_eval.h. */
#include "analysis/detector_eval.h"

#include <stdlib.h>
#include <string.h>

#include "graph/comm.h"
#include "math/chunk.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory"); }

void nr_detector_found_release(struct nr_detector_found *f)
{
	for (int64_t i = 0; i < f->count; i++) nr_rle_free(f->item[i].mask);
	free(f->item);
	free(f->truth);
	*f = (struct nr_detector_found){ 0 };
}

/* What is found in a picture, behind what is there. */
static int take(struct nr_detector_runner *r, struct nr_detector_found *f, int64_t place, const struct nr_object_sample *of,
	const struct nr_objects *truth, bool masks, int32_t *count, struct nr_error *err)
{
	if (f->count + r->of->keep > f->room) {
		const int64_t room = 2 * f->room + r->of->keep;
		struct nr_detection *more = realloc(f->item, (size_t)room * sizeof *more);
		if (!more) return out_of_memory(err);
		f->item = more;
		f->room = room;
	}
	const int64_t n = nr_detector_runner_found(r, place, of, truth->image_id, truth->h, truth->w, masks, f->item + f->count, err);
	f->count += n > 0 ? n : 0;
	*count = (int32_t)n;
	return n < 0 ? (int)n : NR_OK;
}

static int batch(struct nr_detector_runner *r, const struct nr_evaluation *e, const struct nr_batch *b, size_t extra, bool masks,
	struct nr_detector_found *f, int64_t first, int32_t *count, struct nr_error *err)
{
	const int64_t pixels = nr_len(r->g.image) / r->batch;
	int code = NR_OK;
	for (int64_t i = 0; i < b->samples; i++)
		nr_detector_runner_put(r, i, b->image + i * pixels, (const void *)((const char *)b->extra + (size_t)i * extra));
	nr_detector_runner_run(r, e->stats);
	for (int64_t i = 0; i < b->samples && !code; i++)
		code = take(r, f, i, (const void *)((const char *)b->extra + (size_t)i * extra), f->truth[first + i], masks,
			count + first + i, err);
	return code;
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------- */

/* What one rank found, on its way: a record for each object, and its mask's runs. */
struct packed { struct nr_detection of; int32_t h, w; int64_t runs; };

static char *pack(const struct nr_detector_found *f, int64_t *bytes)
{
	*bytes = f->count * (int64_t)sizeof(struct packed);
	for (int64_t i = 0; i < f->count; i++) *bytes += f->item[i].mask ? f->item[i].mask->runs * (int64_t)sizeof(uint32_t) : 0;
	char *text = malloc((size_t)*bytes + 1), *at = text;
	for (int64_t i = 0; text && i < f->count; i++) {
		const struct nr_rle *m = f->item[i].mask;
		const struct packed p = { f->item[i], m ? m->h : 0, m ? m->w : 0, m ? m->runs : -1 };
		memcpy(at, &p, sizeof p);
		at += sizeof p;
		if (m) memcpy(at, m->run, (size_t)m->runs * sizeof *m->run);
		at += m ? (size_t)m->runs * sizeof *m->run : 0;
	}
	return text;
}

static int unpack(struct nr_detection *d, char **at, struct nr_error *err)
{
	struct packed p;
	memcpy(&p, *at, sizeof p);
	*at += sizeof p;
	*d = p.of;
	d->mask = NULL;
	if (p.runs < 0) return NR_OK;
	uint32_t *run = malloc((size_t)p.runs * sizeof *run + 1);
	if (!run) return out_of_memory(err);
	memcpy(run, *at, (size_t)p.runs * sizeof *run);
	*at += (size_t)p.runs * sizeof *run;
	d->mask = nr_rle_of_runs(p.h, p.w, run, p.runs, err);
	free(run);
	return d->mask ? NR_OK : (int)err->code;
}

/* Texts of all ranks, each with room for the longest. */
static char *gather(struct nr_comm *comm, const char *mine, int64_t bytes, int64_t *most, struct nr_error *err)
{
	int64_t *size = malloc((size_t)nr_comm_size(comm) * sizeof *size);
	char *all = NULL, *padded = NULL;
	if (size && !nr_comm_gather(comm, &bytes, sizeof bytes, size, err)) {
		*most = 1;
		for (int r = 0; r < nr_comm_size(comm); r++) *most = size[r] > *most ? size[r] : *most;
		all = malloc((size_t)*most * (size_t)nr_comm_size(comm));
		padded = calloc(1, (size_t)*most);
		if (padded) memcpy(padded, mine, (size_t)bytes);
	}
	const bool whole = all && padded && !nr_comm_gather(comm, padded, (size_t)*most, all, err);
	free(size);
	free(padded);
	if (whole) return all;
	free(all);
	if (!err->code) out_of_memory(err);
	return NULL;
}

/* What ranks found by batches of `each`, to all of them, in the order of the pictures; count: of each picture. */
static int share(struct nr_detector_found *f, struct nr_comm *comm, int64_t each, int32_t *count, struct nr_error *err)
{
	int64_t bytes, most = 0, all = 0;
	char *mine = pack(f, &bytes), *texts = mine ? gather(comm, mine, bytes, &most, err) : NULL;
	char **at = malloc((size_t)nr_comm_size(comm) * sizeof *at);
	free(mine);
	int code = texts && at ? nr_comm_spread_batches(comm, f->images, each, sizeof *count, count, err) : out_of_memory(err);
	for (int64_t i = 0; i < f->images && !code; i++) all += count[i];
	struct nr_detection *item = code ? NULL : calloc((size_t)all + 1, sizeof *item);
	if (item) {
		for (int64_t i = 0; i < f->count; i++) nr_rle_free(f->item[i].mask);
		free(f->item);
		f->item = item;
		f->count = 0;
		f->room = all;
		for (int r = 0; r < nr_comm_size(comm); r++) at[r] = texts + r * most;
	} else if (!code) code = out_of_memory(err);
	for (int64_t i = 0; i < f->images && !code; i++) {
		char **from = &at[nr_comm_owner(comm, i / each)];
		for (int32_t k = 0; k < count[i] && !code; k++) code = unpack(&f->item[f->count++], from, err);
	}
	free(at);
	free(texts);
	return code;
}

/* ---- all ------------------------------------------------------------------------------------------------------------------------ */

/* The batches of this rank; f has the pictures. */
static int look(struct nr_detector_runner *r, const struct nr_object_view *view, const struct nr_evaluation *e, bool masks,
	struct nr_detector_found *f, int32_t *count, struct nr_error *err)
{
	const int64_t ranks = nr_comm_size(e->comm), rank = nr_comm_rank(e->comm), batches = (f->images + r->batch - 1) / r->batch;
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .index = e->index, .count = e->count,
		.batch = r->batch, .threads = e->workers, .augment = &e->augment, .make = nr_object_view_make, .maker = view,
		.height = view->size, .width = view->size, .extra = nr_object_bytes(view),
		.share = { .of = ranks, .from = rank, .take = 1 }, .stop = (batches - rank + ranks - 1) / ranks };
	struct nr_loader *loader;
	if (nr_loader_open(&loader, &config, err)) return err->code;
	int code = NR_OK;
	for (int64_t q = rank; q < batches && !code; q += ranks) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		code = batch(r, e, b, config.extra, masks, f, q * r->batch, count, err);
		nr_loader_give_back(loader, b);
		if (!code && e->watch && e->watch(e->context, (q + 1) * r->batch, f->images) && !e->comm) code = 1;
		if (code == 1) f->images = nr_min64((q + 1) * r->batch, f->images);
	}
	nr_loader_close(loader);
	return code || !e->comm ? code : share(f, e->comm, r->batch, count, err);
}

int nr_detector_look(struct nr_detector_runner *r, const struct nr_object_view *view, const struct nr_evaluation *e, bool masks,
	struct nr_detector_found *f, struct nr_error *err)
{
	const int64_t n = e->count ? e->count : e->source->count[e->split];
	*f = (struct nr_detector_found){ .truth = malloc((size_t)(n + 1) * sizeof *f->truth), .images = n };
	int32_t *count = calloc((size_t)n + 1, sizeof *count);
	bool whole = f->truth && count;
	for (int64_t i = 0; whole && i < n; i++)
		whole = (f->truth[i] = nr_source_objects(e->source, e->split, e->index ? e->index[i] : i)) != NULL;
	const int code = whole ? look(r, view, e, masks, f, count, err) : out_of_memory(err);
	free(count);
	return code;
}

int nr_detector_score(const struct nr_detector_found *f, int32_t classes, bool masks, struct nr_detector_score *s, struct nr_error *err)
{
	*s = (struct nr_detector_score){ 0 };
	int code = nr_coco_eval(f->truth, f->images, f->item, f->count, classes, false, &s->box, err);
	if (!code && masks) code = nr_coco_eval(f->truth, f->images, f->item, f->count, classes, true, &s->mask, err);
	return code;
}

void nr_detector_score_release(struct nr_detector_score *s)
{
	nr_coco_result_release(&s->box);
	nr_coco_result_release(&s->mask);
}
