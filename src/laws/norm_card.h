/* What there is to say about a normalization, from its registry entry and from what it does: which inputs an output value
 * sees, its parameters and what it costs. Nothing here knows a norm by name, so a new one gets its card for free. */
#ifndef NR_NORM_CARD_H
#define NR_NORM_CARD_H

#include "norma/norm.h"

struct nr_arena;
struct nr_str;

/* A text that builds the norm with its defaults: its name, or "sep(batch,layer)" for one made of others; returns buf. */
const char *nr_norm_example(const struct nr_norm *, char *buf, size_t size);
/* Is it made of other norms? Those are about special tokens. */
int nr_norm_composite(const struct nr_norm *);
/* The norm that "layer:eps=1e-6" or "sep(bn,ln)" names; NULL and an error with the nearest name. */
const struct nr_norm *nr_norm_of_text(const char *text, struct nr_error *);

/* ---- parameters and cost (norm_card.c) ---- */

struct nr_norm_entry { const char *name, *shape, *first; int buffer; };     /* "pos", "H x 3", "-1, 1, 1, ..." */
struct nr_norm_card {
	const struct nr_norm *norm;
	const char *text;                   /* what was built */
	struct nr_norm_entry *entry;
	int64_t entries;
	const char *count;                  /* parameters: "2 C + 5 H", "0" */
	double forward, backward;           /* flops per value, at 8 samples of a 14 x 14 grid, 384 channels, 6 heads */
};
/* C channels, H heads, T tokens. Strings live in the arena. */
int nr_norm_card(struct nr_norm_card *, const struct nr_norm *, struct nr_arena *, struct nr_error *);

/* ---- what an output value sees (norm_picture.c) ---- */

enum nr_seen { NR_UNSEEN, NR_SEEN_LATER, NR_SEEN, NR_SELF };      /* later: in the next steps, through running statistics */
struct nr_norm_picture {
	int64_t B, T, C, token, channel;    /* the value looked at is that of sample 0 */
	int32_t special;
	uint8_t *cell;                      /* (B,T,C) of enum nr_seen */
};
/* Measured: each input value is changed in turn, in training mode with first parameters. Two samples of a 2 x 3 grid, 6
 * channels, 2 heads. special: so many special tokens; token: whose output is looked at. */
int nr_norm_look(struct nr_norm_picture *, const char *text, int32_t special, int64_t token, struct nr_arena *, struct nr_error *);
/* "channels, tokens": along what the seen values lie; "nothing" if only the value itself is. */
void nr_norm_over(const struct nr_norm_picture *, struct nr_str *);
/* Both samples side by side, a line for each token, a cell for each channel; `indent` stands before every line. */
void nr_norm_draw(const struct nr_norm_picture *, const char *indent, struct nr_str *);
extern const char *const nr_norm_cells[4];                  /* by enum nr_seen */

#endif
