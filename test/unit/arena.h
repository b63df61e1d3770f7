/* An arena for each test, or for all of a group: setup and teardown of cmocka. */
#ifndef TEST_ARENA_H
#define TEST_ARENA_H

#include "base/mem.h"

static struct nr_arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = nr_arena_make();
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	nr_arena_free(arena);
	return 0;
}

#endif
