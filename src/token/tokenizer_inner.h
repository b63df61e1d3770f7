/* What the files of the tokenizers share. */
#ifndef NR_TOKENIZER_INNER_H
#define NR_TOKENIZER_INNER_H

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "norma/tokenizer.h"

/* ---- vocabulary (vocab.c) ------------------------------------------------------------------------------------------------------ */

/* Hash of a string, byte by byte, so that one pass gives the hashes of all beginnings. The upper bits are the good ones. */
#define NR_HASH_START UINT64_C(0x51ed270b27d7c1c3)
#define NR_HASH_INSIDE UINT64_C(0xa0761d6478bd642f)     /* of a piece inside a word */
static inline uint64_t nr_hash_byte(uint64_t h, uint8_t c) { return (h ^ c) * UINT64_C(0x9e3779b97f4a7c15); }
static inline uint64_t nr_hash(uint64_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) h = nr_hash_byte(h, (uint8_t)s[i]);
	return h;
}

struct vocab_text { uint32_t at, bytes; };              /* in vocab.text; at 0: there is no such id */
struct vocab_slot { uint32_t tag; int32_t id; };        /* id -1: empty */
struct vocab_slots { struct vocab_slot *slot; int bits; int64_t used; };
struct vocab {
	char *text;
	size_t used, room;
	struct vocab_text *token;                       /* by id */
	int64_t count, capacity;                        /* count: largest id + 1 */
	struct vocab_slots whole;                       /* token to id */
};
enum { VOCAB_MOST = 1 << 24 };

/* An id or a token that is there already is NR_EFORMAT, without a message. */
int vocab_add(struct vocab *, const char *token, size_t bytes, int64_t id);
int32_t vocab_find(const struct vocab *, const char *token, size_t bytes);      /* -1: none */
const char *vocab_token(const struct vocab *, int32_t id, size_t *bytes);       /* NULL: none */
void vocab_release(struct vocab *);
bool slots_make(struct vocab_slots *, int64_t count);   /* room for so many */
void slots_put(struct vocab_slots *, uint64_t hash, int32_t id);

/* ---- added tokens (added.c) ----------------------------------------------------------------------------------------------------- */

struct added_token {
	char *text;                                     /* as it is looked for: normalised if that is asked for */
	size_t bytes;
	int32_t id;
	bool special, normalized, lstrip, rstrip, single_word;
};
struct added_set {                                      /* tokens in the order of their bytes */
	struct added_token *token;
	int64_t count;
	int32_t start[257];
	int first;                                      /* the only first byte; -1: there are several */
};
struct added_match { size_t from, to; int32_t id; };

int added_set_make(struct added_set *, struct nr_arena *, const struct added_token *, int64_t count, bool normalized);
/* The next token at or behind *at; false: none. done is where the last one ended. */
bool added_next(const struct added_set *, const char *s, size_t n, size_t *at, size_t done, struct added_match *);

/* ---- the tokenizer ----------------------------------------------------------------------------------------------------------------- */

enum { PART_A = -1, PART_B = -2 };                      /* else: the id of a special token */
struct template { int32_t *part, *type; int64_t count, added; };

struct bert_rules { bool clean, cjk, strip_accents, lowercase; };
struct bpe_merge { uint32_t left, right; int32_t rank, id; };   /* rank -1: empty */
struct bpe_rules {
	struct bpe_merge *merge;
	int bits;                                       /* of the table */
	int64_t merges;
	int32_t of_byte[256];                           /* -1: not in the vocabulary */
	int32_t unk;                                    /* of such a byte; -1: nothing stands for it */
	bool blank_first, ignore_merges;
	bool clip;                                      /* CLIP: words without blanks, whose last byte has a token of its own: "a</w>" */
	int32_t of_last[256];                           /* clip: of that byte */
};

struct nr_tokenizer {
	struct nr_arena *arena;
	const char *path;
	enum nr_tokenizer_kind kind;
	struct vocab vocab;
	struct vocab_slots inside;                      /* WordPiece: pieces behind the prefix */
	const char *prefix;                             /* "##" */
	size_t longest;                                 /* bytes of the longest token */
	int64_t max_chars;                              /* longer words are unknown */
	bool normalizes, cleanup;
	struct bert_rules bert;
	struct bpe_rules bpe;
	struct added_token *added;
	int64_t n_added, added_room;
	struct vocab added_names;                       /* text to place in added */
	struct added_set raw, normal;
	struct template single, pair;
	int32_t special[NR_SPECIALS];
	int32_t pad_type;
	bool pad_left, cut_left;
};

