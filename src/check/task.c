/* Short trainings by a task on made-up pictures: it trains, the loss is finite, and neither the number of threads nor a stop in between
 * changes a bit of the weights. */
#include <omp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "check/check.h"
#include "norma/plugin.h"
#include "norma/trainer.h"

/* ---- the pictures: a bright band whose height is the class ------------------------------------------------------------- */

enum { SIDE = 16, CLASSES = 4, TRAIN = 48, TEST = 8, STEPS = 6, STOP = 3 };

static int open_pictures(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	(void)dir, (void)conf, (void)err;
	s->count[NR_TRAIN] = TRAIN, s->count[NR_TEST] = TEST;
	s->classes = CLASSES, s->channels = 1, s->h = s->w = SIDE;
	s->mean[0] = 0.3F, s->std[0] = 0.4F;
	return NR_OK;
}
static int get_picture(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	(void)s, (void)split;
	if (nr_picture_resize(p, SIDE, SIDE, 1, err)) return err ? (int)err->code : NR_EMEMORY;
	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++) p->pixels[y * SIDE + x] = (uint8_t)(y / 4 == i % CLASSES ? 200 + i % 50 : (x * i) % 40);
	return NR_OK;
}
static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	(void)s, (void)split;
	return (int32_t)(i % CLASSES);
}
/* The band is the class of its pixels; a row has none. */
static int get_map(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	(void)s, (void)split;
	if (nr_picture_resize(p, SIDE, SIDE, 1, err)) return err ? (int)err->code : NR_EMEMORY;
	for (int y = 0; y < SIDE; y++) memset(p->pixels + y * SIDE, y == SIDE - 1 ? NR_NO_CLASS : y / 4 == i % CLASSES, SIDE);
	return NR_OK;
}
static const struct nr_dataset pictures = { .name = "made-up-pictures", .title = "bands, for norma check", .cite = "none",
	.licence = "none", .facts = "48 / 8, 16 x 16 grey, 4 classes", .kind = NR_PICTURES,
	.open = open_pictures, .get = get_picture, .label = label, .map = get_map };

static int have_pictures(struct nr_error *err)
{
	if (nr_dataset_find(pictures.name, &(struct nr_error){ 0 })) return NR_OK;
	return nr_register(&(struct nr_plugin){ NR_PLUGIN_HEAD, .datasets = NR_LIST(nr_dataset, &pictures) }, err);
}

/* ---- a training ----------------------------------------------------------------------------------------------------------- */

struct trial {
	const struct nr_task *task;
	struct nr_arena *arena;
	const char *dir;
	struct nr_train_result result;
};

static int stop_at(void *context, const struct nr_train_result *r, double rate, const char *note)
{
	(void)rate, (void)note;
	return r->step >= *(const int64_t *)context;
}

static int train(struct trial *t, const char *name, int threads, int64_t stop, bool resume, struct nr_error *err)
{
	struct nr_train c;
	struct nr_trainer *trainer;
	if (nr_train_init(&c, t->task->name, err)) return err->code;
	c.data = nr_arena_strdup(t->arena, pictures.name);
	c.data_root = nr_arena_strdup(t->arena, t->dir);
	c.model = nr_arena_strdup(t->arena, "vit:image=16,patch=8,dim=16,depth=1,heads=2");
	c.out = nr_arena_printf(t->arena, "%s/%s", t->dir, name);
	c.steps = STEPS, c.batch = 8, c.warmup = 0, c.resume = resume;
	omp_set_num_threads(threads);
	int code = nr_trainer_open(&trainer, &c, "norma check", err);
	if (!code) {
		code = nr_trainer_run(trainer, &(struct nr_train_watch){ stop_at, &stop }, &t->result, err);
		nr_trainer_close(trainer);
	}
	omp_set_num_threads(2);
	return code;
}

/* The values of two files, whatever their headers say. */
static bool equal_weights(struct trial *t, const char *a, const char *b)
{
	FILE *f[2];
	const char *name[] = { a, b };
	bool same = true;
	for (int i = 0; i < 2; i++) {
		const char *path = nr_arena_printf(t->arena, "%s/%s/model.safetensors", t->dir, name[i]);
		uint64_t header;
		f[i] = path ? fopen(path, "rbe") : NULL;
		same &= f[i] && fread(&header, sizeof header, 1, f[i]) == 1 && !fseek(f[i], (long)header, SEEK_CUR);
	}
	for (int c = 0; same && c != EOF;) same = (c = getc(f[0])) == getc(f[1]);
	for (int i = 0; i < 2; i++)
		if (f[i]) fclose(f[i]);
	return same;
}

/* Of a run that fails the message is the finding. */
static bool tries(struct nr_checker *k, struct trial *t, enum nr_check_kind kind, const char *name, int threads, int64_t stop, bool resume)
{
	struct nr_error err = { 0 };
	char text[1024];
	if (!train(t, name, threads, stop, resume, &err)) return true;
	nr_check_tell(k, kind, false, "%.240s", nr_error_text(&err, text, sizeof text));
	return false;
}

static void check(struct nr_checker *k, struct trial *t)
{
	if (!tries(k, t, NR_CHECK_BUILDS, "one", 1, STEPS, false)) return;
	nr_check_tell(k, NR_CHECK_BUILDS, t->result.step == STEPS, "it ended after %d steps", (int)t->result.step);
	const bool evaluated = t->result.best_step > 0;
	nr_check_tell(k, NR_CHECK_FINITE, evaluated && isfinite(t->result.train_loss),
		evaluated ? "its loss is not finite" : "it was not evaluated");
	for (int threads = 2; threads <= 3; threads++) {
		const char *name = threads == 2 ? "two" : "three";
		if (tries(k, t, NR_CHECK_THREADS, name, threads, STEPS, false))
			nr_check_tell(k, NR_CHECK_THREADS, equal_weights(t, "one", name), "%d threads change bits", threads);
	}
	if (tries(k, t, NR_CHECK_RESUME, "stopped", 2, STOP, false) && tries(k, t, NR_CHECK_RESUME, "stopped", 2, STEPS, true))
		nr_check_tell(k, NR_CHECK_RESUME, equal_weights(t, "one", "stopped"), "resuming changes bits");
}

int nr_check_task(struct nr_checker *k, const struct nr_task *task, const char *dir, struct nr_error *err)
{
	const struct nr_subject s = { .name = task->name };
	struct trial t = { .task = task, .arena = nr_arena_make(), .dir = dir };
	if (task->kind != NR_PICTURES) {
		nr_arena_free(t.arena);
		return nr_fail(err, NR_EUSAGE, "cannot check the task", task->name, "only pictures are made up here");
	}
	k->subject = &s, k->at = NULL;
	int code = t.arena ? have_pictures(err) : nr_fail(err, NR_EMEMORY, "cannot check the task", task->name, "out of memory");
	if (!code) check(k, &t);
	nr_arena_free(t.arena);
	k->subject = NULL;
	return code;
}
