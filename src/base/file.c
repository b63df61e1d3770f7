/* Opening files to read: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

static _Atomic(const struct nr_list *) confines;

void nr_file_confine(const struct nr_list *folders) { confines = folders; }

/* By the path of what is open: a link that is changed meanwhile makes no difference. */
static bool allowed(int fd)
{
	const struct nr_list *below = confines;
	char link[64], path[PATH_MAX];
	if (!below) return true;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof path);
	for (int64_t i = 0; n > 0 && i < below->count; i++) {
		const size_t length = strlen(below->item[i]), most = strcmp(below->item[i], "/") ? length : 0;
		if ((size_t)n > most && !memcmp(path, below->item[i], most) && path[most] == '/') return true;
	}
	return false;
}

int nr_file_open(const char *path, struct nr_error *err)
{
	struct stat st;
	const char *why = NULL;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st)) why = errno == ENXIO ? "it is not a regular file" : strerror(errno);     /* ENXIO: a socket */
	else if (!S_ISREG(st.st_mode)) why = S_ISDIR(st.st_mode) ? strerror(EISDIR) : "it is not a regular file";
	else if (!allowed(fd)) why = "it is a link to a place outside the folder";
	if (!why) return fd;
	nr_fail(err, NR_EIO, "cannot read", path, "%s", why);
	if (fd >= 0) close(fd);
	return -1;
}

FILE *nr_file_stream(const char *path, struct nr_error *err)
{
	const int fd = nr_file_open(path, err);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
	if (fd < 0 || f) return f;
	nr_memory_note_failure();                       /* also where a file that cannot be read is only noted */
	nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	close(fd);
	return NULL;
}

/* Names of what is mapped, for the handler of SIGBUS. A place is taken by its name and becomes visible with its address. */
static struct { atomic_bool taken; _Atomic(const char *) from; size_t size; char *path; } mapped[64];
enum { MAPPED = sizeof mapped / sizeof *mapped };

static void remember(const void *from, size_t size, const char *path)
{
	for (int i = 0; i < MAPPED; i++) {
		if (atomic_exchange(&mapped[i].taken, true)) continue;
		mapped[i].path = strdup(path);
		mapped[i].size = size;
		mapped[i].from = from;
		return;
	}
}

static void forget(const void *from)
{
	for (int i = 0; i < MAPPED; i++) {
		if (mapped[i].from != from) continue;
		mapped[i].from = NULL;
		free(mapped[i].path);
		mapped[i].path = NULL;
		mapped[i].taken = false;
		return;
	}
}

const char *nr_file_mapped_at(const void *address)
{
	for (int i = 0; i < MAPPED; i++) {
		const char *from = mapped[i].from;
		if (from && (uintptr_t)address >= (uintptr_t)from && (uintptr_t)address - (uintptr_t)from < mapped[i].size)
			return mapped[i].path;
	}
	return NULL;
}

int nr_file_map(const void **bytes, size_t *size, const char *path, struct nr_error *err)
{
	struct stat st;
	int code = NR_OK;
	*bytes = NULL;
	*size = 0;
	const int fd = nr_file_open(path, err);
	if (fd < 0) return NR_EIO;
	if (!fstat(fd, &st) && st.st_size > 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED) code = nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
		else remember(*bytes = p, *size = (size_t)st.st_size, path);
	}
	close(fd);
	return code;
}

void nr_file_unmap(const void *p, size_t size)
{
	if (!p) return;
	forget(p);
	munmap((void *)(uintptr_t)p, size);
}

bool nr_file_remote(const char *path)
{
	/* NFS, CIFS, SMB 2, SMB, Lustre, GPFS, BeeGFS, Ceph, AFS, OCFS2, GFS2, FUSE (sshfs, GlusterFS, ...) */
	static const unsigned long shared[] = { 0x6969, 0xFF534D42, 0xFE534D42, 0x517B, 0x0BD00BD0, 0x47504653, 0x19830326, 0x00C36400,
		0x5346414F, 0x7461636F, 0x01161970, 0x65735546 };
	struct statfs fs;
	if (statfs(path, &fs)) return false;
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		if (((unsigned long)fs.f_type & 0xFFFFFFFF) == shared[i]) return true;
	return false;
}
