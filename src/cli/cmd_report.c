/* norma report RUN...|STUDY: one page of HTML that compares runs by their norms. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "report/report.h"
#include "study.h"

struct report { char *output, *title, *figures; int format; bool json; };
static const char *const formats[] = { "svg", "pdf", NULL };

static const struct nr_option options[] = {
	{ .name = "output", .type = NR_TSTRING, .offset = offsetof(struct report, output), .size = sizeof(char *), .text = "report.html",
	  .metavar = "FILE", .help = "the page to write", .letter = 'o' },
	CLI_TEXT(struct report, title, "", "TEXT", "title of the page; default: by the data"),
	CLI_TEXT(struct report, figures, "", "DIR", "also write every figure of the page, and captions.txt, into this folder"),
	NR_OPT_ENUM(struct report, format, "svg", formats, "format of the figures; PDF needs rsvg-convert of Debian's librsvg2-bin"),
	NR_OPT_BOOL(struct report, json, "0", "print one line of JSON that names the page"),
	NR_OPT_END
};

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct report *o = conf;
	if (!args->count) {
		cli_usage(c, "report needs the folder of at least one run, or of a study");
		return nr_hint(c->err, "norma report runs/*/");
	}
	const struct nr_report report = {
		.runs = *args, .commands = cli_study_commands(c), .title = o->title, .command = cli_command_line(c), .made = time(NULL),
		.figures = *o->figures ? o->figures : NULL, .format = formats[o->format]
	};
	if (!report.commands) return nr_fail(c->err, NR_EMEMORY, "cannot start", "report", "out of memory");
	int figures;
	if (nr_report_write(&report, o->output, &figures, c->err)) return c->err->code;
	if (o->json) return cli_print_json(json_pack("{s:s, s:i}", "report", o->output, "figures", figures), c->err);
	printf("%s\n", o->output);
	if (figures) printf("%d figures and captions.txt in %s\n", figures, o->figures);
	return NR_OK;
}

const struct cli_command cli_report = {
	.name = "report",
	.title = "make one HTML page of a study or of several runs",
	.usage = "RUN...|STUDY",
	.about = "Reads the folders of runs and writes one self-contained page: which norm plan wins and by how much, with 95 %\n"
		 "intervals; the curves of every metric; the spectra of the features and the reconstructions, if norma probe and\n"
		 "norma pretrain left any; and how each run was made. Runs that differ only in their seed form one arm. With several\n"
		 "seeds the interval is over seeds (Student's t), with one over the test samples (Wilson).\n"
		 "\n"
		 "For a study, finished or not: its table with intervals and tests, published numbers beside the measured ones,\n"
		 "accuracy against FLOPs and seconds, uniformity against accuracy, tuning, curves of each stage, spectra, what an\n"
		 "analyze stage measured, commands, machines, citations, and what failed.\n"
		 "\n"
		 "--figures DIR writes each figure as a file for papers, with text as text and without title or caption, and these\n"
		 "into captions.txt.\n"
		 "\n"
		 "The page says what a run lacks. It loads nothing else and works without scripts, on a phone, in dark mode and on\n"
		 "paper.",
	.conf_size = sizeof(struct report),
	.options = options,
	.reads_records = true,
	.run = run,
};
