/* Archives: see unpack.h. libarchive reads; we write. Its own writer wants paths below the current folder of
 * the process for
 * its checks, which threads share; ours walks from the target's descriptor and opens every part of a path
 * without following
 * links, so that no order of entries leads outside. */
#include "fetch/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { ROOM = 1 << 17, BLOCK = 1 << 16, MAX_PATH = 4096, MAX_DEPTH = 64 };

struct unpack {
	const struct nr_unpack *of;
	struct archive *a;
	int fd;                             /* of the archive */
	int root;                           /* descriptor of the target */
	int64_t bytes, files, max_bytes, max_files, size;
	char *room;
	struct nr_error *err;
};

#define BAD(u, code, ...) \
	nr_fail((u)->err, code, "cannot unpack", (u)->of->archive, __VA_ARGS__)

/* The parts of a path below the target folder, without "." and doubled slashes; NULL with an error if it may
 * not be used. */
static char *clean(struct unpack *u, const char *path, const char *what)
{
	if (!path || !*path || strlen(path) >= MAX_PATH) {
		BAD(u, NR_EFORMAT, "%s has an empty, unreadable or overlong name", what);
		return NULL;
	}
	if (*path == '/' || *path == '\\') {
		BAD(u, NR_EFORMAT, "%s '%.200s' is an absolute path", what, path);
		return NULL;
	}
	char *out = malloc(strlen(path) + 1), *end = out;
	int depth = 0;
	for (size_t n; out && *path; path += n, path += strspn(path, "/")) {
		n = strcspn(path, "/");
		if (n == 0 || (n == 1 && *path == '.')) continue;
		if ((n == 2 && path[0] == '.' && path[1] == '.') || n > 255 || ++depth > MAX_DEPTH) {
			BAD(u, NR_EFORMAT, "%s '%.200s' leaves the folder, or is too deep", what, path);
			free(out);
			return NULL;
		}
		if (end > out) *end++ = '/';
		memcpy(end, path, n);
		end += n;
	}
	if (out) *end = 0;
	else BAD(u, NR_EMEMORY, "out of memory");
	return out;
}

/* Where a symbolic link beside `name` points to must stay below the target. ".." is allowed at its beginning, where the folders are real
 * ones; after a name it could climb out of wherever that name, as another link, leads to. */
static bool link_stays(const char *name, const char *target)
{
	int depth = 0;
	bool named = false;
	if (!target || !*target || *target == '/' || strlen(target) >= MAX_PATH) return false;
	for (const char *s = name; *s; s++) depth += *s == '/';
	for (size_t n; *target; target += n, target += strspn(target, "/")) {
		n = strcspn(target, "/");
		if (n == 0 || (n == 1 && *target == '.')) continue;
		const bool up = n == 2 && target[0] == '.' && target[1] == '.';
		if (up && (named || --depth < 0)) return false;
		named |= !up;
	}
	return true;
}

/* A descriptor of the folder that holds the last part of name; folders on the way are made. *last: that part. */
static int walk(struct unpack *u, char *name, const char **last)
{
	int at = dup(u->root);
	for (char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = 0;
		if (mkdirat(at, name, 0777) && errno != EEXIST) {
			close(at);
			return -1;
		}
		const int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		const int number = errno;
		close(at);
		errno = number;
		at = next;
		*slash = '/';
	}
	*last = name;
	return at;
}

