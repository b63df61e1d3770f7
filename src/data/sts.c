/* The files of semantic textual similarity. See sts.h. */
#include "data/sts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fetch/unpack.h"

const struct nr_sts_task nr_sts_tasks[NR_STS_TASKS] = {
	{ "STS12", { "MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews" }, false },
	{ "STS13", { "FNWN", "headlines", "OnWN" }, false },
	{ "STS14", { "deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news" }, false },
	{ "STS15", { "answers-forums", "answers-students", "belief", "headlines", "images" }, false },
	{ "STS16", { "answer-answer", "headlines", "plagiarism", "postediting", "question-question" }, false },
	{ "STSB", { "train", "dev", "test" }, true },
	{ "SICK", { "train", "dev", "test" }, true },
};

const struct nr_sts_task *nr_sts_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int i = 0; i < NR_STS_TASKS; i++) {
		if (!strcmp(nr_sts_tasks[i].name, name)) return &nr_sts_tasks[i];
		nr_near_try(&near, nr_sts_tasks[i].name);
	}
	nr_fail(err, NR_ENAME, "unknown STS task", name, "tasks are STS12 to STS16, STSB and SICK");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

/* The first of the places that is there, also packed; else false and the last, which the message names. */
static bool find(struct nr_str *path, const char *root, const char *form, const char *task, const char *subset)
{
	struct nr_str packed = { 0 };
	bool there = false;
	for (int i = 3; i >= 0 && !there; i--) {
		path->len = packed.len = 0;
		nr_str_printf(path, "%s/%s%s%s%s/%s.tsv", root, i & 1 ? "" : "sts/", i & 2 ? "" : form, i & 2 ? "" : "/", task, subset);
		nr_str_printf(&packed, "%s.gz", nr_str_text(path));
		there = !access(nr_str_text(path), F_OK) || !access(nr_str_text(&packed), F_OK);
	}
	nr_str_release(&packed);
	return there;
}

/* The archive that the original texts come in, if it lies where their folder would: ROOT/sts/raw.tar.gz or ROOT/raw.tar.gz. */
static bool find_archive(struct nr_str *path, const char *root)
{
	for (int i = 0; i < 2; i++) {
		path->len = 0;
		nr_str_printf(path, "%s/%sraw.tar.gz", root, i ? "" : "sts/");
		if (!path->failed && !access(nr_str_text(path), F_OK)) return true;
	}
	return false;
}

static int read_archive(struct nr_tsv *t, const char *archive, const char *task, const char *subset, const struct nr_tsv_form *form,
	struct nr_error *err)
{
	char name[128];
	struct nr_bytes b;
	snprintf(name, sizeof name, "raw/%s/%s.tsv", task, subset);
	int code = nr_unpack_bytes(&b, archive, name, NR_TSV_LIMIT, err);
	if (code) return code;
	code = nr_tsv_parse(t, b.data, b.size, form, name, err);
	nr_bytes_release(&b);
	return code;
}

int nr_sts_open(struct nr_tsv *t, const char *root, bool raw, const struct nr_sts_task *task, const char *subset, struct nr_error *err)
{
	static const struct nr_tsv_form form = { .texts = 2, .more = true, .low = 0, .high = 5 };
	struct nr_str path = { 0 }, archive = { 0 };
	const bool there = find(&path, root, raw ? "raw" : "tokenized", task->name, subset);
	int code;
	*t = (struct nr_tsv){ 0 };
	if (path.failed) code = nr_fail(err, NR_EMEMORY, "cannot read", task->name, "out of memory");
	else if (!there && raw && find_archive(&archive, root))
		code = read_archive(t, nr_str_text(&archive), task->name, subset, &form, err);
	else code = nr_tsv_read(t, nr_str_text(&path), &form, err);
	if (code == NR_EIO)
		nr_hint(err, "set --data-root (or NORMA_DATA) to the folder with sts/%s/TASK/SUBSET.tsv%s", raw ? "raw" : "tokenized",
			raw ? " or sts/raw.tar.gz" : "");
	nr_str_release(&path);
	nr_str_release(&archive);
	return code;
}
