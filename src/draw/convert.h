/* Drawings in other formats, by librsvg's program, which also puts the letters' shapes into a PDF. */
#ifndef NR_CONVERT_H
#define NR_CONVERT_H

#include <stddef.h>

#include "norma/err.h"

/* The text of an SVG as the file `path`; format: "pdf" or "png". The error says what to install if the program is missing. */
int nr_svg_convert(const char *svg, size_t size, const char *format, const char *path, struct nr_error *);

#endif
