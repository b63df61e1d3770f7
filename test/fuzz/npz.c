/* Fuzzer: any bytes as an NPZ file, also through the data set. */
#include "data/npy.h"
#include "files.h"
#include "norma/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *arg, const char *name)
{
	assert(*name || !*name);
	++*(int *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_npy n;
	struct nr_error err = { 0 };
	bool there;
	int members = 0;
	char text[600];
	fuzz_write("a.npz", data, size);
	nr_npz_names(fuzz_path("a.npz"), count, &members, NULL);
	const int e = nr_npz_read(&n, fuzz_path("a.npz"), "x_train", &there, &err);
	assert(!e == !err.code);
	if (!e && there) {
		assert(n.array.bytes <= n.file.size);
		nr_npy_close(&n);
	}
	struct nr_source *s;
	struct nr_picture p = { 0 };
	snprintf(text, sizeof text, "npz:path=%s", fuzz_path("a.npz"));
	if (!nr_source_open(&s, text, fuzz_folder(), NULL)) {
		for (int64_t i = 0; i < s->count[NR_TRAIN] && i < 4; i++) nr_source_get(s, NR_TRAIN, i, &p, NULL, NULL);
		nr_source_close(s);
	}
	nr_picture_release(&p);
	return 0;
}