static int tell(struct unpack *u)
{
	if (!u->of->watch.tell) return NR_OK;
	const char *slash = strrchr(u->of->archive, '/');
	if (u->of->watch.tell(u->of->watch.arg, slash ? slash + 1 : u->of->archive, archive_filter_bytes(u->a,
		-1), u->size)) return NR_OK;
	return BAD(u, NR_EIO, "stopped");
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		const ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return k < 0 ? errno : ENOSPC;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

static int copy_data(struct unpack *u, int fd, const char *name)
{
	for (;;) {
		const la_ssize_t n = archive_read_data(u->a, u->room, ROOM);
		if (n < 0) return BAD(u, NR_EFORMAT, "'%.200s': %s", name, archive_error_string(u->a));
		if (n == 0) return NR_OK;
		u->bytes += n;
		if (u->bytes > u->max_bytes)
			return BAD(u, NR_ELIMIT,
				"with '%.200s' it has more than %lld bytes", name, (long long)u->max_bytes);
		const int number = write_all(fd, u->room, (size_t)n);
		if (number) return BAD(u, NR_EIO, "'%.200s': %s", name, strerror(number));
		if (tell(u)) return u->err->code;
	}
}

static int refuse_existing(struct unpack *u, const char *name)
{
	if (errno == EEXIST || errno == ELOOP || errno == ENOTDIR)
		return BAD(u, NR_EFORMAT, "'%.200s' occurs twice, or is inside a file or link", name);
	return BAD(u, NR_EIO, "'%.200s': %s", name, strerror(errno));
}

static int put_file(struct unpack *u, struct archive_entry *entry, int at, const char *last, const char *name)
{
	if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > u->max_bytes - u->bytes)
		return BAD(u, NR_ELIMIT, "'%.200s' claims to have %lld bytes", name,
			(long long)archive_entry_size(entry));
	const int fd = openat(at, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0) return refuse_existing(u, name);
	int e = copy_data(u, fd, name);
	if (close(fd) && !e) e = BAD(u, NR_EIO, "'%.200s': %s", name, strerror(errno));
	return e;
}

/* The part of a path below `inside`; NULL: it is not there. */
static const char *below(const struct unpack *u, const char *path)
{
	const char *inside = u->of->inside ? u->of->inside : "";
	const size_t n = strlen(inside);
	if (!n) return path;
	return !strncmp(path, inside, n) && (path[n] == '/' || !path[n]) ? path + n + (path[n] == '/') : NULL;
}

/* Hard links name an earlier file, which is found the same careful way. Not a symbolic link: it would point elsewhere from here. */
static int put_hard_link(struct unpack *u, int at, const char *last, const char *name, const char *target)
{
	char *from = clean(u, target, "the link to");
	if (!from) return u->err->code;
	char *inner = (char *)(uintptr_t)below(u, from);
	const char *from_last = "";
	const int from_at = inner && *inner ? walk(u, inner, &from_last) : -1;
	int e = NR_OK;
	struct stat st;
	if (from_at < 0) e = BAD(u, NR_EFORMAT, "'%.200s' links to '%.200s', which is not unpacked", name, target);
	else if (!fstatat(from_at, from_last, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode))
		e = BAD(u, NR_EFORMAT, "'%.200s' links to '%.200s', which is not a regular file", name, target);
	else if (linkat(from_at, from_last, at, last, 0)) e = refuse_existing(u, name);
	if (from_at >= 0) close(from_at);
	free(from);
	return e;
}

static int put(struct unpack *u, struct archive_entry *entry, char *name)
{
	const char *last, *hard = archive_entry_hardlink(entry);
	const int at = walk(u, name, &last);
	if (at < 0) return refuse_existing(u, name);
	int e = NR_OK;
	struct stat st;
	switch (hard ? AE_IFREG : archive_entry_filetype(entry)) {
	case AE_IFREG: e = hard ? put_hard_link(u, at, last, name, hard) : put_file(u, entry, at, last, name); break;
	case AE_IFDIR:
		if (mkdirat(at, last, 0777) && (errno != EEXIST || fstatat(at, last, &st,
			AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)))
			e = refuse_existing(u, name);
		break;
	case AE_IFLNK:
		if (!link_stays(name, archive_entry_symlink(entry)))
			e = BAD(u, NR_EFORMAT, "'%.200s' links to '%.200s', outside the folder", name,
				archive_entry_symlink(entry) ? archive_entry_symlink(entry) : "");
		else if (symlinkat(archive_entry_symlink(entry), at, last)) e = refuse_existing(u, name);
		break;
	default: e = BAD(u, NR_EFORMAT, "'%.200s' is a device, a pipe or a socket", name);
	}
	close(at);
	return e;
}

