/* src/data/{captions,prompts}.c, src/tasks/caption_words.c: pictures with captions, classes in words, a vocabulary of captions. */
#include "unit/datasets.h"

#include "base/mem.h"
#include "data/captions.h"
#include "norma/tokenizer.h"
#include "tasks/caption_words.h"

/* Twenty pictures of two captions each; the pictures are not looked into here. */
static void make_list(void)
{
	struct nr_str text = { 0 };
	nr_str_add(&text, "caption,width,file_name\n");
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof name, "%d.png", i);
		made_text(made_path("%s", name), "x");
		nr_str_printf(&text, "\"one, of %d\",7,%d.png\nother of %d,7,%d.png\n", i, i, i, i);
	}
	made_text(made_path("captions.csv"), nr_str_text(&text));
	nr_str_release(&text);
}

static void captions_of_a_picture_stay_on_one_side(void **state)
{
	(void)state;
	char text[4200];
	make_list();
	snprintf(text, sizeof text, "captions:path=%s,val=0.3", made_path("captions.csv"));
	struct nr_source *s = made_source(text);
	assert_int_equal(s->count[NR_TRAIN] + s->count[NR_VAL], 40);
	assert_true(s->count[NR_VAL] > 0 && s->count[NR_VAL] < 20);
	for (int split = 0; split < 2; split++)
		for (int64_t i = 0; i < s->count[split]; i += 2) {
			int a, b;
			assert_int_equal(sscanf(nr_source_text(s, (enum nr_split)split, i, 0), "one, of %d", &a), 1);
			assert_int_equal(sscanf(nr_source_text(s, (enum nr_split)split, i + 1, 0), "other of %d", &b), 1);
			assert_int_equal(a, b);
		}
	assert_null(nr_captions_prompts(s));
	assert_int_equal(nr_source_label(s, NR_TRAIN, 0), -1);
	nr_source_close(s);
}

static void every_name_stands_in_every_template(void **state)
{
	(void)state;
	char lion[] = "sea_lion", owl[] = "owl", *names[] = { lion, owl };
	struct nr_arena *arena = nr_arena_make();
	struct nr_prompts p;
	struct nr_error err = { 0 };
	char templates[4200];
	made_text(made_path("templates.txt"), "a {} here\r\n\n  {}!  \n");
	snprintf(templates, sizeof templates, "%s", made_path("templates.txt"));
	assert_int_equal(nr_prompts_make(&p, "set", names, 2, NULL, templates, arena, &err), 0);
	assert_int_equal(p.templates, 2);
	static const char *const want[] = { "a sea lion here", "sea lion!", "a owl here", "owl!" };
	for (int i = 0; i < 4; i++) assert_string_equal(p.text[i], want[i]);
	assert_int_equal(nr_prompts_make(&p, "set", names, 2, NULL, "", arena, &err), 0);
	assert_string_equal(p.text[1], "a photo of a owl.");
	assert_int_equal(nr_prompts_make(&p, "set", NULL, 2, NULL, "", arena, &err), NR_EVALUE);
	nr_arena_free(arena);
}

static void the_vocabulary_has_every_word_and_spells_the_others(void **state)
{
	(void)state;
	char text[4200];
	const char *path;
	struct nr_arena *arena = nr_arena_make();
	struct nr_error err = { 0 };
	struct nr_tokenizer *t;
	struct nr_encoder *e;
	struct nr_encoding out;
	make_list();
	snprintf(text, sizeof text, "captions:path=%s,val=0", made_path("captions.csv"));
	struct nr_source *s = made_source(text);
	assert_int_equal(nr_caption_words(&path, s, NR_TRAIN, made_path("."), arena, &err), 0);
	assert_int_equal(nr_tokenizer_open(&t, path, &err), 0);
	assert_true(nr_tokenizer_find(t, "other") > 0 && nr_tokenizer_find(t, "17") > 0 && nr_tokenizer_find(t, ",") > 0);
	assert_int_equal(nr_encoder_make(&e, t, &err), 0);
	assert_int_equal(nr_encode(e, "Other of xyz", 12, NULL, 0, NULL, &out, &err), 0);
	assert_int_equal(out.count, 2 + 2 + 3);                 /* two words, three letters, [CLS] and [SEP] */
	nr_encoder_free(e);
	nr_tokenizer_close(t);
	nr_source_close(s);
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captions_of_a_picture_stay_on_one_side), cmocka_unit_test(every_name_stands_in_every_template),
		cmocka_unit_test(the_vocabulary_has_every_word_and_spells_the_others),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
