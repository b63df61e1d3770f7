/* See coco_eval.h. Of each class, the detections of a picture (the 100 best) are matched with its objects once for each range of areas and
 * threshold; then all of the class are counted by falling score. Classes are independent, so threads share them. */
#include "analysis/coco_eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100 };                            /* detections of a picture and class that count */
enum { MATCHED = 1, IGNORED = 2 };

const char *const nr_coco_stat_names[NR_COCO_STATS] = { "AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm",
	"ARl" };
const double nr_coco_ious[NR_COCO_IOUS] = { .5, .55, .6, .65, .7, .75, .8, .85, .8999999999999999, .95 };      /* numpy's linspace */
static const double area_min[NR_COCO_AREAS] = { 0, 0, 32 * 32, 96 * 96 }, area_max[NR_COCO_AREAS] = { 1e10, 32 * 32, 96 * 96, 1e10 };
static const int limits[NR_COCO_LIMITS] = { 1, 10, MOST };

struct found { double score; int64_t class, image, number; };     /* number: of the detection */
struct of_image { int64_t first, count; };                          /* some of a list */
struct job {                                    /* what all threads read */
	const struct nr_objects **truth;        /* in the order of their ids */
	const struct nr_detection *detection;
	const struct found *found;              /* by class, image, falling score */
	int64_t images, *first;                 /* first[k]: where class k begins in `found`; first[classes]: the end */
	bool masks;
	struct nr_coco_result *to;
	double *ap;                             /* (areas, classes): mean precision */
};
/* Of one class, while it is worked on. */
struct kept { double score; int32_t rank; uint8_t flags[NR_COCO_AREAS][NR_COCO_IOUS]; };       /* rank: in its picture */
struct work {
	struct kept *kept;
	int32_t *order, *spare;
	double *iou;                            /* (detections, objects) of a picture */
	int64_t kept_count, kept_room, iou_room;
	const struct nr_object **object;
	int32_t *by_ignored, objects, object_room;
	bool *taken;
	int64_t truths[NR_COCO_AREAS];
};

/* ---- order -------------------------------------------------------------------------------------------------------------------- */

static int by_image_id(const void *a, const void *b)
{
	const struct nr_objects *x = *(const struct nr_objects *const *)a, *y = *(const struct nr_objects *const *)b;
	return (x->image_id > y->image_id) - (x->image_id < y->image_id);
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->class != y->class) return x->class < y->class ? -1 : 1;
	if (x->image != y->image) return x->image < y->image ? -1 : 1;
	if (x->score != y->score) return x->score > y->score ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int64_t image_at(const struct job *j, int64_t id)
{
	const struct nr_objects key = { .image_id = id }, *at = &key;
	const struct nr_objects **f = bsearch(&at, j->truth, (size_t)j->images, sizeof *j->truth, by_image_id);
	return f ? f - j->truth : -1;
}

/* Indices of kept by falling score; equal ones stay as they are. Merges runs of 1, 2, 4, ... */
static void sort_kept(struct work *w)
{
	int32_t *from = w->order, *to = w->spare;
	const int64_t n = w->kept_count;
	for (int64_t i = 0; i < n; i++) from[i] = (int32_t)i;
	for (int64_t run = 1; run < n; run *= 2) {
		for (int64_t low = 0; low < n; low += 2 * run) {
			const int64_t middle = low + run < n ? low + run : n, high = low + 2 * run < n ? low + 2 * run : n;
			for (int64_t a = low, b = middle, k = low; k < high; k++) {
				const bool left = a < middle && (b >= high || !(w->kept[from[b]].score > w->kept[from[a]].score));
				to[k] = from[left ? a++ : b++];
			}
		}
		int32_t *swap = from;
		from = to, to = swap;
	}
	w->order = from, w->spare = to;
}

/* ---- one picture and class ------------------------------------------------------------------------------------------------------ */

