/* The text before YAML is read and the messages after: see yaml.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

char *nr_yaml_load(const char *path, size_t *size, struct nr_arena *arena, struct nr_error *err)
{
	/* a pipe only where it is asked for: - and the shell's <(...) */
	const bool stream = strcmp(path, "-") == 0 || strncmp(path, "/dev/fd/", 8) == 0;
	int fd = !stream ? nr_file_open(path, err) : path[0] == '-' ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && !stream)
		return NULL;
	char *text = fd < 0 ? NULL : nr_arena_alloc(arena, NR_YAML_MAX_BYTES + 2);
	size_t n = 0;
	ssize_t k = fd < 0 ? -1 : 0;
	/* one byte more than is accepted, so that the parser can tell */
	while (text && n <= NR_YAML_MAX_BYTES && (k = read(fd, text + n, NR_YAML_MAX_BYTES + 1 - n)) != 0) {
		if (k < 0 && errno != EINTR)
			break;
		n += k > 0 ? (size_t)k : 0;
	}
	if (k < 0 || !text)
		nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(k < 0 ? errno : ENOMEM));
	if (fd >= 0)
		close(fd);
	*size = n;
	return k < 0 ? NULL : text;
}

void nr_yaml_errors_text(const struct nr_yaml_errors *all, struct nr_str *s)
{
	for (int i = 0; i < all->count; i++) {
		const struct nr_yaml_error *e = &all->item[i];
		nr_str_printf(s, "%s:%lld:%lld: %s", all->file, (long long)e->line, (long long)e->column,
			      e->text ? e->text : "");
		if (e->hint)
			nr_str_printf(s, " (%s)", e->hint);
		nr_str_printf(s, "\n%5lld | %s\n      | ", (long long)e->line, e->source ? e->source : "");
		/* as many columns as the characters before the place take */
		size_t bytes = 0, columns = 0;
		for (int64_t c = 1; e->source && c < e->column && e->source[bytes]; c++)
			do
				bytes++;
			while ((e->source[bytes] & 0xC0) == 0x80);
		char *before = e->source ? strndup(e->source, bytes) : NULL;
		if (before)
			columns = nr_utf8_width(before);
		free(before);
		nr_str_fill(s, ' ', columns);
		nr_str_add(s, "^\n");
	}
	if (all->more)
		nr_str_printf(s, "%s: more than %d errors: the others are not shown\n", all->file,
			      NR_YAML_MAX_ERRORS);
}
