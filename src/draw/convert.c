/* Drawings in other formats: see convert.h. */
#include "draw/convert.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/save.h"
#include "base/str.h"

static int convert(char *from, char *format, char *to, struct nr_error *err)
{
	char program[] = "rsvg-convert", as[] = "--format", out[] = "--output";
	char *const argv[] = { program, as, format, out, to, from, NULL };
	int state = 0;
	pid_t pid;
	const int number = posix_spawnp(&pid, program, NULL, NULL, argv, environ);
	if (number == ENOENT) {
		nr_fail(err, NR_EIO, "cannot write", to, "rsvg-convert, which turns SVG into %s, is not installed", format);
		return nr_hint(err, "install librsvg2-bin, or write SVG");
	}
	if (number) return nr_fail(err, NR_EIO, "cannot start", program, "%s", strerror(number));
	while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
	return WIFEXITED(state) && WEXITSTATUS(state) == 0 ? NR_OK : nr_fail(err, NR_EIO, "cannot write", to, "rsvg-convert failed");
}

int nr_svg_convert(const char *svg, size_t size, const char *format, const char *path, struct nr_error *err)
{
	struct nr_str from = { 0 }, to = { 0 }, as = { 0 };
	nr_str_printf(&from, "%s.svg", path);
	nr_str_add(&to, path);
	nr_str_add(&as, format);
	int code = from.failed || to.failed || as.failed ? nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory") : NR_OK;
	if (!code) code = nr_save_file(from.text, svg, size, err);
	if (!code) {
		code = convert(from.text, as.text, to.text, err);
		unlink(from.text);
	}
	nr_str_release(&from);
	nr_str_release(&to);
	nr_str_release(&as);
	return code;
}
