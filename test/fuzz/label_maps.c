/* Fuzzer: a file of names and a label map of any bytes, as a PNG made of them or as they are. Every pixel of what is accepted has a class
 * or does not count. */
#include "base/log.h"
#include "data/dataset.h"
#include "files.h"
#include "picture/picture.h"

enum { H = 2, W = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const char *name, int32_t channels, const uint8_t *bytes, size_t size)
{
	uint8_t pixels[H * W * 3] = { 0 };
	const struct nr_picture p = { .h = H, .w = W, .channels = channels, .pixels = pixels };
	for (size_t i = 0; i < sizeof pixels && size; i++) pixels[i] = bytes[i % size];
	assert(!nr_picture_write_png(&p, fuzz_path(name), NULL));
}

static void look(const struct nr_source *s)
{
	struct nr_picture map = { 0 };
	assert(s->classes > 0 && s->classes <= 255 && s->class_name);
	for (int32_t k = 0; k < s->classes; k++) assert(s->class_name[k]);
	for (int64_t i = 0; i < s->count[NR_TRAIN]; i++)
		if (!nr_source_map(s, NR_TRAIN, i, NULL, &map, NULL))
			for (int64_t k = 0; k < (int64_t)map.h * map.w; k++) assert(map.pixels[k] < s->classes || map.pixels[k] == 255);
	nr_picture_release(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "classes.txt", "labels/a.png", NULL };
	char text[300];
	struct nr_source *s = NULL;
	struct nr_error err = { 0 };
	if (size < 1) return 0;
	const uint8_t *end = memchr(data + 1, 0xff, size - 1);
	nr_log_open(NULL, NR_LOG_ERROR);
	fuzz_clear();
	fuzz_write("images/.x", "", 0);
	fuzz_split(data + 1, size - 1, names);
	if (end == data + 1) unlink(fuzz_path("classes.txt"));          /* no file of names */
	draw("images/a.png", 3, data, 1);
	if (end && data[0] % 3) draw("labels/a.png", data[0] % 3 == 1 ? 1 : 3, end + 1, (size_t)(data + size - end - 1));
	snprintf(text, sizeof text, "labelmaps:path=%s,val=0,ignore=%d", fuzz_folder(), data[0] & 128 ? data[0] & 3 : -1);
	const int e = nr_source_open(&s, text, fuzz_path("cache"), &err);
	assert(e == (int)err.code && (!e || err.detail[0]));
	if (!e) look(s);
	nr_source_close(s);
	return 0;
}
