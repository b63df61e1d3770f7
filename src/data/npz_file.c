/* NPZ: a zip whose members are NPY files; libarchive reads it, stored or deflated. See npy.h. */
#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "data/npy.h"

enum { CHUNK = 1 << 20 };
static const size_t MOST = (size_t)1 << 36;

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

/* The size in the header is only a first guess: memory grows with what really comes. */
static int read_all(struct archive *a, struct archive_entry *entry, struct nr_bytes *to, const char *path,
	struct nr_error *err)
{
	size_t room = CHUNK, used = 0;
	if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0 &&
		archive_entry_size(entry) < (int64_t)1 << 28)
		room = (size_t)archive_entry_size(entry) + 1;
	char *data = malloc(room);
	for (la_ssize_t n = 1; data && n > 0; used += n > 0 ? (size_t)n : 0) {
		if (used == room) {
			char *more = room < MOST ? realloc(data, room *= 2) : NULL;
			if (!more) break;
			data = more;
		}
		n = archive_read_data(a, data + used, room - used);
		if (n == 0) {
			*to = (struct nr_bytes){ .data = (const uint8_t *)data, .size = used };
			return NR_OK;
		}
		if (n < 0) {
			nr_fail(err, NR_EFORMAT, "cannot read", path, "%s: %s", archive_entry_pathname(entry),
				archive_error_string(a));
			free(data);
			return NR_EFORMAT;
		}
	}
	free(data);
	return nr_fail(err, NR_EMEMORY, "cannot read", path, "%s does not fit into memory",
		archive_entry_pathname(entry));
}

int nr_npz_read(struct nr_npy *n, const char *path, const char *name, bool *there, struct nr_error *err)
{
	*n = (struct nr_npy){ 0 };
	*there = false;
	int fd;
	struct archive *a = open_zip(path, &fd, err);
	if (!a) return NR_EFORMAT;
	struct archive_entry *entry;
	int state, e = NR_OK;
	char buf[256];
	while (!*there && (state = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		const char *member = stem(entry, buf, sizeof buf);
		if (!member || strcmp(member, name)) continue;
		*there = true;
		e = read_all(a, entry, &n->file, path, err);
	}
	if (!*there && state != ARCHIVE_EOF) e = nr_fail(err, NR_EFORMAT, "cannot read", path, "%s",
		archive_error_string(a));
	close_zip(a, fd);
	if (e || !*there) return e;
	struct nr_str label = { 0 };
	struct nr_error inner = { 0 };
	nr_str_printf(&label, "%s: %s.npy", path, name);
	e = nr_npy_parse(&n->array, n->file.data, n->file.size, nr_str_text(&label), &inner);
	n->array.name = NULL;
	nr_str_release(&label);
	if (e) {
		if (err) *err = inner;
		nr_npy_close(n);
	}
	return e;
}
