/* norma data on texts: how many, of how many words, and the first of them. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "data.h"

enum { SHOWN = 72 };                            /* characters of a cell */
static const char *const column_names[] = { "text", "positive", "hard negative" };

struct lengths { int64_t least, most, words, bytes, documents; };

static int64_t words_in(const char *s)
{
	int64_t n = 0;
	for (bool inside = false; *s; s++) {
		const bool blank = *s == ' ' || *s == '\t';
		n += !blank && !inside;
		inside = !blank;
	}
	return n;
}

static struct lengths measure(const struct nr_source *s, enum nr_split split, int32_t column)
{
	struct lengths l = { .least = INT64_MAX };
	int32_t before = -1;
	for (int64_t i = 0; i < s->count[split]; i++) {
		const char *text = nr_source_text(s, split, i, column);
		const int64_t n = words_in(text);
		const int32_t document = nr_source_label(s, split, i);
		l.least = n < l.least ? n : l.least;
		l.most = n > l.most ? n : l.most;
		l.words += n;
		l.bytes += (int64_t)strlen(text);
		l.documents += document != before;
		before = document;
	}
	return l;
}

static json_t *counts(const struct nr_source *s)
{
	json_t *j = json_object();
	for (enum nr_split i = NR_TRAIN; i < NR_SPLITS; i++) json_object_set_new(j, nr_split_name(i), json_integer(s->count[i]));
	return j;
}

static int info_json(struct cli *c, const struct nr_source *s, enum nr_split split)
{
	json_t *columns = json_array();
	for (int32_t k = 0; k < s->columns; k++) {
		const struct lengths l = measure(s, split, k);
		json_array_append_new(columns, json_pack("{s:I, s:I, s:I, s:I}", "words", (json_int_t)l.words, "least_words",
			(json_int_t)l.least, "most_words", (json_int_t)l.most, "bytes", (json_int_t)l.bytes));
	}
	return nr_json_line(stdout, json_pack("{s:s, s:s, s:s?, s:i, s:s, s:I, s:o, s:o}", "name", s->of->name, "title", s->of->title,
		"dir", s->dir, "columns", (int)s->columns, "split", nr_split_name(split), "documents",
		(json_int_t)measure(s, split, 0).documents, "count", counts(s), "texts", columns), c->err);
}

static void row(const char *label) { printf("%s%-10s%s", cli_bold(), label, cli_plain()); }

int data_text_info(struct cli *c, const struct data *o, const struct nr_source *s)
{
	const enum nr_split split = (enum nr_split)o->split;
	if (o->json) return info_json(c, s, split);
	printf("%s%s%s: %s\n", cli_bold(), s->of->name, cli_plain(), s->of->title);
	row("licence"), printf("%s\n", s->of->licence);
	if (s->dir) row("where"), printf("%s\n", s->dir);
	row("samples");
	for (enum nr_split i = NR_TRAIN, first = 1; i < NR_SPLITS; i++)
		if (s->count[i]) printf("%s%lld %s", first ? "" : ", ", (long long)s->count[i], nr_split_name(i)), first = 0;
	printf("\n");
	const int64_t documents = s->columns == 1 && !s->classes && !s->of->value ? measure(s, split, 0).documents : 0;
	if (s->classes) row("classes"), printf("%d\n", (int)s->classes);
	if (documents > 1) row("documents"), printf("%lld, separated by blank lines\n", (long long)documents);
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "column", "words", "a text", "least", "most", "bytes" };
	for (int i = 0; i < 6; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int32_t k = 0; k < s->columns; k++) {
		const struct lengths l = measure(s, split, k);
		nr_table_cell(t, "%s", column_names[k]);
		nr_table_cell(t, "%lld", (long long)l.words);
		nr_table_cell(t, "%.1f", (double)l.words / (double)s->count[split]);
		nr_table_cell(t, "%lld", (long long)l.least);
		nr_table_cell(t, "%lld", (long long)l.most);
		nr_table_cell(t, "%lld", (long long)l.bytes);
	}
	printf("\n%sSplit %s%s\n", cli_bold(), nr_split_name(split), cli_plain());
	cli_print_table(t);
	return NR_OK;
}

/* Cut at a whole character. */
static void cell(struct nr_table *t, const char *text)
{
	size_t n = strlen(text);
	const bool cut = n > SHOWN;
	for (n = cut ? SHOWN : n; cut && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;) n--;
	nr_table_cell(t, "%.*s%s", (int)n, text, cut ? "..." : "");
}

int data_text_show(struct cli *c, const struct data *o, const struct nr_source *s)
{
	const enum nr_split split = (enum nr_split)o->split;
	const int64_t n = o->count < s->count[split] ? o->count : s->count[split];
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "", NR_RIGHT);
	for (int32_t k = 0; k < s->columns; k++) nr_table_column(t, column_names[k], NR_LEFT);
	for (int64_t i = 0; i < n && !c->err->code; i++) {
		json_t *texts = json_array();
		nr_table_cell(t, "%lld", (long long)i);
		for (int32_t k = 0; k < s->columns; k++) {
			const char *text = nr_source_text(s, split, i, k);
			cell(t, text);
			json_array_append_new(texts, json_string(text));
		}
		if (o->json) nr_json_line(stdout, json_pack("{s:I, s:o}", "sample", (json_int_t)i, "texts", texts), c->err);
		else json_decref(texts);
	}
	if (o->json) nr_table_free(t);
	else cli_print_table(t);
	return c->err->code;
}
