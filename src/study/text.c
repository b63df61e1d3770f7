/* A study as a file: for those that flags made. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "plugin/plugin.h"
#include "study/published.h"
#include "study/settings.h"
#include "study/tune.h"

void nr_study_quote(struct nr_str *s, const char *text)
{
	nr_str_add(s, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\') nr_str_printf(s, "\\%c", *text);
		else if ((unsigned char)*text < 0x20) nr_str_printf(s, "\\x%02X", (unsigned char)*text);
		else nr_str_add_n(s, text, 1);
	}
	nr_str_add(s, "\"");
}

static void add_settings(struct nr_str *s, const struct nr_settings *all, const char *stage)
{
	for (int64_t i = 0; i < all->count; i++) {
		const struct nr_setting *one = &all->item[i];
		const bool foreign = one->stage && (!stage || strcmp(one->stage, stage));
		nr_str_printf(s, "%s%s%s%s: ", i ? ", " : "", foreign ? one->stage : "", foreign ? "." : "", one->key);
		if (one->count != 1) nr_str_add(s, "[");
		for (int64_t k = 0; k < one->count; k++) {
			if (k) nr_str_add(s, ", ");
			nr_study_quote(s, one->value[k]);
		}
		if (one->count != 1) nr_str_add(s, "]");
	}
}

static void add_text(struct nr_str *s, const char *key, const char *value)
{
	if (!value || !*value) return;
	nr_str_printf(s, "%s: ", key);
	nr_study_quote(s, value);
	nr_str_add(s, "\n");
}

int nr_study_text(const struct nr_study *study, struct nr_str *s)
{
	add_text(s, "title", study->title);
	add_text(s, "question", study->question);
	if (study->bound) add_text(s, "bound", study->bound);
	nr_plugins_yaml(s);
	nr_str_add(s, "base: {");
	add_settings(s, &study->base, NULL);
	nr_str_add(s, "}\nstages:\n");
	for (int64_t i = 0; i < study->stages; i++) {
		const struct nr_study_stage *stage = &study->stage[i];
		nr_str_printf(s, "  - %s: {run: %s", stage->name, stage->command->name);
		if (stage->from) {
			nr_str_add(s, ", from: ");
			const char *from = stage->file ? nr_arena_printf(study->arena, "%s/%s", stage->from, stage->file) : stage->from;
			nr_study_quote(s, from ? from : "");
		}
		nr_str_add(s, stage->own.count ? ", " : "");
		add_settings(s, &stage->own, stage->name);
		nr_str_add(s, "}\n");
	}
	nr_str_add(s, "arms:\n");
	for (int64_t i = 0; i < study->arms; i++) {
		nr_str_add(s, "  - {name: ");
		nr_study_quote(s, study->arm[i].name);
		nr_str_add(s, study->arm[i].own.count ? ", " : "");
		add_settings(s, &study->arm[i].own, NULL);
		nr_str_add(s, "}\n");
	}
	nr_str_add(s, "seeds: [");
	for (int64_t i = 0; i < study->seeds; i++) nr_str_printf(s, "%s%lld", i ? ", " : "", (long long)study->seed[i]);
	nr_str_add(s, "]\n");
	add_text(s, "metric", study->metric);
	nr_str_add(s, "also: [");
	for (int64_t i = 0; i < study->also.count; i++) {
		if (i) nr_str_add(s, ", ");
		nr_study_quote(s, study->also.item[i]);
	}
	nr_str_add(s, "]\n");
	add_text(s, "baseline", study->baseline ? study->baseline : study->arm[study->first].name);
	nr_str_printf(s, "parallel: %lld\n", (long long)study->parallel);
	add_text(s, "out", study->out);
	if (study->stop.on) {
		nr_str_add(s, "stop: {when: decided");
		if (study->stop.count) nr_str_printf(s, ", looks: %lld", (long long)study->stop.count);
		for (int64_t i = 0; i < study->stop.looks; i++)
			nr_str_printf(s, "%s%lld", i ? ", " : ", looks: [", (long long)study->stop.look[i]);
		nr_str_add(s, study->stop.looks ? "]}\n" : "}\n");
	}
	if (study->tuning) nr_str_add(s, "tuning: true\n");
	nr_tune_write(study, s);
	nr_published_write(study, s);
	return s->failed ? NR_EMEMORY : NR_OK;
}
