/* Files that only grow: see runfile.h. */
#include "record/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const struct nr_runfile *f, const char *what, int number, struct nr_error *err)
{
	nr_fail(err, NR_EIO, what, f->path, "%s", strerror(number));
	if (number == ENOSPC || number == EDQUOT || number == EFBIG)
		nr_hint(err, "free some space, then use --resume: everything recorded so far is intact");
	return NR_EIO;
}

int nr_runfile_open(struct nr_runfile *f, const char *path, struct nr_error *err)
{
	*f = (struct nr_runfile){ .fd = -1, .path = strdup(path) };
	if (!f->path) return nr_fail(err, NR_EMEMORY, "cannot open", path, "out of memory");
	/* not blocking: a pipe of that name would wait for its reader */
	f->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	struct stat st;
	int code = NR_OK;
	if (f->fd < 0 || fstat(f->fd, &st)) code = refuse(f, "cannot open", errno, err);
	else if (!S_ISREG(st.st_mode)) code = nr_fail(err, NR_EIO, "cannot open", path, "it is not a regular file");
	else f->size = st.st_size;
	if (code) nr_runfile_close(f);
	return code;
}

/* Locks of the open file, not of the process: a fork that closes its copy does not give them up. */
static int take_lock(struct nr_runfile *f, short type, struct nr_error *err)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	if (!fcntl(f->fd, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES)) return NR_OK;  /* or no locks here */
	nr_fail(err, NR_EIO, "cannot write", f->path, "another process is recording into this run");
	nr_hint(err, "wait until it ends, or choose another directory");
	return NR_EIO;
}

int nr_runfile_lock(struct nr_runfile *f, struct nr_error *err) { return take_lock(f, F_WRLCK, err); }
int nr_runfile_share(struct nr_runfile *f, struct nr_error *err) { return take_lock(f, F_RDLCK, err); }

int nr_runfile_append(struct nr_runfile *f, const void *data, size_t n, struct nr_error *err)
{
	const char *p = data;
	for (size_t done = 0; done < n;) {
		const ssize_t k = write(f->fd, p + done, n - done);
		if (k < 0 && errno == EINTR) continue;
		if (k > 0) {
			done += (size_t)k;
			continue;
		}
		const int number = k < 0 ? errno : ENOSPC;
		if (done && ftruncate(f->fd, f->size)) f->size += (int64_t)done;        /* resuming will cut the half record */
		return refuse(f, "cannot write", number, err);
	}
	f->size += (int64_t)n;
	return NR_OK;
}

int nr_runfile_cut(struct nr_runfile *f, int64_t size, struct nr_error *err)
{
	if (size >= f->size) return NR_OK;
	if (ftruncate(f->fd, size)) return refuse(f, "cannot shorten", errno, err);
	f->size = size;
	return NR_OK;
}

/* Some file systems have nothing to sync. */
int nr_runfile_sync(struct nr_runfile *f, struct nr_error *err)
{
	return f->fd < 0 || !fdatasync(f->fd) || errno == EINVAL ? NR_OK : refuse(f, "cannot write", errno, err);
}

void nr_runfile_close(struct nr_runfile *f)
{
	if (f->fd >= 0) close(f->fd);
	free(f->path);
	*f = (struct nr_runfile){ .fd = -1 };
}

int nr_lines_scan(FILE *f, const char *path, nr_line_take *take, void *arg, int64_t *size, struct nr_error *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int code = 1;
	*size = 0;
	for (int64_t number = 1; code > 0; number++) {
		errno = 0;
		n = getline(&line, &room, f);
		if (n < 0 && !feof(f)) code = nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno ? errno : EIO));
		if (n <= 0 || line[n - 1] != '\n') break;
		line[n - 1] = 0;
		code = take(arg, line, (size_t)n - 1, number, err);
		if (code > 0) *size += n;
	}
	free(line);
	return code < 0 ? code : NR_OK;
}