/* Room for more than asked, so that there is some for none. */
static bool grow(struct work *w, int64_t kept, int64_t objects)
{
	if (kept >= w->kept_room) {
		const int64_t room = 2 * kept + 1;
		struct kept *more = realloc(w->kept, (size_t)room * sizeof *more);
		int32_t *order = realloc(w->order, (size_t)room * sizeof *order), *spare = realloc(w->spare, (size_t)room * sizeof *spare);
		if (more) w->kept = more;
		if (order) w->order = order;
		if (spare) w->spare = spare;
		if (!more || !order || !spare) return false;
		w->kept_room = room;
	}
	if (objects >= w->object_room) {
		const int64_t room = 2 * objects + 1;
		const struct nr_object **more = realloc(w->object, (size_t)room * sizeof(struct nr_object *));
		int32_t *order = realloc(w->by_ignored, (size_t)room * sizeof *order);
		double *iou = realloc(w->iou, (size_t)room * MOST * sizeof *iou);
		bool *taken = realloc(w->taken, (size_t)room * sizeof *taken);
		if (more) w->object = more;
		if (order) w->by_ignored = order;
		if (iou) w->iou = iou;
		if (taken) w->taken = taken;
		if (!more || !order || !iou || !taken) return false;
		w->object_room = (int32_t)room;
	}
	return true;
}

static bool is_ignored(const struct nr_object *o, int area)
{
	return o->crowd || o->area < area_min[area] || o->area > area_max[area];
}

static double area_of(const struct nr_detection *d, bool masks)
{
	return d->area != 0 ? d->area : masks ? (double)nr_rle_area(d->mask) : d->xywh[2] * d->xywh[3];
}

/* Best detections first, each takes the object that it overlaps most; those that are ignored come last and only for want of others.
 * kept: of these detections, in order of their scores. */
static void match(struct work *w, struct kept *kept, int64_t n, int area, int threshold)
{
	memset(w->taken, 0, (size_t)w->objects * sizeof *w->taken);
	for (int64_t d = 0; d < n; d++) {
		double best = nr_coco_ious[threshold];
		const struct nr_object *hit = NULL;
		int32_t place = -1;
		for (int32_t k = 0; k < w->objects; k++) {
			const int32_t g = w->by_ignored[k];
			const struct nr_object *o = w->object[g];
			if (w->taken[g] && !o->crowd) continue;
			if (hit && !is_ignored(hit, area) && is_ignored(o, area)) break;
			if (w->iou[d * w->objects + g] < best) continue;
			best = w->iou[d * w->objects + g];
			hit = o, place = g;
		}
		if (!hit) continue;
		w->taken[place] = true;
		kept[d].flags[area][threshold] = (uint8_t)((hit->id ? MATCHED : 0) | (is_ignored(hit, area) ? IGNORED : 0));
	}
}

static void score_image(const struct job *j, struct work *w, const struct found *f, int64_t n)
{
	struct kept *kept = w->kept + w->kept_count;
	for (int64_t d = 0; d < n; d++) {
		const struct nr_detection *x = &j->detection[f[d].number];
		kept[d] = (struct kept){ .score = f[d].score, .rank = (int32_t)d };
		for (int32_t g = 0; g < w->objects; g++) {
			const struct nr_object *o = w->object[g];
			w->iou[d * w->objects + g] = j->masks ? nr_rle_iou(x->mask, o->mask, o->crowd) :
				nr_box_iou_xywh(x->xywh, o->xywh, o->crowd);
		}
	}
	for (int a = 0; a < NR_COCO_AREAS; a++) {
		int32_t real = 0;
		for (int32_t g = 0; g < w->objects; g++) real += !is_ignored(w->object[g], a);
		w->truths[a] += real;
		for (int32_t g = 0, first = 0, last = real; g < w->objects; g++)
			w->by_ignored[is_ignored(w->object[g], a) ? last++ : first++] = g;
		for (int t = 0; t < NR_COCO_IOUS; t++) match(w, kept, n, a, t);
		for (int64_t d = 0; d < n; d++) {
			const double area = area_of(&j->detection[f[d].number], j->masks);
			const bool outside = area < area_min[a] || area > area_max[a];
			for (int t = 0; t < NR_COCO_IOUS; t++)
				if (outside && !(kept[d].flags[a][t] & MATCHED)) kept[d].flags[a][t] |= IGNORED;
		}
	}
	w->kept_count += n;
}

