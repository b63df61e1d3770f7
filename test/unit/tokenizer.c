/* data/tokenizer*.c, wordpiece.c, bpe*.c, encode.c, decode.c: ids as BERT and GPT-2 cut texts; files that are wrong are refused by name. */
#include "unit/datasets.h"

#include "base/save.h"
#include "norma/tokenizer.h"

static void put(const char *name, const char *text) { made_text(made_path("%s", name), text); }

static struct nr_tokenizer *opened(const char *name)
{
	struct nr_tokenizer *t;
	struct nr_error err = { 0 };
	char text[1500];
	if (nr_tokenizer_open(&t, made_path("%s", name), &err)) fail_msg("%s", nr_error_text(&err, text, sizeof text));
	return t;
}

/* The tokens of text (and pair), separated by blanks. */
static void decodes(const struct nr_tokenizer *t, int64_t count, const int32_t *ids, const char *want)
{
	size_t bytes;
	char *text = nr_decode(t, ids, count, true, &bytes);
	assert_string_equal(text, want);
	assert_int_equal(bytes, strlen(want));
	free(text);
}

static void gives(const struct nr_tokenizer *t, const char *text, const char *pair, struct nr_encode_how how, const char *want)
{
	struct nr_encoder *e;
	struct nr_encoding out;
	struct nr_str got = { 0 };
	struct nr_error err = { 0 };
	assert_int_equal(nr_encoder_make(&e, t, NULL), 0);
	for (int round = 0; round < 2; round++) {       /* once more from the table of words */
		got.len = 0;
		if (nr_encode(e, text, strlen(text), pair, pair ? strlen(pair) : 0, &how, &out, &err))
			nr_str_printf(&got, "error: %s", err.detail);
		for (int64_t i = 0; i < out.count; i++) nr_str_printf(&got, "%s%s", i ? " " : "", nr_tokenizer_token(t, out.ids[i]));
		assert_string_equal(nr_str_text(&got), want);
	}
	nr_str_release(&got);
	nr_encoder_free(e);
}
#define TEXT(t, text, want) gives(t, text, NULL, (struct nr_encode_how){ 0 }, want)

static const char bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n!\n,\na\n##b\ncafe\nI\ni\n"
			   "\xe6\xbc\xa2\n\xe1\x84\x80\n##\xe1\x85\xa1\n##x\nx\n";

/* CLIP's: lower case, words without blanks, digits one by one, the last byte of a word has a token of its own. */
static void clip_ends_words_and_drops_blanks(void **state)
{
	(void)state;
	put("clip/vocab.json", "{\"!\":0,\"a\":1,\"c\":2,\"t\":3,\"s\":4,\"2\":5,\"'\":6,\"!</w>\":7,\"a</w>\":8,\"c</w>\":9,\"t</w>\":10,"
		"\"s</w>\":11,\"2</w>\":12,\"ca\":13,\"cat</w>\":14,\"'s</w>\":15,\"<|startoftext|>\":16,\"<|endoftext|>\":17}");
	put("clip/merges.txt", "#version: 0.2\nc a\nca t</w>\n' s</w>\n");
	struct nr_tokenizer *t = opened("clip");
	TEXT(t, "A CAT", "<|startoftext|> a</w> cat</w> <|endoftext|>");
	TEXT(t, "cat's  cats 22!", "<|startoftext|> cat</w> 's</w> ca t s</w> 2</w> 2</w> !</w> <|endoftext|>");
	TEXT(t, " \n", "<|startoftext|> <|endoftext|>");
	decodes(t, 4, (const int32_t[]){ 16, 8, 14, 17 }, "a cat");
	nr_tokenizer_close(t);
}

