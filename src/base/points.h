/* Decimal points, whatever locale the program around us has chosen: texts that we make are read again, by us and by others. */
#ifndef NR_POINTS_H
#define NR_POINTS_H

#include <locale.h>

/* Until nr_points_end, this thread prints and reads numbers as in C. */
locale_t nr_points_begin(void);
void nr_points_end(locale_t before);

#endif
