/* The files of SentEval's transfer tasks. See senteval.h. */
#include "data/senteval.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"

const struct nr_senteval_task nr_senteval_tasks[NR_SENTEVAL_TASKS] = {
	{ "MR", 2, false, false, false },
	{ "CR", 2, false, false, false },
	{ "SUBJ", 2, false, false, false },
	{ "MPQA", 2, false, false, false },
	{ "SST2", 2, true, true, false },
	{ "TREC", 6, true, false, false },
	{ "MRPC", 2, true, false, true },
};

const struct nr_senteval_task *nr_senteval_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (int i = 0; i < NR_SENTEVAL_TASKS; i++) {
		if (!strcmp(nr_senteval_tasks[i].name, name)) return &nr_senteval_tasks[i];
		nr_near_try(&near, nr_senteval_tasks[i].name);
	}
	nr_fail(err, NR_ENAME, "unknown transfer task", name, "tasks are MR, CR, SUBJ, MPQA, SST2, TREC and MRPC");
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

static void find(struct nr_str *path, const char *root, const char *task, const char *split)
{
	struct nr_str packed = { 0 };
	for (int i = 1; i >= 0; i--) {          /* without the folder first, so that a missing file is told with it */
		path->len = packed.len = 0;
		nr_str_printf(path, "%s/%s%s%s%s.tsv", root, i ? "" : "senteval/", task, split ? "/" : "", split ? split : "");
		nr_str_printf(&packed, "%s.gz", nr_str_text(path));
		if (!access(nr_str_text(path), F_OK) || !access(nr_str_text(&packed), F_OK)) break;
	}
	nr_str_release(&packed);
}

int nr_senteval_open(struct nr_tsv *t, const char *root, const struct nr_senteval_task *task, const char *split, struct nr_error *err)
{
	const struct nr_tsv_form form = { .texts = task->pairs ? 2 : 1, .whole = true, .low = 0, .high = task->classes - 1 };
	struct nr_str path = { 0 };
	find(&path, root, task->name, split);
	*t = (struct nr_tsv){ 0 };
	const int code = path.failed ? nr_fail(err, NR_EMEMORY, "cannot read", task->name, "out of memory")
				     : nr_tsv_read(t, nr_str_text(&path), &form, err);
	if (code == NR_EIO)
		nr_hint(err, "set --data-root (or NORMA_DATA) to the folder with senteval/%s%s%s.tsv.gz", task->name, split ? "/" : "",
			split ? split : "");
	nr_str_release(&path);
	return code;
}
