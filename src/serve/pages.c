/* The live pages: see pages.h. */
#include "serve/pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/html.h"
#include "serve/follow.h"

static const char *const states[] = { "waiting", "running", "done", "stopped", "unfinished", "gone" };

static void open_page(struct nr_str *s, const char *title, const char *kind, const char *name)
{
	nr_str_add(s, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n"
		"<link rel=\"stylesheet\" href=\"/report.css\"/>\n<link rel=\"stylesheet\" href=\"/uplot.css\"/>\n"
		"<link rel=\"stylesheet\" href=\"/live.css\"/>\n");
	nr_html_element(s, "title", NULL, title);
	nr_str_add(s, "\n<script src=\"/uplot.js\" defer=\"defer\"></script>\n"
		"<script src=\"/live.js\" defer=\"defer\"></script>\n</head>\n");
	nr_str_printf(s, "<body data-kind=\"%s\" data-name=\"", kind);
	nr_html_text(s, name);
	nr_str_add(s, "\">\n");
}

static void close_page(struct nr_str *s) { nr_str_add(s, "</body>\n</html>\n"); }

static void add_link(struct nr_str *s, const char *before, const char *name, const char *text)
{
	nr_str_add(s, "<a href=\"");
	nr_href(s, before, name);
	nr_str_add(s, "\">");
	nr_html_text(s, text);
	nr_str_add(s, "</a>");
}

static void add_status(struct nr_str *s, const struct nr_served *e)
{
	nr_str_printf(s, "<div class=\"status %s\" data-status=\"", states[e->status.state]);
	nr_html_text(s, e->name);
	nr_str_add(s, "\">");
	nr_html_element(s, "b", "words", e->status.words);
	nr_str_printf(s, " <progress max=\"1\" value=\"%.4f\"%s></progress> ", isnan(e->status.share) ? 0 : e->status.share,
		isnan(e->status.share) ? " hidden=\"hidden\"" : "");
	nr_html_element(s, "span", "text", e->status.text);
	nr_str_add(s, "</div>");
}

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

/* What is running first, then what changed last. */
static int by_news(const void *a, const void *b)
{
	const struct nr_served *x = *(const struct nr_served *const *)a, *y = *(const struct nr_served *const *)b;
	const bool runs = x->status.state == NR_RUNNING, other = y->status.state == NR_RUNNING;
	if (runs != other) return runs ? -1 : 1;
	if (x->status.when != y->status.when) return x->status.when > y->status.when ? -1 : 1;
	return strverscmp(x->name, y->name);
}

static void add_list(struct nr_str *s, const struct nr_catalogue *c, bool study, const char *title)
{
	struct nr_html_table t = { .s = s };
	const struct nr_served *shown[NR_CATALOGUE_MAX];
	size_t n = 0;
	for (int64_t i = 0; i < c->count; i++)
		if (c->entry[i]->study == study && !c->entry[i]->part_of) shown[n++] = c->entry[i];
	if (!n) return;
	qsort(shown, n, sizeof *shown, by_news);
	nr_html_element(s, "h2", NULL, title);
	nr_html_table_open(&t, "list");
	nr_html_head(&t, NULL, study ? "study" : "run");
	nr_html_head(&t, NULL, "result");
	nr_html_head(&t, NULL, "state");
	for (size_t i = 0; i < n; i++) {
		const struct nr_served *e = shown[i];
		nr_html_row(&t);
		nr_html_cell_open(&t, NULL);
		add_link(s, study ? "/study/" : "/run/", e->name, e->name);
		nr_str_printf(s, "<small>%s</small>", e->title ? e->title : "");
		nr_html_cell_open(&t, "headline");
		nr_str_add(s, "<span data-headline=\"");
		nr_html_text(s, e->name);
		nr_str_add(s, "\">");
		nr_html_text(s, e->status.headline);
		nr_str_add(s, "</span>");
		nr_html_cell_open(&t, NULL);
		add_status(s, e);
	}
	nr_html_table_close(&t);
}

