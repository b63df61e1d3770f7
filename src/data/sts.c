/* The files of semantic textual similarity. See sts.h. */
#include "data/sts.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"

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
	nr_fail(err, NR_ENAME, "unknown STS task", name, "STS12 to STS16, STSB and SICK are known");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

/* The first of the places that is there, also packed; else the last, which the message names. */
static void find(struct nr_str *path, const char *root, const char *form, const char *task, const char *subset)
{
	struct nr_str packed = { 0 };
	for (int i = 3; i >= 0; i--) {
		path->len = packed.len = 0;
		nr_str_printf(path, "%s/%s%s%s%s/%s.tsv", root, i & 1 ? "" : "sts/", i & 2 ? "" : form, i & 2 ? "" : "/", task, subset);
		nr_str_printf(&packed, "%s.gz", nr_str_text(path));
		if (!access(nr_str_text(path), F_OK) || !access(nr_str_text(&packed), F_OK)) break;
	}
	nr_str_release(&packed);
}

int nr_sts_open(struct nr_tsv *t, const char *root, bool raw, const struct nr_sts_task *task, const char *subset, struct nr_error *err)
{
	static const struct nr_tsv_form form = { .texts = 2, .more = true, .low = 0, .high = 5 };
	struct nr_str path = { 0 };
	find(&path, root, raw ? "raw" : "tokenized", task->name, subset);
	*t = (struct nr_tsv){ 0 };
	const int code = path.failed ? nr_fail(err, NR_EMEMORY, "cannot read", task->name, "out of memory")
				     : nr_tsv_read(t, nr_str_text(&path), &form, err);
	if (code == NR_EIO)
		nr_hint(err, "--data-root (or NORMA_DATA) names the folder that holds sts/%s/TASK/SUBSET.tsv%s", raw ? "raw" : "tokenized",
			raw ? "; unpack raw.tar.gz in sts/" : "");
	nr_str_release(&path);
	return code;
}
