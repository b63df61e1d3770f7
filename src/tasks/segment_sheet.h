/* Pictures of segmentation: a row for each, with the picture, its truth and what the model says. */
#ifndef NR_SEGMENT_SHEET_H
#define NR_SEGMENT_SHEET_H

#include "picture/overlay.h"

enum { NR_SEGMENT_ROWS = 8 };
struct nr_segment_sheet {
	int32_t classes;
	const uint8_t (*colour)[3];         /* (classes), the caller's */
	int64_t rows;
	struct nr_picture row[NR_SEGMENT_ROWS];
};
/* Forgets the rows of before. */
void nr_segment_sheet_begin(struct nr_segment_sheet *, int32_t classes, const uint8_t (*colour)[3]);
/* For nr_segment_each: a row. */
int nr_segment_sheet_see(void *sheet, int64_t i, const struct nr_picture *, const struct nr_picture *truth, const struct nr_picture *map,
	struct nr_error *);
/* A PNG; nothing if there are no rows. */
int nr_segment_sheet_draw(const struct nr_segment_sheet *, const char *path, struct nr_error *);
void nr_segment_sheet_release(struct nr_segment_sheet *);

#endif
