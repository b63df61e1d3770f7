/* BERT's normalizer: control characters out, every white space a blank, blanks around ideographs; NFD without marks; lower case.
 *
 * ASCII goes byte by byte through a table. A run of other characters is decomposed; what is neither ASCII nor a mark but has a
 * combining class (a handful of signs) is put into canonical order within its run. */
#include <utf8proc.h>

#include "token/tokenizer_inner.h"
#include "token/unicode.h"

enum { DROP = 0xff };                           /* no byte of UTF-8 */
enum { MOST_SIGNS = 64 };                       /* in canonical order; a longer row of them is ordered in parts */

struct writer {
	const struct bert_rules *rules;
	char *to;
	int32_t sign[MOST_SIGNS];
	uint8_t order[MOST_SIGNS];
	int signs;
};

static void write_lower(struct writer *w, int32_t c)
{
	int32_t lower[3] = { c };
	const int n = w->rules->lowercase ? nr_char_lower(c, lower) : 1;
	for (int i = 0; i < n; i++) w->to += nr_utf8_put(w->to, lower[i]);
}

static void write_signs(struct writer *w)
{
	for (int i = 0; i < w->signs; i++) write_lower(w, w->sign[i]);
	w->signs = 0;
}

/* One character of the decomposition. */
static void write_part(struct writer *w, int32_t c)
{
	if (nr_char_is_mark(c)) return;
	const int order = utf8proc_get_property(c)->combining_class;
	if (!order || w->signs == MOST_SIGNS) write_signs(w);
	if (!order) {
		write_lower(w, c);
		return;
	}
	int i = w->signs++;
	for (; i && w->order[i - 1] > order; i--) {
		w->sign[i] = w->sign[i - 1];
		w->order[i] = w->order[i - 1];
	}
	w->sign[i] = c;
	w->order[i] = (uint8_t)order;
}

static void write_char(struct writer *w, int32_t c)
{
	if (!w->rules->strip_accents) {
		write_lower(w, c);
		return;
	}
	int32_t part[8];
	int boundary = 0;
	const utf8proc_ssize_t n = utf8proc_decompose_char(c, part, 8, UTF8PROC_DECOMPOSE, &boundary);
	for (utf8proc_ssize_t i = 0; i < n && i < 8; i++) write_part(w, part[i]);
}

/* From a character that is not ASCII to the next that is and counts; returns where that is. */
static const char *write_run(struct writer *w, const char *s, const char *end, const uint8_t *map)
{
	while (s < end && ((uint8_t)*s >= 0x80 || map[(uint8_t)*s] == DROP)) {
		int32_t c;
		s += nr_utf8_get(s, &c);
		if (w->rules->clean && nr_char_is_dropped(c)) continue;
		if (w->rules->clean && nr_char_is_space(c)) c = ' ';
		const bool apart = w->rules->cjk && nr_char_is_cjk(c);
		if (apart) write_part(w, ' ');
		write_char(w, c);
		if (apart) write_part(w, ' ');
	}
	write_signs(w);
	return s;
}

static void fill_map(const struct bert_rules *r, uint8_t *map)
{
	for (int c = 0; c < 128; c++) {
		map[c] = (uint8_t)(r->lowercase && c >= 'A' && c <= 'Z' ? c + 32 : c);
		if (r->clean && nr_char_is_dropped(c)) map[c] = DROP;
		else if (r->clean && nr_char_is_space(c)) map[c] = ' ';
	}
}

bool bert_normalize(const struct bert_rules *r, const char *s, size_t n, struct text_room *out)
{
	/* the worst are Hangul syllables, 3 bytes to 9, and ideographs, 3 to 5 */
	if (n > SIZE_MAX / 8 || !text_reserve(out, 4 * n + 64)) return false;
	uint8_t map[128];
	fill_map(r, map);
	struct writer w = { .rules = r, .to = out->text };
	for (const char *end = s + n; s < end;) {
		const uint8_t c = (uint8_t)*s;
		if (c >= 0x80) {
			s = write_run(&w, s, end, map);
			continue;
		}
		*w.to = (char)map[c];
		w.to += map[c] != DROP;
		s++;
	}
	out->bytes = (size_t)(w.to - out->text);
	return true;
}
