/* Errors, for every caller: functions that can fail return 0 or a negative nr_err and put the message into the caller's slot.
 *
 * A message says what failed, the quoted subject, the detail, and a hint on what to do:
 *   cannot read 'ckpt/7.safetensors': header says 812 bytes, file has 640 (copy it again: it is cut off)
 * The library never prints and never exits.
 *
 * Example:
 *   struct nr_error why = { 0 };
 *   struct nr_weights *weights;
 *   char text[1024];
 *   if (nr_weights_open(&weights, "no-such-file", NULL, &why)) printf("%s\n", nr_error_text(&why, text, sizeof text));
 */
#ifndef NORMA_ERR_H
#define NORMA_ERR_H

#include <stddef.h>

#include "norma/real.h"

enum nr_err {
	NR_OK = 0,
	NR_EUSAGE = -1,    /* an option or argument is wrong */
	NR_ENAME = -2,     /* a name is not known */
	NR_EVALUE = -3,    /* a value is out of range or of the wrong type */
	NR_ESHAPE = -4,    /* tensors do not fit together */
	NR_EFORMAT = -5,   /* a file is not what it should be */
	NR_EIO = -6,       /* the system refused (errno is in the detail) */
	NR_EMEMORY = -7,   /* out of memory */
	NR_EDIVERGED = -8, /* a value is not finite */
	NR_ELIMIT = -9,    /* larger than this build can hold */
};

/* Caller's storage; all zero means no error. The first error sticks: later calls to nr_fail keep it. */
struct nr_error {
	enum nr_err code;
	char what[96], subject[256], detail[768], hint[256];
};

/* Fills the slot (unless one is there already, or err is NULL) and returns code, so that `return nr_fail(...)` reads well.
 * subject may be NULL. */
NR_API int nr_fail(struct nr_error *err, enum nr_err code, const char *what, const char *subject, const char *detail, ...)
	__attribute__((format(printf, 5, 6)));
/* Adds the hint to the error just set and returns its code; NR_EVALUE if there is no slot. */
NR_API int nr_hint(struct nr_error *err, const char *hint, ...) __attribute__((format(printf, 2, 3)));
/* One line without a newline; returns buf. */
NR_API const char *nr_error_text(const struct nr_error *err, char *buf, size_t size);
NR_API const char *nr_strerror(enum nr_err code);

#endif
