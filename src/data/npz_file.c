/* NPZ: a zip whose members are NPY files; libarchive reads it, stored or deflated. See npy.h. */
#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/npy.h"

enum { CHUNK = 1 << 20, HEADER = 1 << 16 };

static void close_zip(struct archive *a, int fd)
{
	archive_read_free(a);
	close(fd);
}

static struct archive *open_zip(const char *path, int *fd, struct nr_error *err)
{
	*fd = nr_file_open(path, err);
	if (*fd < 0) return NULL;
	struct archive *a = archive_read_new();
	if (a) archive_read_support_format_zip(a);
	if (a && archive_read_open_fd(a, *fd, 1 << 16) == ARCHIVE_OK) return a;
	nr_fail(err, NR_EFORMAT, "cannot read", path, "%s", a ? archive_error_string(a) : "out of memory");
	close_zip(a, *fd);
	return NULL;
}

/* The member's name without ".npy"; NULL: it is something else. Valid until the next call. */
static const char *stem(struct archive_entry *entry, char *buf, size_t size)
{
	const char *name = archive_entry_pathname(entry);
	const size_t n = name ? strlen(name) : 0;
	if (n < 5 || n - 4 >= size || strcmp(name + n - 4, ".npy")) return NULL;
	memcpy(buf, name, n - 4);
	buf[n - 4] = 0;
	return buf;
}

int nr_npz_names(const char *path, void (*tell)(void *arg, const char *name), void *arg, struct nr_error *err)
{
	int fd;
	struct archive *a = open_zip(path, &fd, err);
	if (!a) return NR_EFORMAT;
	struct archive_entry *entry;
	int state;
	while ((state = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		char buf[256];
		const char *name = stem(entry, buf, sizeof buf);
		if (name) tell(arg, name);
	}
	const int e = state == ARCHIVE_EOF ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", path, "%s",
		archive_error_string(a));
	close_zip(a, fd);
	return e;
}

/* Reads until there are n bytes or the member ends. Memory grows with what really comes, whatever is promised. */
static int read_up_to(struct archive *a, struct nr_bytes *to, size_t *room, size_t n, const char *member, struct nr_error *err)
{
	char *data = (char *)(uintptr_t)to->data;
	for (la_ssize_t k = 1; to->size < n && k > 0; to->size += k > 0 ? (size_t)k : 0) {
		if (to->size == *room) {
			*room = *room < CHUNK ? CHUNK : 2 * *room;
			char *more = realloc(data, *room);
			if (!more) return nr_fail(err, NR_EMEMORY, "cannot read", member, "it does not fit into memory");
			to->data = (const uint8_t *)(data = more);
		}
		const size_t most = *room < n ? *room : n;
		k = archive_read_data(a, data + to->size, most - to->size);
		if (k < 0) return nr_fail(err, NR_EFORMAT, "cannot read", member, "%s", archive_error_string(a));
	}
	return NR_OK;
}

/* First the header, which says how much must follow; what has more is refused before it is read. */
static int read_member(struct archive *a, struct nr_npy *n, const char *member, struct nr_error *err)
{
	size_t room = 0, start;
	int e = read_up_to(a, &n->file, &room, HEADER, member, err);
	if (!e) e = nr_npy_head(&n->array, n->file.data, n->file.size, &start, member, err);
	if (!e) e = nr_memory_check((double)n->array.bytes, "cannot read", member, err);
	if (!e) e = read_up_to(a, &n->file, &room, start + n->array.bytes + 1, member, err);
	return e ? e : nr_npy_parse(&n->array, n->file.data, n->file.size, member, err);
}

int nr_npz_read(struct nr_npy *n, const char *path, const char *name, bool *there, struct nr_error *err)
{
	struct nr_error own = { 0 };
	int fd, state = ARCHIVE_OK, e = NR_OK;
	*n = (struct nr_npy){ 0 };
	*there = false;
	struct archive *a = open_zip(path, &fd, err = err ? err : &own);
	if (!a) return NR_EFORMAT;
	struct archive_entry *entry;
	char buf[256];
	while (!*there && (state = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		const char *member = stem(entry, buf, sizeof buf);
		if (!member || strcmp(member, name)) continue;
		*there = true;
		struct nr_str label = { 0 };
		nr_str_printf(&label, "%s: %s.npy", path, name);
		e = read_member(a, n, nr_str_text(&label), err);
		n->array.name = NULL;
		nr_str_release(&label);
	}
	if (!*there && state != ARCHIVE_EOF) e = nr_fail(err, NR_EFORMAT, "cannot read", path, "%s", archive_error_string(a));
	close_zip(a, fd);
	if (e) nr_npy_close(n);
	return e;
}