static void wordpiece_takes_the_longest_pieces(void **state)
{
	(void)state;
	put("vocab.txt", bert);
	struct nr_tokenizer *t = opened("vocab.txt");
	assert_int_equal(nr_tokenizer_kind(t), NR_WORDPIECE);
	assert_int_equal(nr_tokenizer_size(t), 20);
	assert_int_equal(nr_tokenizer_special(t, NR_TOKEN_MASK), 4);
	assert_int_equal(nr_tokenizer_find(t, "##able"), 7);
	assert_null(nr_tokenizer_token(t, 20));
	TEXT(t, "", "[CLS] [SEP]");
	TEXT(t, "UNAFFABLE!", "[CLS] un ##aff ##able ! [SEP]");
	TEXT(t, "unaffably", "[CLS] [UNK] [SEP]");
	TEXT(t, "Caf\xc3\xa9\xe6\xbc\xa2 a\x01\xe2\x80\x8b" "b", "[CLS] cafe \xe6\xbc\xa2 a ##b [SEP]");
	TEXT(t, "\xea\xb0\x80", "[CLS] \xe1\x84\x80 ##\xe1\x85\xa1 [SEP]");
	TEXT(t, "\xc4\xb0,[MASK][mask]", "[CLS] i , [MASK] [UNK] [UNK] [UNK] [SEP]");
	TEXT(t, "a\xff\xe2\x82" "b", "[CLS] a ##b [SEP]");
	char word[102];
	memset(word, 'x', 101);
	word[101] = 0;
	TEXT(t, word, "[CLS] [UNK] [SEP]");
	word[5] = 0;
	TEXT(t, word, "[CLS] x ##x ##x ##x ##x [SEP]");
	nr_tokenizer_close(t);
}

static void tokenizer_config_says_what_happens_to_case(void **state)
{
	(void)state;
	put("cased/vocab.txt", bert);
	put("cased/tokenizer_config.json", "{\"do_lower_case\": false, \"strip_accents\": null, "
		"\"model_max_length\": 1000000000000000019884624838656, \"pad_token\": {\"content\": \"[MASK]\"}}");
	struct nr_tokenizer *t = opened("cased");
	TEXT(t, "I i A caf\xc3\xa9", "[CLS] I i [UNK] [UNK] [SEP]");
	assert_int_equal(nr_tokenizer_special(t, NR_TOKEN_PAD), 4);
	nr_tokenizer_close(t);
	put("cased/added_tokens.json", "{\"<new>\": 20}");
	t = opened("cased");
	TEXT(t, "i <new>i", "[CLS] i <new> i [SEP]");
	nr_tokenizer_close(t);
}

static void pairs_are_cut_as_asked(void **state)
{
	(void)state;
	put("vocab.txt", bert);
	struct nr_tokenizer *t = opened("vocab.txt");
	const char *a = "a a a a a", *b = "i i i";
	gives(t, a, b, (struct nr_encode_how){ 0 }, "[CLS] a a a a a [SEP] i i i [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 9 }, "[CLS] a a a [SEP] i i i [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 8 }, "[CLS] a a a [SEP] i i [SEP]");
	gives(t, b, a, (struct nr_encode_how){ .max_length = 8 }, "[CLS] i i [SEP] a a a [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 3 }, "[CLS] [SEP] [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 9, .cut = NR_CUT_ONLY_SECOND }, "[CLS] a a a a a [SEP] i [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 9, .cut = NR_CUT_ONLY_FIRST }, "[CLS] a a a [SEP] i i i [SEP]");
	gives(t, a, NULL, (struct nr_encode_how){ .max_length = 4 }, "[CLS] a a [SEP]");
	gives(t, a, b, (struct nr_encode_how){ .plain = true }, "a a a a a i i i");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 2 }, "error: 2 ids have no room for the 3 special tokens");
	gives(t, a, b, (struct nr_encode_how){ .max_length = 8, .cut = NR_CUT_ONLY_SECOND },
		"error: the text that may be cut has 3 ids, but 3 must be removed");
	nr_tokenizer_close(t);
}

static void padding_fills_the_row(void **state)
{
	(void)state;
	put("vocab.txt", bert);
	struct nr_tokenizer *t = opened("vocab.txt");
	int32_t ids[6], types[6], mask[6];
	const struct nr_encoding e = { .ids = (const int32_t[]){ 2, 10, 3 }, .types = (const int32_t[]){ 0, 0, 1 }, .count = 3 };
	nr_encoding_pad(t, &e, 6, ids, types, mask);
	assert_memory_equal(ids, ((const int32_t[]){ 2, 10, 3, 0, 0, 0 }), sizeof ids);
	assert_memory_equal(types, ((const int32_t[]){ 0, 0, 1, 0, 0, 0 }), sizeof types);
	assert_memory_equal(mask, ((const int32_t[]){ 1, 1, 1, 0, 0, 0 }), sizeof mask);
	nr_tokenizer_close(t);
}