/* tokenizer_files.c; a path that is NULL means out of memory */
int tokenizer_read_vocab_txt(struct nr_tokenizer *, const char *path, struct nr_error *);
int tokenizer_read_bpe(struct nr_tokenizer *, const char *vocab, const char *merges, struct nr_error *);
int tokenizer_add_vocab(struct nr_tokenizer *, const char *path, const json_t *object, struct nr_error *);
/* tokenizer_config.c: tokenizer_config.json and special_tokens_map.json beside the file at path. NULL when there is none; check err. */
json_t *tokenizer_config(struct nr_tokenizer *, const char *path, struct nr_error *);
/* What the config says of case, accents, ideographs and the first blank. */
int config_rules(struct nr_tokenizer *, const json_t *config, struct nr_error *);
/* Tokens that the config adds. */
int config_added(struct nr_tokenizer *, const json_t *config, struct nr_error *);
/* The special tokens by the config's names, else by the usual ones that the vocabulary has. Those that the config names are looked for in
 * texts; with `usual` the others too. */
int config_specials(struct nr_tokenizer *, const json_t *config, bool usual, struct nr_error *);
/* Adds {"content": ..., "lstrip": ...} as id, to the vocabulary too if it is not there. */
int config_add_token(struct nr_tokenizer *, const json_t *token, int64_t id, struct nr_error *);
/* tokenizer_json.c */
int tokenizer_read_json(struct nr_tokenizer *, const char *path, struct nr_error *);
/* tokenizer_post.c */
int tokenizer_read_post(struct nr_tokenizer *, const json_t *post, struct nr_error *);
int template_add(struct nr_tokenizer *, struct template *, int32_t part, int32_t type);
int template_bert(struct nr_tokenizer *, int32_t cls, int32_t sep);
int template_roberta(struct nr_tokenizer *, int32_t cls, int32_t sep);
int template_none(struct nr_tokenizer *);
/* tokenizer.c */
int tokenizer_memory(const struct nr_tokenizer *, struct nr_error *);
/* A token that matches in the text; flags are those of token, whose text and id are set here. */
int tokenizer_add_token(struct nr_tokenizer *, const char *text, struct added_token token, struct nr_error *);
/* bpe_read.c */
int bpe_start(struct nr_tokenizer *, int64_t merges);
int bpe_add_merge(struct nr_tokenizer *, const char *left, size_t n_left, const char *right, size_t n_right, int32_t rank,
	const char *where, struct nr_error *);
void bpe_bytes(struct nr_tokenizer *);
/* Makes it CLIP's, if its vocabulary is: lower case, GPT-2's words without blanks and with single digits. */
void bpe_clip(struct nr_tokenizer *);

/* ---- encoding ---------------------------------------------------------------------------------------------------------------------- */

struct id_list { int32_t *id; int64_t count, room; };
struct text_room { char *text; size_t bytes, room; };

struct bpe_symbol { int32_t id, before, after; };       /* id -1: joined to the one before it */
struct bpe_step { int32_t rank, at, id; };
struct bpe_word { uint64_t hash; uint32_t text, ids; uint16_t bytes, count; };
struct bpe_cache {
	struct bpe_word *word;
	char *text;
	int32_t *ids;
	uint32_t words, used_text, used_ids;
};

struct nr_encoder {
	const struct nr_tokenizer *of;
	struct id_list part[2], ids, types;
	struct text_room repaired, normal, prefixed;
	struct bpe_symbol *symbol;
	struct bpe_step *heap;
	int64_t symbols;                                /* room */
	struct bpe_cache cache;
	bool blank_first;
};

bool ids_reserve(struct id_list *, size_t more);
bool text_reserve(struct text_room *, size_t bytes);    /* the content is kept */
/* Text after BERT's normalizer in out, whose content is replaced. */
bool bert_normalize(const struct bert_rules *, const char *s, size_t n, struct text_room *out);
/* Adds the ids of a piece without added tokens. */
bool wordpiece_encode(const struct nr_tokenizer *, const char *s, size_t n, struct id_list *);
bool bpe_encode(struct nr_encoder *, const char *s, size_t n, struct id_list *);
bool bpe_cache_make(struct bpe_cache *);
void bpe_cache_release(struct bpe_cache *);

#endif
