/* Fuzzer: any text as the state of a checkpoint. What is accepted is a state that a run can have, and is written as the same state. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_progress_state s, again;
	struct nr_error err = { 0 };
	char *text = strndup((const char *)data, size);
	if (!nr_state_read(&s, text, "fuzz", 1000, &err)) {
		assert(s.step >= 0 && s.step <= 1000 && s.best_step >= 0 && s.best_step <= s.step && s.stale >= 0 && s.eval_samples >= 0);
		char *own = nr_state_text(&s);
		assert(own && !nr_state_read(&again, own, "fuzz", 1000, NULL) && again.step == s.step);
		char *twice = nr_state_text(&again);
		assert(!strcmp(own, twice));
		free(own);
		free(twice);
	} else assert(err.detail[0]);
	free(text);
	return 0;
}
