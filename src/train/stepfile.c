/* Records by step: see stepfile.h. */
#include "train/stepfile.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

struct cut { const char *path, *header; int64_t last; };

static int take(void *arg, char *line, size_t length, int64_t number, struct nr_error *err)
{
	const struct cut *c = arg;
	int64_t step;
	if (number == 1) {
		if (length + 1 == strlen(c->header) && !memcmp(line, c->header, length)) return 1;
		nr_fail(err, NR_EFORMAT,
			"cannot resume", c->path, "its columns are not those of this version");
		return nr_hint(err, "move the file away: the run resumes without it");
	}
	char *comma = memchr(line, ',', length);
	if (comma) *comma = 0;
	if (comma && nr_parse_int(line, &step)) return step <= c->last;
	nr_fail(err, NR_EFORMAT, "cannot read", c->path, "line %lld is not a record", (long long)number);
	return nr_hint(err, "remove this line and those after it");
}

static int cut(struct nr_stepfile *s, const char *header, int64_t last, struct nr_error *err)
{
	int64_t size = 0;
	struct cut c = { s->file.path, header, last };
	FILE *f = nr_file_stream(s->file.path, err);
	if (!f) return NR_EIO;
	const int code = nr_lines_scan(f, s->file.path, take, &c, &size, err);
	fclose(f);
	return code ? code : nr_runfile_cut(&s->file, size, err);
}

int nr_stepfile_open(struct nr_stepfile *s, const char *path, const char *header, bool resume, int64_t step, struct nr_error *err)
{
	*s = (struct nr_stepfile){ .file.fd = -1, .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0) };
	if (!path || !s->plain) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	int code = nr_runfile_open(&s->file, path, err);
	if (!code) code = resume ? cut(s, header, step, err) : nr_runfile_cut(&s->file, 0, err);
	if (!code && !s->file.size) code = nr_runfile_append(&s->file, header, strlen(header), err);
	return code;
}

void nr_stepfile_begin(struct nr_stepfile *s)
{
	s->old = uselocale(s->plain);
	s->text.len = 0;
}

int nr_stepfile_write(struct nr_stepfile *s, struct nr_error *err)
{
	uselocale(s->old);
	if (s->text.failed) return nr_fail(err, NR_EMEMORY, "cannot write", s->file.path, "out of memory");
	return nr_runfile_append(&s->file, s->text.text, s->text.len, err);
}

int nr_stepfile_sync(struct nr_stepfile *s, struct nr_error *err) { return nr_runfile_sync(&s->file, err); }

void nr_stepfile_close(struct nr_stepfile *s)
{
	if (!s->plain) return;                                  /* it was never opened */
	if (s->file.fd >= 0) nr_runfile_close(&s->file);
	nr_str_release(&s->text);
	freelocale(s->plain);
	s->plain = (locale_t)0;
}