#define G "\xc4\xa0"                    /* how a blank is written */
static void bpe_joins_by_rank(void **state)
{
	(void)state;
	put("bpe/vocab.json", "{\"<s>\":0,\"</s>\":1,\"<pad>\":2,\"a\":3,\"b\":4,\"c\":5,"
			      "\"" G "\":6,\"ab\":7,\"bc\":8,\"" G "a\":9,\"abc\":10,\"'\":11,\"s\":12,"
			      "\"'s\":13,\"\xc3\x83\":14,\"\xc2\xa9\":15,\"\xc4\x8a\":16}");
	put("bpe/merges.txt", "#version: 0.2\nb c\na b\n' s\n" G " a\na bc\n");
	struct nr_tokenizer *t = opened("bpe");
	TEXT(t, "", "<s> </s>");
	TEXT(t, "abc ab", "<s> abc " G " ab </s>");     /* "b c" comes before "a b", and that before the blank with "a" */
	TEXT(t, "ab's", "<s> ab 's </s>");
	TEXT(t, "a  a\n\n", "<s> a " G " " G "a \xc4\x8a \xc4\x8a </s>");
	TEXT(t, "\xc3\xa9", "<s> \xc3\x83 \xc2\xa9 </s>");
	TEXT(t, "axb", "<s> ab </s>");                  /* no token for x: nothing stands for it */
	TEXT(t, "a</s>b", "<s> a </s> b </s>");
	gives(t, "a", "b", (struct nr_encode_how){ 0 }, "<s> a </s> </s> b </s>");
	gives(t, "a", NULL, (struct nr_encode_how){ .blank_first = true }, "<s> " G "a </s>");
	decodes(t, 7, (const int32_t[]){ 0, 10, 9, 14, 15, 14, 1 }, "abc a\xc3\xa9\xef\xbf\xbd");
	decodes(t, 0, NULL, "");
	nr_tokenizer_close(t);
}

static void decoding_puts_blanks_between_words(void **state)
{
	(void)state;
	put("vocab.txt", bert);
	struct nr_tokenizer *t = opened("vocab.txt");
	decodes(t, 9, (const int32_t[]){ 2, 5, 6, 7, 9, 10, 8, 99, 3 }, "unaffable, a!");
	decodes(t, 0, NULL, "");
	nr_tokenizer_close(t);
}

/* ---- files that are wrong ---------------------------------------------------------------------------------------------------------- */

static void refuses(const char *name, const char *part)
{
	struct nr_tokenizer *t;
	struct nr_error err = { 0 };
	char text[1500];
	assert_true(nr_tokenizer_open(&t, made_path("%s", name), &err) < 0);
	assert_null(t);
	if (!strstr(nr_error_text(&err, text, sizeof text), part)) fail_msg("'%s' should say '%s'", text, part);
}
static void refuses_text(const char *name, const char *text, const char *part)
{
	put(name, text);
	refuses(name, part);
}

static void wrong_vocabularies_are_refused(void **state)
{
	(void)state;
	refuses("nosuch/vocab.txt", "cannot read");
	assert_int_equal(nr_folder_make(made_path("none"), NULL), 0);
	refuses("none", "no tokenizer.json, vocab.txt");
	refuses_text("v/vocab.txt", "[UNK]\na\n\nb\n", "line 3 is empty");
	refuses_text("v/vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\na\n", "line 6: 'a' is already token 3 (line 4)");
	refuses_text("v/vocab.txt", "a\nb\n", "no token '[UNK]'");
	refuses_text("v/vocab.txt", "a\n\xff\n", "line 2 is not UTF-8");
	refuses_text("v/words.dat", "a\n", "not the name of a vocabulary");
	refuses_text("b/vocab.json", "{\"a\":0,\"b\":0}", "tokens 'a' and 'b' both have id 0");
	refuses_text("b/vocab.json", "{\"a\":-1}", "needs a text, and an id");
	refuses_text("b/vocab.json", "{\"a\":0,\"b\":1}", "merges.txt");
	refuses("b", "vocab.json needs the merges.txt");
	put("b/merges.txt", "#version: 0.2\na b\n");
	refuses("b", "line 2 of the merges: 'ab' is not in the vocabulary");
	put("b/merges.txt", "a b c\n");
	refuses("b", "line 1 is not two tokens");
	put("b/merges.txt", "a x\n");
	refuses("b", "'x' is not in the vocabulary");
}