void nr_page_index(struct nr_str *s, const struct nr_catalogue *c)
{
	open_page(s, "norma", "index", "");
	nr_str_add(s, "<header><h1>Runs and studies</h1>\n<p class=\"meta\" id=\"link\" role=\"status\"></p></header>\n"
		"<main id=\"live\">\n");
	add_list(s, c, true, "Studies");
	add_list(s, c, false, "Runs");
	if (!c->count) nr_str_add(s, "<p class=\"notes\">There is no run and no study yet; this page shows them when they begin.</p>\n");
	if (c->count == NR_CATALOGUE_MAX)
		nr_html_printf(s, "Only the first %d folders are shown.", NR_CATALOGUE_MAX);
	nr_str_add(s, "</main>\n");
	close_page(s);
}

/* ---- one ------------------------------------------------------------------------------------------------------------------- */

void nr_page_entry(struct nr_str *s, const struct nr_served *e)
{
	open_page(s, e->name, e->study ? "study" : "run", e->name);
	nr_str_add(s, "<header><p class=\"meta\"><a href=\"/\">all runs and studies</a>");
	if (e->part_of) {
		nr_str_add(s, " · study ");
		add_link(s, "/study/", e->part_of->name, e->part_of->name);
	}
	nr_str_add(s, "</p>\n<h1>");
	nr_html_text(s, e->name);
	nr_str_add(s, "</h1>\n<p class=\"meta\" id=\"link\" role=\"status\"></p></header>\n<main id=\"live\">\n");
	if (e->study && e->title && *e->title) nr_str_printf(s, "<p class=\"verdict\">%s</p>\n", e->title);
	if (*e->status.headline) {
		nr_str_add(s, "<p class=\"verdict\"><span data-headline=\"");
		nr_html_text(s, e->name);
		nr_str_add(s, "\">");
		nr_html_text(s, e->status.headline);
		nr_str_add(s, "</span></p>\n");
	}
	add_status(s, e);
	nr_str_add(s, "<p>");
	add_link(s, "/report/", e->name, "The full report");
	nr_str_add(s, ", made from the files as they are now.</p>\n");
	nr_str_printf(s, "%s%s", e->head ? e->head : "", e->study && e->body ? e->body : "");
	nr_str_add(s, "</main>\n<section id=\"curves\"><h2>Curves</h2>\n<p class=\"notes scripted\"><label>Smoothing of what is noisy: "
		"<input type=\"range\" id=\"smooth\" min=\"0\" max=\"0.98\" step=\"0.02\" value=\"0.6\"/></label></p>\n"
		"<noscript><p class=\"notes\">Live curves need a script; the full "
		"report does not.</p></noscript>\n<ul class=\"legend\" id=\"legend\"></ul>\n<div class=\"charts\" id=\"charts\"></div>\n"
		"</section>\n");
	nr_str_printf(s, "<div id=\"after\">%s</div>\n", !e->study && e->body ? e->body : "");
	close_page(s);
}

void nr_page_note(struct nr_str *s, const char *title, const char *text)
{
	open_page(s, title, "note", "");
	nr_html_element(s, "h1", NULL, title);
	nr_html_element(s, "p", NULL, text);
	nr_str_add(s, "<p><a href=\"/\">All runs and studies</a></p>\n");
	close_page(s);
}

void nr_status_json(struct nr_str *s, const struct nr_served *e)
{
	nr_str_add(s, "{\"name\":");
	nr_json_text(s, e->name);
	nr_str_printf(s, ",\"state\":\"%s\",\"words\":", states[e->status.state]);
	nr_json_text(s, e->status.words);
	nr_str_add(s, ",\"text\":");
	nr_json_text(s, e->status.text);
	nr_str_add(s, ",\"headline\":");
	nr_json_text(s, e->status.headline);
	if (isnan(e->status.share)) nr_str_add(s, ",\"share\":null}");
	else nr_str_printf(s, ",\"share\":%.4f}", e->status.share);
}
