/* Atomic files: see save.h. */
#include "base/save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"

static int refuse(struct nr_save *s, int number, struct nr_error *err)
{
	nr_fail(err, NR_EIO, "cannot write", s->path, "%s", strerror(number));
	if ((number == ENOSPC || number == EDQUOT) && !s->through)
		nr_hint(err, "free some space: the old file, if any, is unchanged");
	nr_save_drop(s);
	return NR_EIO;
}

/* Its lock tells a file that is being written, also on another host, from what a killed process left. */
static void lock_temp(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	fcntl(fd, F_OFD_SETLK, &lock);
}

/* ".name.PID.N.tmp" beside the target. Not mkstemp: its files are private, ours follow the umask. */
static int open_temp(struct nr_save *s)
{
	static atomic_uint serial;
	const char *slash = strrchr(s->path, '/'), *name = slash ? slash + 1 : s->path;
	size_t size = strlen(s->path) + 48;
	s->temp = malloc(size);
	if (!s->temp)
		return -1;
	for (int tries = 0; tries < 100; tries++) {
		snprintf(s->temp, size, "%.*s.%.200s.%ld.%u.tmp", (int)(name - s->path), s->path, name,
			 (long)getpid(), atomic_fetch_add(&serial, 1));
		s->fd = open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (s->fd >= 0 || errno != EEXIST)
			break;
	}
	if (s->fd < 0) {
		free(s->temp);  /* not ours: must not be unlinked */
		s->temp = NULL;
	} else
		lock_temp(s->fd);
	return s->fd;
}

/* The PID in ".name.PID.N.tmp"; 0: it is no such name. */
static long temp_owner(const char *file, const char *name)
{
	const size_t n = strlen(file);
	size_t at = n - 4;
	if (n < 8 || *file != '.' || strcmp(file + at, ".tmp")) return 0;
	for (int part = 0; part < 2; part++) {
		const size_t end = at;
		while (at > 1 && file[at - 1] >= '0' && file[at - 1] <= '9') at--;
		if (at == end || end - at > 10 || at < 2 || file[--at] != '.') return 0;
	}
	if (name && (strlen(name) < 200 ? strlen(name) : 200) != at - 1) return 0;
	return name && strncmp(file + 1, name, at - 1) ? 0 : atol(file + at + 1);
}

void nr_save_sweep(const char *folder, const char *name)
{
	DIR *d = opendir(folder);
	for (const struct dirent *f; d && (f = readdir(d));) {
		char path[PATH_MAX];
		const long owner = temp_owner(f->d_name, name);
		if (!owner || snprintf(path, sizeof path, "%s/%s", folder, f->d_name) >= (int)sizeof path) continue;
		const bool alive = owner == (long)getpid() || !kill((pid_t)owner, 0) || errno != ESRCH;
		if (!alive && !nr_file_locked(path)) unlink(path);
	}
	if (d) closedir(d);
}

/* The folder of a path; the caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* 1 of "/dev/stdout", N of "/dev/fd/N"; -1: none. By name, since such a link may lead to a regular file. */
static int descriptor_of(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	if (!strcmp(path, "/dev/stdout")) return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr")) return STDERR_FILENO;
	for (int i = 0; i < 2; i++) {
		const size_t n = strlen(folders[i]), digits = strncmp(path, folders[i], n) ? 0 : strspn(path + n, "0123456789");
		if (digits && digits < 8 && !path[n + digits]) return atoi(path + n);
	}
	return -1;
}

/* A descriptor is copied, so that it goes on where others of its file stopped. */
static bool open_through(struct nr_save *s)
{
	struct stat st;
	const int given = descriptor_of(s->path);
	const bool special = stat(s->path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode));
	s->through = given >= 0 || special;
	if (given >= 0) s->fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	else if (special) s->fd = open(s->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	return s->through;
}

int nr_save_open(struct nr_save *s, const char *path, struct nr_error *err)
{
	*s = (struct nr_save){ .fd = -1, .path = strdup(path) };
	if (!s->path)
		return nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
	if (open_through(s)) return s->fd < 0 ? refuse(s, errno, err) : NR_OK;
	/* rename would fail late on a folder */
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		nr_fail(err, NR_EIO, "cannot write", path, "it is not a regular file");
		nr_save_drop(s);
		return NR_EIO;
	}
	const char *slash = strrchr(path, '/');
	char *folder = folder_of(path);
	if (folder)
		nr_save_sweep(folder, slash ? slash + 1 : path);
	free(folder);
	return open_temp(s) < 0 ? refuse(s, errno, err) : NR_OK;
}

int nr_save_write(struct nr_save *s, const void *data, size_t n, struct nr_error *err)
{
	const char *p = data;
	while (n) {
		ssize_t k = write(s->fd, p, n < (1u << 30) ? n : 1u << 30);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return refuse(s, k < 0 ? errno : ENOSPC, err);
		p += k;
		n -= (size_t)k;
	}
	return NR_OK;
}

/* The rename itself must survive a power cut. Some file systems cannot sync folders: then there is no more to
 * do. */
static int sync_folder(const char *path)
{
	char *folder = folder_of(path);
	if (!folder)
		return ENOMEM;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int number = fd < 0 || fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
	if (fd >= 0)
		close(fd);
	free(folder);
	return number;
}

int nr_save_close(struct nr_save *s, struct nr_error *err)
{
	if (!s->through && fsync(s->fd) != 0)
		return refuse(s, errno, err);
	int fd = s->fd;
	s->fd = -1;
	if (close(fd) != 0)
		return refuse(s, errno, err);
	if (s->through) {
		nr_save_drop(s);
		return NR_OK;
	}
	if (rename(s->temp, s->path) != 0)
		return refuse(s, errno, err);
	free(s->temp);
	s->temp = NULL;
	int number = sync_folder(s->path);
	if (number)
		return refuse(s, number, err);
	nr_save_drop(s);
	return NR_OK;
}

void nr_save_drop(struct nr_save *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->temp)
		unlink(s->temp);
	free(s->temp);
	free(s->path);
	*s = (struct nr_save){ .fd = -1 };
}

int nr_save_file(const char *path, const void *data, size_t n, struct nr_error *err)
{
	struct nr_save s;
	int e = nr_save_open(&s, path, err);
	if (!e)
		e = nr_save_write(&s, data, n, err);
	return e ? e : nr_save_close(&s, err);
}

int nr_folder_make(const char *path, struct nr_error *err)
{
	char *copy = strdup(path);
	if (!copy) return nr_fail(err, NR_EMEMORY, "cannot make", path, "out of memory");
	for (char *s = copy; *s; s++)
		if (*s == '/' && s > copy) {
			*s = 0;
			mkdir(copy, 0777);
			*s = '/';
		}
	struct stat st;
	int code = NR_OK;
	if (mkdir(copy, 0777) && errno != EEXIST) code = nr_fail(err, NR_EIO, "cannot make", path, "%s", strerror(errno));
	else if (stat(copy, &st) || !S_ISDIR(st.st_mode)) code = nr_fail(err, NR_EIO, "cannot make", path, "a file is in the way");
	free(copy);
	return code;
}
