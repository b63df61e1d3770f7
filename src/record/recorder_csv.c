/* metrics.csv: see recorder_csv.h. */
#include "record/recorder_csv.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "record/runfile.h"

enum { FIXED = 3 };     /* step, epoch, seconds */

static void add_name(struct nr_str *s, const char *name)
{
	if (!strpbrk(name, "\",\r\n")) {
		nr_str_add(s, name);
		return;
	}
	nr_str_add(s, "\"");
	for (; *name; name++) nr_str_add_n(s, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
	nr_str_add(s, "\"");
}

void nr_csv_header(struct nr_str *s, const char *const *columns)
{
	nr_str_add(s, "step,epoch,seconds");
	for (; *columns; columns++) {
		nr_str_add(s, ",");
		add_name(s, *columns);
	}
	nr_str_add(s, "\n");
}

void nr_csv_line(struct nr_str *s, const struct nr_csv_row *r, int count)
{
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;
	nr_str_printf(s, "%lld,%.9g,%.9g", (long long)r->step, r->epoch, r->seconds);
	for (int i = 0; i < count; i++)
		if (r->cell[i].given) nr_str_printf(s, ",%.9g", r->cell[i].value);
		else nr_str_add(s, ",");
	nr_str_add(s, "\n");
	if (!c) return;
	uselocale(old);
	freelocale(c);
}

struct scan {
	const char *path, *header;
	int count;
	struct nr_cell *cell;
	int64_t last, before;       /* last: wanted; before: step of the row before */
	nr_csv_each *each;
	void *arg;
};

static int bad(const struct scan *s, int64_t number, const char *why, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot read", s->path, "line %lld %s", (long long)number, why);
	nr_hint(err, "remove this line and those after it, or start a new run");
	return NR_EFORMAT;
}

/* As nr_parse_double, for which every call makes a locale: here the scan has set it. */
static bool parse(const char *text, double *v)
{
	char *end;
	if (strspn(text, "+-.0123456789eEinfINFaA") != strlen(text)) return false;
	*v = strtod(text, &end);
	return end != text && !*end;
}

/* The cells of numbers need no unquoting. false: too few, too many, or no number. */
static bool split(const struct scan *s, char *line, struct nr_csv_row *row)
{
	for (int i = 0; i < FIXED + s->count; i++) {
		char *end = strchr(line, ',');
		if (!end != (i == FIXED + s->count - 1)) return false;
		if (end) *end = 0;
		double v = 0;
		const bool given = *line;
		if (i == 0 ? !nr_parse_int(line, &row->step) : given && !parse(line, &v)) return false;
		if (i == 1) row->epoch = v;
		else if (i == 2) row->seconds = v;
		else if (i >= FIXED) s->cell[i - FIXED] = (struct nr_cell){ .value = v, .given = given };
		line = end ? end + 1 : NULL;
	}
	return true;
}

static int take(void *arg, char *line, size_t length, int64_t number, struct nr_error *err)
{
	struct scan *s = arg;
	if (number == 1) {
		if (!strncmp(line, s->header, strlen(s->header) - 1) && length == strlen(s->header) - 1) return 1;
		nr_fail(err, NR_EVALUE,
			"cannot resume", s->path, "its columns are not those of this run: %.300s", line);
		nr_hint(err, "resume with its original settings, or start a new run");
		return NR_EVALUE;
	}
	struct nr_csv_row row = { .cell = s->cell };
	if (strlen(line) != length) return bad(s, number, "contains zero bytes", err);
	if (!split(s, line, &row)) return bad(s, number, "is not a record", err);
	if (row.step < s->before) return bad(s, number, "goes back to an earlier step", err);
	if (row.step > s->last) return 0;
	s->before = row.step;
	const int code = s->each ? s->each(s->arg, &row, err) : NR_OK;
	return code ? code : 1;
}

int nr_csv_scan(FILE *f, const char *path, const char *const *columns, int64_t last, nr_csv_each *each, void *arg, int64_t *size,
	struct nr_error *err)
{
	struct nr_str header = { 0 };
	struct scan s = { .path = path, .last = last, .each = each, .arg = arg };
	nr_csv_header(&header, columns);
	while (columns[s.count]) s.count++;
	s.cell = calloc((size_t)s.count + 1, sizeof *s.cell);
	s.header = nr_str_text(&header);
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;
	const int code = s.cell && c && !header.failed ? nr_lines_scan(f, path, take, &s, size, err)
						       : nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	if (c) uselocale(old), freelocale(c);
	free(s.cell);
	nr_str_release(&header);
	return code;
}
