/* What the two halves of the run database share. */
#ifndef NR_RUNDB_SQL_H
#define NR_RUNDB_SQL_H

#include <sqlite3.h>

#include "record/rundb.h"

enum nr_rundb_statement { NR_SQL_FORGET, NR_SQL_INSERT, NR_SQL_FIND, NR_SQL_UPDATE, NR_SQL_CUT, NR_SQL_KEPT, NR_SQL_CLEAR_RESULTS,
	NR_SQL_METRIC, NR_SQL_RESULT, NR_SQL_STATE, NR_SQL_COUNT };

struct nr_rundb {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *statement[NR_SQL_COUNT];      /* prepared when first used */
	int64_t run;
};

/* An error from SQLite's last message. */
int nr_rundb_fail(const struct nr_rundb *, const char *what, struct nr_error *);

#endif
