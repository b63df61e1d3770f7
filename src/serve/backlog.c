/* The last events: see backlog.h. */
#include "serve/backlog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static struct nr_event *slot(struct nr_backlog *r, uint64_t number) { return &r->event[number % NR_BACKLOG_EVENTS]; }

static void drop_first(struct nr_backlog *r)
{
	struct nr_event *e = slot(r, r->first++);
	r->bytes -= e->size;
	free(e->text);
	*e = (struct nr_event){ 0 };
}

/* An event's id is the mark after it: who has seen it goes on from there. */
void nr_backlog_add(struct nr_backlog *r, const struct nr_served *about, bool listed, const char *kind, const char *data)
{
	struct nr_str s = { 0 };
	char mark[32];
	nr_str_printf(&s, "id: %s\nevent: %s\ndata: %s\n\n", nr_backlog_mark(r, r->next + 1, mark, sizeof mark), kind, data);
	const size_t size = s.len;
	char *text = nr_str_take(&s);
	while (r->first < r->next && (!text || r->next - r->first >= NR_BACKLOG_EVENTS || r->bytes + size > NR_BACKLOG_BYTES))
		drop_first(r);
	if (!text) {
		r->first = ++r->next;
		return;
	}
	*slot(r, r->next++) = (struct nr_event){ .about = about, .listed = listed, .text = text, .size = size };
	r->bytes += size;
}

const struct nr_event *nr_backlog_at(const struct nr_backlog *r, uint64_t number)
{
	return number >= r->first && number < r->next ? &r->event[number % NR_BACKLOG_EVENTS] : NULL;
}

const char *nr_backlog_mark(const struct nr_backlog *r, uint64_t next, char *buf, size_t size)
{
	snprintf(buf, size, "%" PRIx32 ".%" PRIu64, r->session, next);
	return buf;
}

bool nr_backlog_after(const struct nr_backlog *r, const char *text, uint64_t *next)
{
	char session[16];
	int64_t number = 0;
	snprintf(session, sizeof session, "%" PRIx32 ".", r->session);
	const size_t n = strlen(session);
	if (!text || strncmp(text, session, n) || !nr_parse_int(text + n, &number) || number < 0) return false;
	*next = (uint64_t)number;
	return *next >= r->first && *next <= r->next;
}

void nr_backlog_release(struct nr_backlog *r)
{
	while (r->first < r->next) drop_first(r);
}
