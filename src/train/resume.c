/* Going on with a run: its settings, its checkpoint, and whether what the same bits depend on is still the same. */
#include "base/log.h"
#include "data/measure.h"
#include "math/isa.h"
#include "train/trainer.h"

int nr_trainer_settings(struct nr_trainer *t, struct nr_error *err)
{
	const char *out = t->c.out, *path = nr_trainer_path(t, "config.yaml");
	const bool force = t->c.force;
	if (nr_train_read(&t->c, path, t->arena, err)) {
		nr_hint(err, "--resume needs the directory of an earlier run");
		return err->code;
	}
	t->c.out = nr_arena_strdup(t->arena, out);
	t->c.resume = true;
	t->c.force = force;
	return NR_OK;
}

int nr_trainer_origin(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_origin *o = &t->origin;
	snprintf(o->isa, sizeof o->isa, "%s", nr_isa_name(nr_isa_active()));
	if (nr_source_digest(t->source, t->split, o->data, err)) return err->code;
	if (t->eval_split == t->split || !t->source->count[t->eval_split]) return NR_OK;
	return nr_source_digest(t->source, t->eval_split, o->eval_data, err);
}

static void add_change(struct nr_str *changes, const char *what) { nr_str_printf(changes, "%s%s", changes->len ? "; " : "", what); }

/* Checkpoints of version 0.2.0 do not say where they come from: an empty text is no difference. */
static bool differs(const char *before, const char *now) { return *before && *now && strcmp(before, now) != 0; }

static int compare_origins(struct nr_trainer *t, const struct nr_origin *before, struct nr_error *err)
{
	struct nr_str changes = { 0 };
	if (differs(before->data, t->origin.data)) add_change(&changes, "the training data are not what they were");
	if (differs(before->eval_data, t->origin.eval_data)) add_change(&changes, "the evaluation data are not what they were");
	const bool isa = differs(before->isa, t->origin.isa);
	if (isa) add_change(&changes, nr_arena_printf(t->arena, "it ran on %s, this is %s", before->isa, t->origin.isa));
	int code = NR_OK;
	if (changes.failed) code = nr_fail(err, NR_EMEMORY, "cannot resume", t->c.out, "out of memory");
	else if (changes.len && !t->c.force) {
		nr_fail(err, NR_EVALUE, "cannot resume", t->c.out, "%s", changes.text);
		code = isa ? nr_hint(err, "use NORMA_ISA=%s where the CPU has it, or --force for other bits", before->isa)
			   : nr_hint(err, "bring the old data back, or use --force to go on with other bits");
	} else if (changes.len) {
		nr_log_line(NR_LOG_WARNING, "resuming '%s' though %s", t->c.out, changes.text);
		t->forced = nr_arena_strdup(t->arena, changes.text);
	}
	nr_str_release(&changes);
	return code;
}

int nr_trainer_resume(struct nr_trainer *t, struct nr_error *err)
{
	const char *path = nr_trainer_path(t, "last.safetensors");
	struct nr_origin before;
	if (nr_checkpoint_origin(&before, path, err) || compare_origins(t, &before, err)) return err->code;
	struct nr_checkpoint k = nr_trainer_checkpoint(t);
	if (nr_checkpoint_read(&k, path, t->total, err)) return err->code;
	t->state = k.state;
	return NR_OK;
}
