/* TensorBoard event files: see tensorboard.h. */
#include "record/tensorboard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/str.h"
#include "record/recorder.h"

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
enum { MAX_RECORD = 16 << 20 };         /* ours have a few hundred bytes */

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

static void add_little(struct nr_str *s, uint64_t v, int bytes)
{
	char b[8];
	for (int i = 0; i < bytes; i++) b[i] = (char)(v >> 8 * i & 0xFF);
	nr_str_add_n(s, b, (size_t)bytes);
}

static void add_varint(struct nr_str *s, uint64_t v)
{
	for (; v >= 0x80; v >>= 7) add_little(s, (v & 0x7F) | 0x80, 1);
	add_little(s, v, 1);
}

static void add_tag(struct nr_str *s, unsigned field, unsigned wire) { add_varint(s, field << 3 | wire); }

static void add_double(struct nr_str *s, unsigned field, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, 8);
	add_tag(s, field, WIRE_64);
	add_little(s, bits, 8);
}

static void add_float(struct nr_str *s, unsigned field, float v)
{
	uint32_t bits;
	memcpy(&bits, &v, 4);
	add_tag(s, field, WIRE_32);
	add_little(s, bits, 4);
}

static void add_bytes(struct nr_str *s, unsigned field, const char *data, size_t n)
{
	add_tag(s, field, WIRE_BYTES);
	add_varint(s, n);
	nr_str_add_n(s, data, n);
}

/* Moves a message into its frame at the end of to. */
static void add_frame(struct nr_str *to, struct nr_str *message)
{
	const size_t at = to->len;
	add_little(to, message->len, 8);
	if (!to->failed) add_little(to, nr_crc32c_mask(nr_crc32c(0, to->text + at, 8)), 4);
	nr_str_add_n(to, nr_str_text(message), message->len);
	add_little(to, nr_crc32c_mask(nr_crc32c(0, nr_str_text(message), message->len)), 4);
	if (message->failed) to->failed = true;
	nr_str_release(message);
}

void nr_tb_begin(struct nr_str *s, double wall)
{
	struct nr_str event = { 0 };
	add_double(&event, 1, wall);
	add_bytes(&event, 3, "brain.Event:2", 13);
	add_frame(s, &event);
}

void nr_tb_scalars(struct nr_str *s, double wall, int64_t step, const struct nr_metric *m, int count)
{
	struct nr_str event = { 0 }, summary = { 0 }, value = { 0 };
	for (int i = 0; i < count; i++) {
		value.len = 0;
		add_bytes(&value, 1, m[i].name, strlen(m[i].name));
		add_float(&value, 2, (float)m[i].value);
		add_bytes(&summary, 1, nr_str_text(&value), value.len);
	}
	add_double(&event, 1, wall);
	add_tag(&event, 2, WIRE_VARINT);
	add_varint(&event, (uint64_t)step);
	add_bytes(&event, 5, nr_str_text(&summary), summary.len);
	event.failed |= summary.failed || value.failed;
	nr_str_release(&value);
	nr_str_release(&summary);
	add_frame(s, &event);
}

/* ---- reading: frames and steps only ------------------------------------------------------------------------------------ */

static uint64_t little(const unsigned char *p, int bytes)
{
	uint64_t v = 0;
	for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static bool take_varint(const unsigned char **p, const unsigned char *end, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 64 && *p < end; shift += 7) {
		const unsigned char b = *(*p)++;
		*v |= (uint64_t)(b & 0x7F) << shift;
		if (b < 0x80) return true;
	}
	return false;
}

/* The step of an Event, 0 if it has none; false if it is no message. */
static bool step_of(const unsigned char *p, size_t n, int64_t *step)
{
	const unsigned char *const end = p + n;
	*step = 0;
	while (p < end) {
		uint64_t tag, v = 0;
		if (!take_varint(&p, end, &tag)) return false;
		switch (tag & 7) {
		case WIRE_VARINT:
			if (!take_varint(&p, end, &v)) return false;
			if (tag >> 3 == 2) *step = (int64_t)v;
			v = 0;
			break;
		case WIRE_64: v = 8; break;
		case WIRE_32: v = 4; break;
		case WIRE_BYTES:
			if (!take_varint(&p, end, &v)) return false;
			break;
		default: return false;
		}
		if (v > (uint64_t)(end - p)) return false;
		p += v;
	}
	return true;
}

static bool sum_is(const unsigned char *data, size_t n, const unsigned char *stored)
{
	return nr_crc32c_mask(nr_crc32c(0, data, n)) == little(stored, 4);
}

struct frame { unsigned char *data; size_t room; int64_t step; bool damaged; };

static bool make_room(struct frame *b, size_t n)
{
	unsigned char *grown = n <= b->room ? b->data : realloc(b->data, n);
	if (grown && n > b->room) b->room = n;
	if (grown) b->data = grown;
	return grown;
}

/* Reads one frame: its bytes, 0 at the end, at a cut or a damaged one, or an error. */
static int64_t read_frame(FILE *f, struct frame *b)
{
	unsigned char head[12];
	b->damaged = false;
	if (fread(head, 1, 12, f) != 12) return 0;
	const uint64_t n = little(head, 8);
	b->damaged = !sum_is(head, 8, head + 8) || n > MAX_RECORD;
	if (b->damaged) return 0;
	if (!make_room(b, (size_t)n + 4)) return NR_EMEMORY;
	if (fread(b->data, 1, (size_t)n + 4, f) != n + 4) return 0;
	b->damaged = !sum_is(b->data, (size_t)n, b->data + n) || !step_of(b->data, (size_t)n, &b->step);
	return b->damaged ? 0 : (int64_t)n + 16;
}

int nr_tb_scan(FILE *f, const char *path, int64_t last, int64_t *size, bool *damaged, struct nr_error *err)
{
	struct frame b = { 0 };
	int64_t n;
	*size = 0;
	while ((n = read_frame(f, &b)) > 0 && b.step <= last) *size += n;
	int code = NR_OK;
	if (n < 0) code = nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	else if (ferror(f)) code = nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
	*damaged = b.damaged;
	free(b.data);
	return code;
}
