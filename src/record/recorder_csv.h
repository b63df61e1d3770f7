/* metrics.csv: RFC 4180 quoting, line feeds; step, epoch, seconds, then the columns of the run. */
#ifndef NR_RECORDER_CSV_H
#define NR_RECORDER_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "norma/err.h"

struct nr_str;

struct nr_cell { double value; bool given; };
struct nr_csv_row { int64_t step; double epoch, seconds; const struct nr_cell *cell; };

void nr_csv_header(struct nr_str *, const char *const *columns);
/* Nine digits: floats read back as they were. */
void nr_csv_line(struct nr_str *, const struct nr_csv_row *, int count);

/* Every whole row up to the first whose step is above `last`; *size is the bytes of the header and of those rows, 0 when
 * the header is not complete. Another header, or a line that is no row, is an error. each may be NULL; it returns 0 or an
 * error. */
typedef int nr_csv_each(void *arg, const struct nr_csv_row *, struct nr_error *);
int nr_csv_scan(FILE *, const char *path, const char *const *columns, int64_t last, nr_csv_each *each, void *arg, int64_t *size,
	struct nr_error *);

#endif
