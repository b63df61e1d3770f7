/* Locks of open files: see lock.h. */
#include "base/lock.h"

#include <fcntl.h>
#include <unistd.h>

bool nr_file_locked(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool held = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
	if (fd >= 0) close(fd);
	return held;
}
