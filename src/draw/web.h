/* The files of web/, embedded at build as text: web/report.css is nr_web_report_css. */
#ifndef NR_WEB_H
#define NR_WEB_H

extern const char nr_web_report_css[], nr_web_report_js[], nr_web_uplot_css[], nr_web_uplot_js[],
	nr_web_live_css[], nr_web_live_js[], nr_web_microscope_js[];

#endif
