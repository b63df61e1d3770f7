/* For using models of texts: WordPiece (BERT) and byte-level BPE (RoBERTa, GPT-2), with the ids that Hugging Face's `tokenizers` gives.
 *
 * Example:
 *   const char *text = "the dog sees a cat";
 *   struct nr_tokenizer *tokenizer = NULL;
 *   struct nr_encoder *encoder = NULL;              // one for each thread
 *   struct nr_encoding out;
 *   if (!nr_tokenizer_open(&tokenizer, "text/", &err) && !nr_encoder_make(&encoder, tokenizer, &err) &&
 *           !nr_encode(encoder, text, strlen(text), NULL, 0, NULL, &out, &err))
 *           for (int64_t i = 0; i < out.count; i++) printf("%d %s\n", out.ids[i], nr_tokenizer_token(tokenizer, out.ids[i]));
 *   nr_encoder_free(encoder);
 *   nr_tokenizer_close(tokenizer);
 */
#ifndef NORMA_TOKENIZER_H
#define NORMA_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

struct nr_tokenizer;
struct nr_encoder;

/* A folder with tokenizer.json, vocab.txt, or vocab.json and merges.txt (the first of these that is there), one of those files, or
 * weights (*.safetensors) in such a folder. tokenizer_config.json and special_tokens_map.json beside the file are respected. An
 * open tokenizer does not change: threads share it. */
NR_API int nr_tokenizer_open(struct nr_tokenizer **, const char *path, struct nr_error *);
NR_API void nr_tokenizer_close(struct nr_tokenizer *);         /* NULL is fine */
/* Copies the files that `path` means, and those beside them that are respected, into a folder. */
NR_API int nr_tokenizer_copy(const char *path, const char *dir, struct nr_error *);

enum nr_tokenizer_kind { NR_WORDPIECE, NR_BPE };
enum nr_special { NR_TOKEN_PAD, NR_TOKEN_UNK, NR_TOKEN_CLS, NR_TOKEN_SEP, NR_TOKEN_MASK, NR_SPECIALS };

NR_API enum nr_tokenizer_kind nr_tokenizer_kind(const struct nr_tokenizer *);
NR_API int64_t nr_tokenizer_size(const struct nr_tokenizer *);                         /* largest id + 1 */
NR_API int32_t nr_tokenizer_special(const struct nr_tokenizer *, enum nr_special);     /* -1: it has none */
NR_API bool nr_tokenizer_is_special(const struct nr_tokenizer *, int32_t id);          /* not part of the text; decode may leave it out */
NR_API const char *nr_tokenizer_token(const struct nr_tokenizer *, int32_t id);        /* NULL: no such id */
NR_API int32_t nr_tokenizer_find(const struct nr_tokenizer *, const char *token);      /* -1: no such token */
NR_API int64_t nr_tokenizer_added(const struct nr_tokenizer *, bool pair);             /* special tokens around one text, or two */

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
NR_API int nr_encoder_make(struct nr_encoder **, const struct nr_tokenizer *, struct nr_error *);
NR_API void nr_encoder_free(struct nr_encoder *);              /* NULL is fine */
/* pair NULL: one text. how NULL: all zero. What is not UTF-8 is read as U+FFFD, as Python's errors="replace" does. Allocates only
 * when a text is longer than those before it. */
NR_API int nr_encode(struct nr_encoder *, const char *text, size_t bytes, const char *pair, size_t pair_bytes,
	const struct nr_encode_how *how, struct nr_encoding *, struct nr_error *);
/* A row of a batch: `width` ids, types and mask (1 token, 0 padding), padded on the side that the files name. types and mask may be
 * NULL. The encoding is not longer than width. */
NR_API void nr_encoding_pad(const struct nr_tokenizer *, const struct nr_encoding *, int64_t width, int32_t *ids, int32_t *types,
	int32_t *mask);

/* The text of ids, always valid UTF-8 and with a zero behind it: the caller's to free. Ids that do not exist are left out. NULL: out
 * of memory. */
NR_API char *nr_decode(const struct nr_tokenizer *, const int32_t *ids, int64_t count, bool skip_special, size_t *bytes);

#endif
