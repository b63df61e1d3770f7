/* The frame of a page: see page.h. */
#include "report/page.h"

#include "draw/html.h"
#include "draw/web.h"

void nr_page_open(struct nr_str *s, const char *title)
{
	nr_str_add(s, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
		"script-src 'unsafe-inline'\"/>\n<meta name=\"generator\" content=\"norma\"/>\n");
	nr_html_element(s, "title", NULL, title);
	nr_str_printf(s, "\n<style>\n%s\n%s</style>\n</head>\n<body>\n", nr_web_uplot_css, nr_web_report_css);
}

void nr_page_close(struct nr_str *s)
{
	nr_str_printf(s, "<script>\n//<![CDATA[\n%s\n%s//]]>\n</script>\n</body>\n</html>\n", nr_web_uplot_js, nr_web_report_js);
}
