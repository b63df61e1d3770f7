/* Text tables: cells are given row by row, the table is written when all are known. */
#ifndef NR_TABLE_H
#define NR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct nr_str;
struct nr_table;
enum nr_align { NR_LEFT, NR_RIGHT };

struct nr_table *nr_table_make(void);  /* NULL when out of memory, which all other calls accept */
void nr_table_free(struct nr_table *);
/* All columns before the first cell; at most 32. */
void nr_table_column(struct nr_table *, const char *title, enum nr_align);
/* The next cell; a row is full when every column has one. */
void nr_table_cell(struct nr_table *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with a number to two places and what follows it (" %"); empty if it is not finite. */
void nr_table_number(struct nr_table *, double, const char *unit);
int64_t nr_table_rows(const struct nr_table *);

/* Aligned by terminal columns, no trailing spaces. A table that got no memory for a part of it fails the text. */
void nr_table_text(const struct nr_table *, struct nr_str *);
/* RFC 4180 quoting, line feeds. */
void nr_table_csv(const struct nr_table *, struct nr_str *);
void nr_table_markdown(const struct nr_table *, struct nr_str *);

#endif
