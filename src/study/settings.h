/* Settings of a study: which stage gets which, and what is wrong with them. Inside of src/study. */
#ifndef NR_STUDY_SETTINGS_H
#define NR_STUDY_SETTINGS_H

#include "study/study.h"

struct nr_str;

/* Whether the study itself gives this option to its runs. */
bool nr_study_reserved(const char *key);
/* Does this setting of base or an arm go to that stage? */
bool nr_setting_goes_to(const struct nr_study *, const struct nr_setting *, int64_t stage);
/* One more error: at a node of the file, or of the study without one (err keeps the first). */
void nr_study_complain(const struct nr_study *, const struct nr_yaml_node *, struct nr_error *, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* "[a, b]" or "a"; in the arena; NULL: out of memory. */
const char *nr_setting_text(const struct nr_setting *, struct nr_arena *);
/* In double quotes, which read back every text. */
void nr_study_quote(struct nr_str *, const char *text);

#endif
