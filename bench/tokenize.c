/* Texts to ids on one thread, beside Hugging Face's `tokenizers`: the same lines, each library its own process, in turn. A checksum of all
 * ids tells whether they are equal. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench.h"
#include "base/bytes.h"
#include "norma/tokenizer.h"

enum { FULL = 10 << 20, TINY = 20000, STREAM = 41 << 24 };
struct result { double rate, ratio; int64_t ids, checksum; };

/* ---- the text --------------------------------------------------------------------------------------------------------------- */

static double draw(uint64_t *n) { return nr_rng_uniform(nr_rng_make(1, STREAM, 0), (*n)++); }

/* A word of a language of its own: number 0 is the most frequent and short; one in fifty has a letter that is not ASCII. */
static void add_word(struct nr_str *s, uint32_t number, bool capital)
{
	static const char *const start[] = { "", "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "th", "st", "w", "br" };
	static const char *const middle[] = { "a", "e", "i", "o", "u", "ea", "ou", "y" }, *const end[] = { "", "n",
		"r", "s", "t", "ng", "l", "d" };
	const size_t first = s->len;
	uint32_t v = number + 19;
	do {
		nr_str_add(s, start[v % 18]);
		nr_str_add(s, number % 50 == 49 ? "é" : middle[v / 18 % 8]);
		nr_str_add(s, end[v / 144 % 8]);
		v /= 1152;
	} while (v);
	if (capital && !s->failed && s->text[first] >= 'a' && s->text[first] <= 'z') s->text[first] = (char)(s->text[first] - 32);
}

static void make_text(struct nr_str *s, size_t size)
{
	uint64_t n = 0;
	while (s->len < size && !s->failed) {
		const int words = 4 + (int)(30 * draw(&n));
		for (int i = 0; i < words; i++) {
			const double u = draw(&n);
			if (i) nr_str_add(s, u < 0.06 ? ", " : " ");
			if (draw(&n) < 0.02) nr_str_printf(s, "%d", (int)(3000 * draw(&n)));
			else add_word(s, (uint32_t)(40000 * u * u * u * u), !i || u > 0.97);
			if (draw(&n) < 0.01) nr_str_add(s, "'s");
		}
		nr_str_add(s, draw(&n) < 0.1 ? "?\n" : ".\n");
	}
}

static int read_text(const struct bench_options *o, struct nr_str *s, struct nr_error *err)
{
	const size_t size = o->tiny ? TINY : FULL;
	if (*o->text) {
		struct nr_bytes file;
		if (nr_bytes_open(&file, o->text, 1 << 30, err)) return err->code;
		while (s->len < size && !s->failed) {
			nr_str_add_n(s, (const char *)file.data, file.size);
			if (s->len && s->text[s->len - 1] != '\n') nr_str_add(s, "\n");
		}
		nr_bytes_release(&file);
	} else {
		make_text(s, size);
	}
	return s->failed ? nr_fail(err, NR_EMEMORY, "cannot make the text", NULL, "out of memory") : NR_OK;
}

/* ---- measuring ---------------------------------------------------------------------------------------------------------------- */

/* One pass over all lines; with r the ids are counted and summed up. */
static int pass(struct nr_encoder *e, const struct nr_str *text, struct result *r, struct nr_error *err)
{
	uLong sum = crc32(0, NULL, 0);
	for (const char *s = text->text, *end = s + text->len; s < end;) {
		const size_t n = (size_t)((const char *)memchr(s, '\n', (size_t)(end - s)) - s);
		struct nr_encoding out;
		if (nr_encode(e, s, n, NULL, 0, NULL, &out, err)) return err->code;
		s += n + 1;
		if (!r) continue;
		const int32_t count = (int32_t)out.count;
		sum = crc32(sum, (const Bytef *)&count, sizeof count);
		sum = crc32(sum, (const Bytef *)out.ids, (uInt)(out.count * (int64_t)sizeof *out.ids));
		r->ids += out.count;
	}
	if (r) r->checksum = (int64_t)sum;
	return NR_OK;
}

static int measure(const struct bench_options *o, const char *vocab, const struct nr_str *text, struct result *r, struct nr_error *err)
{
	struct nr_tokenizer *t;
	struct nr_encoder *e = NULL;
	*r = (struct result){ 0 };
	if (nr_tokenizer_open(&t, vocab, err)) return err->code;
	int code = nr_encoder_make(&e, t, err);
	if (!code) code = pass(e, text, r, err);
	const double start = nr_clock(), limit = o->tiny ? 0 : o->seconds / 2;
	double now = start, bytes = 0;
	while (!code && (bytes == 0 || now - start < limit)) {
		code = pass(e, text, NULL, err);
		bytes += (double)text->len;
		now = nr_clock();
	}
	r->rate = bytes / (now - start) * 1e-6;
	nr_encoder_free(e);
	nr_tokenizer_close(t);
	return code;
}

static int measure_peer(const struct bench_options *o, const char *vocab, char *file, struct result *r, struct nr_error *err)
{
	char script[512], python[512], seconds[32], where[1024];
	if (bench_find_peer("bench/peers/encode_text.py", script, python, sizeof python, err)) return err->code;
	snprintf(seconds, sizeof seconds, "%g", o->seconds / 2);
	snprintf(where, sizeof where, "%s", vocab);
	char vocab_flag[] = "--vocab", text_flag[] = "--text", seconds_flag[] = "--seconds";
	char *argv[] = { python, script, vocab_flag, where, text_flag, file, seconds_flag, seconds, NULL };
	json_t *records = bench_records(argv, err);
	if (!records) return err->code;
	const json_t *record = json_array_get(records, 0);
	*r = (struct result){ .rate = json_number_value(json_object_get(record, "mb_per_s")),
		.ids = json_integer_value(json_object_get(record, "ids")),
		.checksum = json_integer_value(json_object_get(record, "checksum")) };
	json_decref(records);
	return r->rate > 0 ? NR_OK : nr_fail(err, NR_EFORMAT, "no result from", script, "mb_per_s is missing");
}

static int report(const struct bench_options *o, const char *name, const struct result *ours,
	const struct result *peer, struct nr_error *err)
{
	const bool equal = peer && ours->ids == peer->ids && ours->checksum == peer->checksum;
	if (o->json) {
		json_t *r = json_pack("{s:s,s:i,s:f,s:I}", "case", name, "threads", 1, "mb_per_s", ours->rate,
			"ids", (json_int_t)ours->ids);
		if (r) bench_limits_add(r, o->tiny);
		if (r && peer) {
			json_object_set_new(r, "peer_mb_per_s", json_real(peer->rate));
			json_object_set_new(r, "ratio", json_real(ours->ratio));
			json_object_set_new(r, "equal", json_boolean(equal));
		}
		return bench_json_line(stdout, r, err);
	}
	printf("%-24s %8.1f %10lld", name, ours->rate, (long long)ours->ids);
	if (peer) printf(" %12.1f %7.1fx  %s", peer->rate, ours->ratio, equal ? "equal" : "DIFFERENT");
	printf("\n");
	return NR_OK;
}

static int one(const struct bench_options *o, const char *name, const char *vocab, const struct nr_str *text,
	char *file, struct nr_error *err)
{
	const bool with = o->peer != BENCH_NONE;
	double ours[BENCH_MAX_ROUNDS], theirs[BENCH_MAX_ROUNDS], ratio[BENCH_MAX_ROUNDS];
	const int64_t rounds = with ? o->rounds : 1;
	struct result a = { 0 }, b = { 0 };
	for (int64_t i = 0; i < rounds; i++) {
		if (measure(o, vocab, text, &a, err) || (with && measure_peer(o, vocab, file, &b, err))) return err->code;
		ours[i] = a.rate;
		theirs[i] = b.rate;
		ratio[i] = with ? a.rate / b.rate : 0;
	}
	a.rate = bench_median(ours, rounds);
	b.rate = bench_median(theirs, rounds);
	a.ratio = bench_median(ratio, rounds);
	return report(o, name, &a, with ? &b : NULL, err);
}

static int write_text(const struct nr_str *text, char *file, struct nr_error *err)
{
	strcpy(file, "/tmp/norma-bench-XXXXXX");
	const int fd = mkstemp(file);
	if (fd < 0) return nr_fail(err, NR_EIO, "cannot make a file", file, "%s", strerror(errno));
	FILE *f = fdopen(fd, "wb");
	const bool ok = f && fwrite(text->text, 1, text->len, f) == text->len;
	if (f ? !fclose(f) && ok : (close(fd), false)) return NR_OK;
	unlink(file);
	return nr_fail(err, NR_EIO, "cannot write", file, "%s", strerror(errno));
}

int bench_tokenize(const struct bench_options *o, struct nr_error *err)
{
	static const struct { const char *name, *path; } usual[] = {
		{ "WordPiece, 30522 tokens", "test/golden/text/tokenizer/vocab.txt" }, { "BPE, 1500 tokens",
			"test/golden/text/tokenizer/bpe" },
	};
	struct nr_str text = { 0 };
	char file[64], path[512];
	int code = read_text(o, &text, err);
	if (!code) code = write_text(&text, file, err);
	if (code) {
		nr_str_release(&text);
		return code;
	}
	if (!o->json) printf("%-24s %8s %10s%s\n", "one thread", "MB/s", "ids", o->peer != BENCH_NONE ? "   tokenizers   ratio  ids" : "");
	if (*o->vocab) code = one(o, o->vocab, o->vocab, &text, file, err);
	for (int i = 0; !*o->vocab && !code && i < 2; i++) {
		if (!bench_find_file(usual[i].path, path, sizeof path)) code = one(o, usual[i].name, path, &text, file, err);
		else code = nr_fail(err, NR_EIO, "cannot find", usual[i].path, "run norma from its source tree, or give --vocab");
	}
	unlink(file);
	nr_str_release(&text);
	return code;
}
