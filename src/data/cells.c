/* See cells.h. */
#include "data/cells.h"

#include <stdbool.h>

static char *bad(const struct nr_cells *c, const char *what, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot read", c->name, "line %lld: %s", (long long)c->line, what);
	return NULL;
}

/* The next cell, unquoted in place. *last: it ended its row. */
static char *next(struct nr_cells *c, bool *last, struct nr_error *err)
{
	char *from = c->at, *to = c->at, *const start = c->at;
	if (c->separator == ',' && *from == '"') {
		for (from++; *from; from++) {
			if (*from == '"' && from[1] != '"') break;
			if (*from == '"') from++;
			c->line += *from == '\n';
			*to++ = *from;
		}
		const bool closed = *from == '"';
		if (closed) from++;
		if (!closed) return bad(c, "a quote is not closed", err);
		if (*from && *from != ',' && *from != '\n' && !(*from == '\r' && (from[1] == '\n' || !from[1])))
			return bad(c, "text follows a closing quote", err);
	}
	while (*from && *from != c->separator && *from != '\n') *to++ = *from++;
	if (from > start && from[-1] == '\r' && to > start) to--;
	*last = *from != c->separator;
	c->at = *from ? from + 1 : from;
	*to = 0;
	return start;
}

int nr_cells_row(struct nr_cells *c, char **cell, int most, struct nr_error *err)
{
	int n = 0;
	c->line++;
	for (bool last = false; !last; n++) {
		char *text = next(c, &last, err);
		if (!text) return -1;
		if (n == most) {
			nr_fail(err, NR_EFORMAT, "cannot read", c->name, "line %lld: more than %d columns", (long long)c->line, most);
			return -1;
		}
		cell[n] = text;
	}
	return n;
}

int nr_cells_below(struct nr_cells *c, char **cell, int most, int columns, struct nr_error *err)
{
	while (*c->at) {
		const int n = nr_cells_row(c, cell, most, err);
		if (n < 0) return -1;
		if (n == 1 && !*cell[0]) continue;
		if (n == columns) return 1;
		nr_fail(err, NR_EFORMAT, "cannot read", c->name, "line %lld has %d columns, but the header line has %d",
			(long long)c->line, n, columns);
		return -1;
	}
	return 0;
}
