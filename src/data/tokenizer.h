/* Text to token ids and back: WordPiece (BERT) and byte-level BPE (RoBERTa, GPT-2), with the ids that Hugging Face's `tokenizers`
 * gives.
 *
 *   struct nr_tokenizer *t; nr_tokenizer_open(&t, "model/", &err);
 *   struct nr_encoder *e; nr_encoder_make(&e, t, &err);          one for each thread
 *   struct nr_encoding out; nr_encode(e, text, bytes, NULL, 0, NULL, &out, &err);
 *   nr_encoder_free(e); nr_tokenizer_close(t);
 */
#ifndef NR_TOKENIZER_H
#define NR_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

struct nr_str;
struct nr_tokenizer;
struct nr_encoder;

/* A folder with tokenizer.json, vocab.txt, or vocab.json and merges.txt (the first of these that is there), one of those files, or
 * weights (*.safetensors) in such a folder. tokenizer_config.json and special_tokens_map.json beside the file are respected. An
 * open tokenizer does not change: threads share it. */
int nr_tokenizer_open(struct nr_tokenizer **, const char *path, struct nr_error *);
void nr_tokenizer_close(struct nr_tokenizer *);         /* NULL is fine */
/* Copies the files that `path` means, and those beside them that are respected, into a folder. */
int nr_tokenizer_copy(const char *path, const char *dir, struct nr_error *);

enum nr_tokenizer_kind { NR_WORDPIECE, NR_BPE };
enum nr_special { NR_TOKEN_PAD, NR_TOKEN_UNK, NR_TOKEN_CLS, NR_TOKEN_SEP, NR_TOKEN_MASK, NR_SPECIALS };

enum nr_tokenizer_kind nr_tokenizer_kind(const struct nr_tokenizer *);
int64_t nr_tokenizer_size(const struct nr_tokenizer *);                         /* largest id + 1 */
int32_t nr_tokenizer_special(const struct nr_tokenizer *, enum nr_special);     /* -1: it has none */
bool nr_tokenizer_is_special(const struct nr_tokenizer *, int32_t id);          /* not part of the text; decode may leave it out */
const char *nr_tokenizer_token(const struct nr_tokenizer *, int32_t id);        /* NULL: no such id */
int32_t nr_tokenizer_find(const struct nr_tokenizer *, const char *token);      /* -1: no such token */
int64_t nr_tokenizer_added(const struct nr_tokenizer *, bool pair);             /* special tokens around one text, or two */

/* ---- encoding ------------------------------------------------------------------------------------------------------------- */

enum nr_cut { NR_CUT_LONGEST_FIRST, NR_CUT_ONLY_FIRST, NR_CUT_ONLY_SECOND };
struct nr_encode_how {
	int64_t max_length;             /* with the special tokens; 0: nothing is cut off */
	enum nr_cut cut;
	bool plain;                     /* no special tokens around the texts */
	bool blank_first;               /* BPE: as add_prefix_space, whatever the files say */
};
struct nr_encoding { const int32_t *ids, *types; int64_t count; };      /* valid until the encoder's next call */

/* Scratch of one thread, and the words that BPE has met. The tokenizer must outlive it. */
int nr_encoder_make(struct nr_encoder **, const struct nr_tokenizer *, struct nr_error *);
void nr_encoder_free(struct nr_encoder *);              /* NULL is fine */
/* pair NULL: one text. how NULL: all zero. What is not UTF-8 is read as U+FFFD, as Python's errors="replace" does. Allocates only
 * when a text is longer than those before it. */
int nr_encode(struct nr_encoder *, const char *text, size_t bytes, const char *pair, size_t pair_bytes, const struct nr_encode_how *how,
	struct nr_encoding *, struct nr_error *);
/* A row of a batch: `width` ids, types and mask (1 token, 0 padding), padded on the side that the files name. types and mask may be
 * NULL. The encoding is not longer than width. */
void nr_encoding_pad(const struct nr_tokenizer *, const struct nr_encoding *, int64_t width, int32_t *ids, int32_t *types, int32_t *mask);

/* ---- decoding ------------------------------------------------------------------------------------------------------------- */

/* Adds the text; ids that do not exist are left out. Always valid UTF-8. */
void nr_decode(const struct nr_tokenizer *, const int32_t *ids, int64_t count, bool skip_special, struct nr_str *);

/* ---- files of texts in hexadecimal ------------------------------------------------------------------------------------------ */

/* Tab separated lines of the reference files: text in hexadecimal (two with pair), then columns that are not read. Adds the line with
 * these columns instead: ids; for BPE without pair also the ids with a blank in front; for WordPiece with pair the type ids, and both
 * again cut to max_length. name and number are for messages. */
struct nr_hex_lines { struct nr_encoder *encoder; bool pair; int64_t max_length; const char *name; };
int nr_hex_line(const struct nr_hex_lines *, const char *line, size_t bytes, int64_t number, struct nr_str *out, struct nr_error *);
/* Whether the line's second column is a text too. */
bool nr_hex_is_pair(const struct nr_tokenizer *, const char *line, size_t bytes);

#endif
