/* The error slot: see norma/err.h. */
#include "norma/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text cut to size must not end inside a UTF-8 character. */
static void trim_utf8(char *s, size_t size, int wanted)
{
	if (wanted < 0 || (size_t)wanted < size)
		return;
	size_t n = strlen(s), lead = n;
	while (lead > 0 && n - lead < 4) {
		unsigned char c = (unsigned char)s[--lead];
		if (c < 0x80)
			return;
		if (c >= 0xC0) {
			size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
			if (lead + need > n)
				s[lead] = 0;
			return;
		}
	}
}

int nr_fail(struct nr_error *err, enum nr_err code, const char *what, const char *subject,
	    const char *detail, ...)
{
	if (!err || err->code != NR_OK)
		return code;
	err->code = code;
	int n = snprintf(err->what, sizeof err->what, "%s", what ? what : "");
	trim_utf8(err->what, sizeof err->what, n);
	n = snprintf(err->subject, sizeof err->subject, "%s", subject ? subject : "");
	trim_utf8(err->subject, sizeof err->subject, n);
	err->detail[0] = err->hint[0] = 0;
	if (detail) {
		va_list ap;
		va_start(ap, detail);
		n = vsnprintf(err->detail, sizeof err->detail, detail, ap);
		va_end(ap);
		trim_utf8(err->detail, sizeof err->detail, n);
	}
	return code;
}

int nr_hint(struct nr_error *err, const char *hint, ...)
{
	if (!err) return NR_EVALUE; /* it follows a failure, whose code nobody kept: anything but NR_OK */
	if (err->code != NR_OK && !err->hint[0]) {
		va_list ap;
		va_start(ap, hint);
		int n = vsnprintf(err->hint, sizeof err->hint, hint, ap);
		va_end(ap);
		trim_utf8(err->hint, sizeof err->hint, n);
	}
	return err->code;
}

const char *nr_error_text(const struct nr_error *err, char *buf, size_t size)
{
	if (size == 0)
		return buf;
	const char *what = err->what[0] ? err->what : nr_strerror(err->code);
	int n = snprintf(buf, size, "%s%s%s%s%s%s%s%s%s", what, err->subject[0] ? " '" : "", err->subject,
			 err->subject[0] ? "'" : "", err->detail[0] ? ": " : "", err->detail,
			 err->hint[0] ? " (" : "", err->hint, err->hint[0] ? ")" : "");
	trim_utf8(buf, size, n);
	/* Names come from files: a newline or an escape sequence in one must not reach the terminal. */
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			*p = '?';
	return buf;
}

const char *nr_strerror(enum nr_err code)
{
	switch (code) {
	case NR_OK: return "no error";
	case NR_EUSAGE: return "wrong usage";
	case NR_ENAME: return "unknown name";
	case NR_EVALUE: return "bad value";
	case NR_ESHAPE: return "shapes do not match";
	case NR_EFORMAT: return "bad format";
	case NR_EIO: return "input or output failed";
	case NR_EMEMORY: return "out of memory";
	case NR_EDIVERGED: return "a value is not finite";
	case NR_ELIMIT: return "too large";
	}
	return "unknown error";
}