/* ---- one class ------------------------------------------------------------------------------------------------------------------ */

/* Precision at the recalls: the highest at any that is as large. Returns the last recall; precision NULL: only that. */
static double count(const struct work *w, int area, int threshold, int limit, double *precision, double *spare)
{
	const double all = (double)w->truths[area];
	double tp = 0, fp = 0;
	int64_t n = 0;
	for (int64_t i = 0; i < w->kept_count; i++) {
		const struct kept *k = &w->kept[w->order[i]];
		if (k->rank >= limit) continue;
		const uint8_t flags = k->flags[area][threshold];
		if (!(flags & IGNORED)) tp += flags & MATCHED ? 1 : 0, fp += flags & MATCHED ? 0 : 1;
		if (precision) spare[2 * n] = tp / all, spare[2 * n + 1] = tp / (fp + tp + 0x1p-52);
		n++;
	}
	if (!precision) return tp / all;
	for (int64_t i = n - 1; i > 0; i--)
		if (spare[2 * i + 1] > spare[2 * i - 1]) spare[2 * i - 1] = spare[2 * i + 1];
	for (int64_t r = 0, i = 0; r < NR_COCO_RECALLS; r++) {
		while (i < n && spare[2 * i] < .01 * (double)r) i++;
		precision[r] = i < n ? spare[2 * i + 1] : 0;
	}
	return tp / all;
}

static double mean(const double *x, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) sum += x[i];
	return sum / (double)n;
}

static void sum_up(const struct job *j, const struct work *w, int32_t class, double *spare)
{
	struct nr_coco_result *to = j->to;
	const int64_t K = to->classes;
	for (int a = 0; a < NR_COCO_AREAS; a++) {
		if (!w->truths[a]) continue;
		double at[NR_COCO_IOUS * NR_COCO_RECALLS] = { 0 };
		for (int t = 0; t < NR_COCO_IOUS; t++)
			for (int m = 0; m < NR_COCO_LIMITS; m++)
				to->recall[((t * K + class) * NR_COCO_AREAS + a) * NR_COCO_LIMITS + m] =
					count(w, a, t, limits[m], limits[m] == MOST ? at + t * NR_COCO_RECALLS : NULL, spare);
		j->ap[a * K + class] = mean(at, NR_COCO_IOUS * NR_COCO_RECALLS);
		for (int t = 0; t < NR_COCO_IOUS && a == 0; t++)
			for (int r = 0; r < NR_COCO_RECALLS; r++) to->precision[(t * NR_COCO_RECALLS + r) * K + class] =
					at[t * NR_COCO_RECALLS + r];
	}
}