#define MODEL "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":1}}"
#define BERT "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}"
static void what_is_not_understood_is_refused_by_its_key(void **state)
{
	(void)state;
	const char *f = "j/tokenizer.json";
	refuses_text(f, "[", "line 1");
	refuses_text(f, "{}", "model is not an object");
	refuses_text(f, "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "model.type 'Unigram'");
	refuses_text(f, "{" MODEL "}", "pre_tokenizer.type 'null'");
	refuses_text(f, "{" MODEL "," BERT ",\"normaliser\":null}", "did you mean 'normalizer'?");
	refuses_text(f, "{" MODEL "," BERT ",\"normalizer\":{\"type\":\"NFKC\"}}", "normalizer.type 'NFKC'");
	refuses_text(f, "{" MODEL "," BERT ",\"post_processor\":{\"type\":\"X\"}}", "post_processor.type 'X'");
	refuses_text(f, "{" MODEL "," BERT ",\"decoder\":{\"type\":\"CTC\"}}", "decoder.type 'CTC'");
	refuses_text(f, "{" MODEL "," BERT
		",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"x\",7],\"sep\":[\"a\",1]}}", "cls or sep");
	refuses_text(f, "{" MODEL "," BERT ",\"added_tokens\":[{\"id\":7,\"content\":\"a\"}]}", "has id 7, but 1 in the vocabulary");
	refuses_text(f, "{" MODEL "," BERT ",\"added_tokens\":[{\"id\":1,\"content\":\"b\"}]}", "id 1 is taken");
	refuses_text(f, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"byte_fallback\":true}}", "model.byte_fallback");
	refuses_text(f, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "model.merges, entry 1");
}

static void added_tokens_are_found_first(void **state)
{
	(void)state;
	put("j/tokenizer.json", "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
		"\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"##b\":3}}," BERT
		",\"normalizer\":{\"type\":\"BertNormalizer\"},\"added_tokens\":["
		"{\"id\":4,\"content\":\"<m>\",\"special\":true,\"lstrip\":true},"
		"{\"id\":5,\"content\":\"<m>>\",\"normalized\":false},"
		"{\"id\":6,\"content\":\"Ab\",\"normalized\":true,\"single_word\":true}]}");
	struct nr_tokenizer *t = opened("j/tokenizer.json");
	TEXT(t, "a <m>b<m>>", "a <m> b <m>>");
	TEXT(t, "a AB bab ab", "a Ab [UNK] Ab");        /* "bab" is one word, so the token in it does not count */
	assert_true(nr_tokenizer_is_special(t, 4));
	assert_false(nr_tokenizer_is_special(t, 5));
	nr_tokenizer_close(t);
}

/* As many as nobody has: the work grows with their number, not with its square (then this would take half an hour). */
static void many_added_tokens_are_read(void **state)
{
	(void)state;
	enum { MANY = 300000 };
	struct nr_str s = { 0 };
	nr_str_add(&s, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":1}}," BERT
		",\"normalizer\":{\"type\":\"BertNormalizer\"},\"added_tokens\":[");
	for (int i = 0; i < MANY; i++) nr_str_printf(&s, "%s{\"id\":%d,\"content\":\"<%d>\"}", i ? "," : "", i + 2, i);
	nr_str_add(&s, "]}");
	put("j/tokenizer.json", nr_str_text(&s));
	struct nr_tokenizer *t = opened("j/tokenizer.json");
	TEXT(t, "a<7>a<299999>", "a <7> a <299999>");
	nr_tokenizer_close(t);
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clip_ends_words_and_drops_blanks), cmocka_unit_test(wordpiece_takes_the_longest_pieces),
		cmocka_unit_test(tokenizer_config_says_what_happens_to_case),
		cmocka_unit_test(pairs_are_cut_as_asked),
		cmocka_unit_test(padding_fills_the_row),
		cmocka_unit_test(bpe_joins_by_rank),
		cmocka_unit_test(decoding_puts_blanks_between_words),
		cmocka_unit_test(wrong_vocabularies_are_refused),
		cmocka_unit_test(what_is_not_understood_is_refused_by_its_key),
		cmocka_unit_test(added_tokens_are_found_first),
		cmocka_unit_test(many_added_tokens_are_read),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
