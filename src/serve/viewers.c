/* Viewers: see viewers.h. */
#include "serve/viewers.h"

#include <stdio.h>
#include <string.h>

static bool wants(const struct nr_viewer *v, const struct nr_event *e)
{
	if (!e->about) return true;
	return v->of ? e->about == v->of || e->about->part_of == v->of : e->listed;
}

static void begin_anew(struct nr_viewer *v, const struct nr_backlog *r)
{
	char mark[32];
	v->next = r->next;
	snprintf(v->note, sizeof v->note, "id: %s\nevent: reload\ndata: {}\n\n", nr_backlog_mark(r, r->next, mark, sizeof mark));
}

void nr_viewer_init(struct nr_viewer *v, const struct nr_backlog *r, const struct nr_served *of, const char *from)
{
	*v = (struct nr_viewer){ .of = of };
	if (nr_backlog_after(r, from, &v->next)) snprintf(v->note, sizeof v->note, "retry: 3000\n\n");
	else begin_anew(v, r);
}

bool nr_viewer_ready(struct nr_viewer *v, const struct nr_backlog *r)
{
	if (v->note[0]) return true;
	for (const struct nr_event *e; !v->offset && (e = nr_backlog_at(r, v->next)) && !wants(v, e);) v->next++;
	return v->next != r->next;
}

void nr_viewer_beat(struct nr_viewer *v)
{
	if (!v->note[0]) snprintf(v->note, sizeof v->note, ":\n\n");
}

static size_t send_note(struct nr_viewer *v, char *buf, size_t max)
{
	const size_t size = strlen(v->note), n = size < max ? size : max;
	memcpy(buf, v->note, n);
	memmove(v->note, v->note + n, size - n + 1);
	return n;
}

static size_t send_event(struct nr_viewer *v, const struct nr_event *e, char *buf, size_t max)
{
	const size_t rest = e->size - v->offset, n = rest < max ? rest : max;
	memcpy(buf, e->text + v->offset, n);
	v->offset += n;
	if (v->offset == e->size) v->offset = 0, v->next++;
	return n;
}

size_t nr_viewer_read(struct nr_viewer *v, const struct nr_backlog *r, char *buf, size_t max, bool *lost)
{
	size_t n = 0;
	*lost = false;
	while (n < max && nr_viewer_ready(v, r)) {
		const struct nr_event *e = nr_backlog_at(r, v->next);
		if (v->note[0] && !v->offset) n += send_note(v, buf + n, max - n);
		else if (e) n += send_event(v, e, buf + n, max - n);
		else if (v->offset) return *lost = true, n;
		else begin_anew(v, r);
	}
	return n;
}