static bool score_class(const struct job *j, struct work *w, int32_t class)
{
	struct nr_coco_class *c = &j->to->class[class];
	int64_t at = j->first[class];
	w->kept_count = 0;
	memset(w->truths, 0, sizeof w->truths);
	c->found = j->first[class + 1] - at;
	for (int64_t i = 0; i < j->images; i++) {
		const struct nr_objects *o = j->truth[i];
		const int64_t from = at;
		while (at < j->first[class + 1] && j->found[at].image == i) at++;
		const int64_t n = at - from < MOST ? at - from : MOST;
		if (!grow(w, w->kept_count + n, o->count)) return false;
		w->objects = 0;
		for (int32_t k = 0; k < o->count; k++) {
			if (o->object[k].label != class) continue;
			c->crowds += o->object[k].crowd;
			w->object[w->objects++] = &o->object[k];
		}
		if (n || w->objects) score_image(j, w, j->found + from, n);
	}
	c->truths = w->truths[0];
	double *spare = malloc((size_t)(w->kept_count + 1) * 2 * sizeof *spare);
	if (!spare) return false;
	if (w->kept_count) sort_kept(w);
	sum_up(j, w, class, spare);
	free(spare);
	return true;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------------- */

static double mean_of_known(double sum, int64_t n) { return n ? sum / (double)n : -1; }

/* Mean over classes of what precision says at one threshold. */
static double precision_at(const struct nr_coco_result *to, int t, int32_t class)
{
	double sum = 0;
	const double *p = to->precision + (int64_t)t * NR_COCO_RECALLS * to->classes + class;
	for (int64_t r = 0; r < NR_COCO_RECALLS; r++) sum += p[r * to->classes];
	return sum / NR_COCO_RECALLS;
}

static double recall_at(const struct nr_coco_result *to, int area, int limit, int32_t class)
{
	double sum = 0;
	for (int64_t t = 0; t < NR_COCO_IOUS; t++)
		sum += to->recall[((t * to->classes + class) * NR_COCO_AREAS + area) * NR_COCO_LIMITS + limit];
	return sum / NR_COCO_IOUS;
}

static void fill_stats(const struct job *j)
{
	static const struct { enum nr_coco_stat to; int area, limit; } recalls[] = { { NR_AR1, 0, 0 }, { NR_AR10, 0, 1 },
		{ NR_AR100, 0, 2 },
		{ NR_AR_SMALL, 1, 2 }, { NR_AR_MEDIUM, 2, 2 }, { NR_AR_LARGE, 3, 2 } };
	static const enum nr_coco_stat precisions[NR_COCO_AREAS] = { NR_AP, NR_AP_SMALL, NR_AP_MEDIUM, NR_AP_LARGE };
	struct nr_coco_result *to = j->to;
	double sum[NR_COCO_STATS] = { 0 };
	int64_t known[NR_COCO_STATS] = { 0 };
	for (int32_t k = 0; k < to->classes; k++) {
		struct nr_coco_class *c = &to->class[k];
		const bool counts = j->ap[k] >= 0;
		for (int a = 0; a < NR_COCO_AREAS; a++) {
			const double ap = j->ap[(int64_t)a * to->classes + k];
			if (ap >= 0) sum[precisions[a]] += ap, known[precisions[a]]++;
		}
		for (size_t i = 0; i < sizeof recalls / sizeof *recalls; i++)
			if (j->ap[(int64_t)recalls[i].area * to->classes + k] >= 0)
				sum[recalls[i].to] += recall_at(to, recalls[i].area, recalls[i].limit, k), known[recalls[i].to]++;
		c->ap = j->ap[k];
		c->ap50 = counts ? precision_at(to, 0, k) : -1;
		c->ap75 = counts ? precision_at(to, 5, k) : -1;
		c->ar100 = counts ? recall_at(to, 0, 2, k) : -1;
		if (counts) sum[NR_AP50] += c->ap50, sum[NR_AP75] += c->ap75, known[NR_AP50]++, known[NR_AP75]++;
	}
	for (int i = 0; i < NR_COCO_STATS; i++) to->stat[i] = mean_of_known(sum[i], known[i]);
}

static int check(const struct job *j, const struct nr_detection *d, int64_t n, struct found *found, struct nr_error *err)
{
	const int32_t K = j->to->classes;
	for (int64_t i = 0; i < j->images; i++) {
		const struct nr_objects *o = j->truth[i];
		if (i && j->truth[i - 1]->image_id == o->image_id)
			return nr_fail(err, NR_EVALUE, "cannot score detections", NULL, "there are two pictures %lld",
				(long long)o->image_id);
		for (int32_t k = 0; k < o->count; k++)
			if (o->object[k].label < 0 || o->object[k].label >= K || (j->masks && !o->object[k].mask))
				return nr_fail(err, NR_EVALUE, "cannot score detections", NULL, "object %lld of picture %lld has no %s",
					(long long)o->object[k].id, (long long)o->image_id, o->object[k].label < K ? "mask" : "class");
	}
	for (int64_t i = 0; i < n; i++) {
		found[i] = (struct found){ d[i].score, d[i].label, image_at(j, d[i].image_id), i };
		const char *why = found[i].image < 0 ? "there is no such picture" : d[i].label < 0 || d[i].label >= K ? "it has no class" :
			!isfinite(d[i].score) ? "its score is not finite" : j->masks && !d[i].mask ? "it has no mask" : NULL;
		if (why) return nr_fail(err, NR_EVALUE, "cannot score detections", NULL, "number %lld, of picture %lld: %s",
			(long long)i + 1, (long long)d[i].image_id, why);
	}
	return NR_OK;
}

static void release(struct work *w)
{
	free(w->kept);
	free(w->order);
	free(w->spare);
	free(w->iou);
	free((void *)w->object);
	free(w->by_ignored);
	free(w->taken);
}

static bool score_all(const struct job *j)
{
	const int32_t K = j->to->classes;
	bool *good = calloc((size_t)K, sizeof *good), all = good != NULL;
	if (!good) return false;
#pragma omp parallel
	{
		struct work w = { 0 };
#pragma omp for schedule(dynamic, 1)
		for (int32_t k = 0; k < K; k++) good[k] = score_class(j, &w, k);
		release(&w);
	}
	for (int32_t k = 0; k < K; k++) all = all && good[k];
	free(good);
	return all;
}

static double *minus_one(int64_t n)
{
	double *x = malloc((size_t)n * sizeof *x);
	for (int64_t i = 0; x && i < n; i++) x[i] = -1;
	return x;
}

void nr_coco_result_release(struct nr_coco_result *r)
{
	free(r->class);
	free(r->precision);
	free(r->recall);
	*r = (struct nr_coco_result){ .classes = 0 };
}

int nr_coco_eval(const struct nr_objects *const *truth, int64_t images, const struct nr_detection *d, int64_t n, int32_t classes,
	bool masks, struct nr_coco_result *to, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	*to = (struct nr_coco_result){ .classes = classes };
	if (classes < 1) return nr_fail(slot, NR_EVALUE, "cannot score detections", NULL, "there are %d classes", classes);
	struct found *found = malloc((size_t)(n + 1) * sizeof *found);
	struct job j = { .truth = malloc((size_t)(images + 1) * sizeof(struct nr_objects *)), .detection = d, .found = found,
		.images = images, .masks = masks, .to = to, .first = calloc((size_t)classes + 1, sizeof *j.first),
		.ap = minus_one((int64_t)classes * NR_COCO_AREAS) };
	to->class = calloc((size_t)classes, sizeof *to->class);
	to->precision = minus_one((int64_t)NR_COCO_IOUS * NR_COCO_RECALLS * classes);
	to->recall = minus_one((int64_t)NR_COCO_IOUS * classes * NR_COCO_AREAS * NR_COCO_LIMITS);
	bool room = found && j.truth && j.first && j.ap && to->class && to->precision && to->recall;
	if (room) {
		memcpy((void *)j.truth, (const void *)truth, (size_t)images * sizeof *truth);
		qsort((void *)j.truth, (size_t)images, sizeof *j.truth, by_image_id);
	}
	if (room && !check(&j, d, n, found, slot)) {
		qsort(found, (size_t)n, sizeof *found, by_place);
		for (int64_t i = 0, k = 0; k <= classes; k++) {
			while (i < n && found[i].class < k) i++;
			j.first[k] = i;
		}
		room = score_all(&j);
		if (room) fill_stats(&j);
	}
	if (!room) nr_fail(slot, NR_EMEMORY, "cannot score detections", NULL, "out of memory");
	free(found);
	free((void *)j.truth);
	free(j.first);
	free(j.ap);
	if (slot->code) nr_coco_result_release(to);
	return slot->code;
}