static int one(struct unpack *u, struct archive_entry *entry)
{
	char *name = clean(u, archive_entry_pathname(entry), "the entry");
	if (!name) return u->err->code;
	char *rest = (char *)(uintptr_t)below(u, name);
	int e = NR_OK;
	if (++u->files > u->max_files) e = BAD(u, NR_ELIMIT, "more than %lld entries", (long long)u->max_files);
	else if (rest && *rest) e = put(u, entry, rest);
	free(name);
	return e ? e : tell(u);
}

static struct archive *reader(bool ar)
{
	struct archive *a = archive_read_new();
	if (!a) return NULL;
	archive_read_support_filter_all(a);
	if (ar) archive_read_support_format_ar(a);
	else archive_read_support_format_tar(a), archive_read_support_format_zip(a);
	return a;
}

static int open_archive(struct unpack *u)
{
	u->fd = -1;
	if (!u->a) return BAD(u, NR_EMEMORY, "out of memory");
	if ((u->fd = nr_file_open(u->of->archive, u->err)) < 0) return NR_EIO;
	if (archive_read_open_fd(u->a, u->fd, BLOCK) == ARCHIVE_OK) return NR_OK;
	return BAD(u, NR_EFORMAT, "%s", archive_error_string(u->a));
}

static void close_archive(struct unpack *u)
{
	archive_read_free(u->a);
	if (u->fd >= 0) close(u->fd);
	free(u->room);
}

static int all(struct unpack *u)
{
	struct archive_entry *entry;
	int state;
	int64_t taken = 0;
	while ((state = archive_read_next_header(u->a, &entry)) == ARCHIVE_OK || state == ARCHIVE_WARN) {
		if (one(u, entry)) return u->err->code;
		taken++;
	}
	if (state != ARCHIVE_EOF) return BAD(u, NR_EFORMAT, "%s", archive_error_string(u->a));
	if (!taken) return BAD(u, NR_EFORMAT, "it is empty");
	return NR_OK;
}

