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

/* Goes to the member; false: it is not there, or an error. */
static bool find_member(struct archive *a, const char *path, const char *name, struct nr_error *err)
{
	struct archive_entry *entry;
	char buf[256];
	int state;
	while ((state = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		const char *member = stem(entry, buf, sizeof buf);
		if (member && !strcmp(member, name)) return true;
	}
	if (state != ARCHIVE_EOF) nr_fail(err, NR_EFORMAT, "cannot read", path, "%s", archive_error_string(a));
	return false;
}

int nr_npz_read(struct nr_npy *n, const char *path, const char *name, bool *there, struct nr_error *err)
{
	struct nr_error own = { 0 };
	int fd;
	*n = (struct nr_npy){ 0 };
	*there = false;
	struct archive *a = open_zip(path, &fd, err = err ? err : &own);
	if (!a) return NR_EFORMAT;
	*there = find_member(a, path, name, err);
	int e = *there ? NR_OK : (int)err->code;
	if (*there) {
		struct nr_str label = { 0 };
		nr_str_printf(&label, "%s: %s.npy", path, name);
		e = read_member(a, n, nr_str_text(&label), err);
		n->array.name = NULL;
		nr_str_release(&label);
	}
	close_zip(a, fd);
	if (e) nr_npy_close(n);
	return e;
}

/* What is left of the header's piece comes first. */
static int read_rows(struct archive *a, struct nr_bytes *head, const char *path, const struct nr_npz_rows *rows, struct nr_error *err)
{
	struct nr_st_tensor array;
	size_t room = 0, start;
	if (read_up_to(a, head, &room, HEADER, path, err) || nr_npy_head(&array, head->data, head->size, &start, path, err) ||
		rows->check(rows->context, &array, err))
		return err->code;
	const int64_t count = array.nd ? array.shape[0] : 0;
	const size_t each = count ? array.bytes / (size_t)count : 0;
	uint8_t *row = malloc(each + 1);
	size_t have = 0, left = head->size - start;
	const uint8_t *from = head->data + start;
	int e = row ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	for (int64_t i = 0; !e && i < count; i++, have = 0) {
		const size_t some = left < each ? left : each;
		memcpy(row, from, some);
		from += some, left -= some, have = some;
		while (!e && have < each) {
			const la_ssize_t k = archive_read_data(a, row + have, each - have);
			if (k > 0) have += (size_t)k;
			else e = nr_fail(err, NR_EFORMAT, "cannot read", path, "%s", k ? archive_error_string(a) : "it ends too early");
		}
		if (!e) rows->take(rows->context, i, row);
	}
	free(row);
	return e;
}

int nr_npz_read_rows(const char *path, const char *name, const struct nr_npz_rows *rows, struct nr_error *err)
{
	int fd;
	struct nr_bytes head = { 0 };
	struct archive *a = open_zip(path, &fd, err);
	if (!a) return NR_EFORMAT;
	int e = NR_OK;
	if (!find_member(a, path, name, err))
		e = err->code ? (int)err->code : nr_fail(err, NR_EFORMAT, "cannot read", path, "it has no array '%s'", name);
	if (!e) e = read_rows(a, &head, path, rows, err);
	close_zip(a, fd);
	free((void *)(uintptr_t)head.data);
	return e;
}