int nr_unpack(const struct nr_unpack *o, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct unpack u = { .of = o, .fd = -1, .root = -1, .err = err ? err : &own, .a = reader(false), .room = malloc(ROOM) };
	struct stat st;
	if (!u.room) BAD(&u, NR_EMEMORY, "out of memory");
	else if (stat(o->archive, &st)) nr_fail(u.err, NR_EIO, "cannot read", o->archive, "%s", strerror(errno));
	else if ((u.root = open(o->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		nr_fail(u.err, NR_EIO, "cannot unpack into", o->into, "%s", strerror(errno));
	else if (!open_archive(&u)) {
		u.size = st.st_size;
		u.max_bytes = o->max_bytes ? o->max_bytes : (st.st_size < INT64_MAX / 2200 ? 1100 * st.st_size :
			INT64_MAX / 2) + (64 << 20);
		u.max_files = o->max_files ? o->max_files : 2000000;
		all(&u);
	}
	close_archive(&u);
	if (u.root >= 0) close(u.root);
	return u.err->code;
}

int nr_unpack_member(const char *archive, const char *prefix, const char *to, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_unpack o = { .archive = archive };
	struct unpack u = { .of = &o, .fd = -1, .err = err ? err : &own, .a = reader(true), .room = malloc(ROOM),
		.max_bytes = INT64_MAX };
	struct archive_entry *entry;
	bool found = false;
	if (!u.room) BAD(&u, NR_EMEMORY, "out of memory");
	else if (!open_archive(&u)) {
		while (!found && !u.err->code && archive_read_next_header(u.a, &entry) == ARCHIVE_OK) {
			const char *name = archive_entry_pathname(entry);
			found = name && !strncmp(name, prefix, strlen(prefix)) &&
				archive_entry_filetype(entry) == AE_IFREG;
		}
		const int fd = found ? open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
		if (!found) BAD(&u, NR_EFORMAT, "there is no entry '%s...'", prefix);
		else if (fd < 0) nr_fail(u.err, NR_EIO, "cannot write", to, "%s", strerror(errno));
		else copy_data(&u, fd, prefix);
		if (fd >= 0 && close(fd)) nr_fail(u.err, NR_EIO, "cannot write", to, "%s", strerror(errno));
	}
	close_archive(&u);
	return u.err->code;
}

/* Goes to the regular file of this name, however many "./" lead it. False: it is not there, or the archive is broken. */
static bool seek(struct unpack *u, const char *name)
{
	struct archive_entry *entry;
	int state;
	while ((state = archive_read_next_header(u->a, &entry)) == ARCHIVE_OK || state == ARCHIVE_WARN) {
		char *path = clean(u, archive_entry_pathname(entry), "the entry");
		const bool found = path && !strcmp(path, name) && archive_entry_filetype(entry) == AE_IFREG;
		free(path);
		if (found || u->err->code) return found;
	}
	if (state == ARCHIVE_EOF) BAD(u, NR_EFORMAT, "there is no file '%s'", name);
	else BAD(u, NR_EFORMAT, "%s", archive_error_string(u->a));
	return false;
}

/* What is left of the entry, into *out. */
static int take(struct unpack *u, const char *name, size_t limit, uint8_t **out, size_t *size)
{
	for (size_t room = 0;;) {
		if (*size == room) {
			uint8_t *more = realloc(*out, room = room ? 2 * room : ROOM);
			if (!more) return BAD(u, NR_EMEMORY, "out of memory");
			*out = more;
		}
		const la_ssize_t n = archive_read_data(u->a, *out + *size, room - *size);
		if (n < 0) return BAD(u, NR_EFORMAT, "'%.200s': %s", name, archive_error_string(u->a));
		if (n == 0) return NR_OK;
		*size += (size_t)n;
		if (*size > limit) return BAD(u, NR_ELIMIT, "'%.200s' has more than %zu bytes", name, limit);
	}
}

int nr_unpack_bytes(struct nr_bytes *b, const char *archive, const char *name, size_t limit, struct nr_error *err)
{
	struct nr_error own = { 0 };
	const struct nr_unpack o = { .archive = archive };
	struct unpack u = { .of = &o, .fd = -1, .err = err ? err : &own, .a = reader(false) };
	uint8_t *data = NULL;
	size_t size = 0;
	*b = (struct nr_bytes){ 0 };
	if (!open_archive(&u) && seek(&u, name) && !take(&u, name, limit, &data, &size))
		*b = (struct nr_bytes){ .data = data, .size = size };
	else
		free(data);
	close_archive(&u);
	return u.err->code;
}

static int remove_below(int at, const char *name, int depth)
{
	if (!unlinkat(at, name, 0)) return 0;
	if (errno != EISDIR && errno != EPERM) return errno;
	const int fd = depth < 2 * MAX_DEPTH ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int number = dir ? 0 : errno;
	for (struct dirent *d; !number && (d = readdir(dir));)
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..")) number = remove_below(fd, d->d_name, depth + 1);
	if (dir) closedir(dir);
	else if (fd >= 0) close(fd);
	return number ? number : unlinkat(at, name, AT_REMOVEDIR) ? errno : 0;
}

int nr_remove_tree(const char *path, struct nr_error *err)
{
	const int number = remove_below(AT_FDCWD, path, 0);
	if (!number || number == ENOENT) return NR_OK;
	return nr_fail(err, NR_EIO, "cannot remove", path, "%s", strerror(number));
}
