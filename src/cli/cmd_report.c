/* norma report RUN...|STUDY: one page of HTML that compares runs by their norms. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "report/report.h"
#include "study.h"

struct report { char *output, *title; bool json; };

static const struct nr_option options[] = {
	{ .name = "output", .type = NR_TSTRING, .offset = offsetof(struct report, output), .size = sizeof(char *), .text = "report.html",
	  .metavar = "FILE", .help = "the page to write", .letter = 'o' },
	CLI_TEXT(struct report, title, "", "TEXT", "title of the page; default: by the data"),
	NR_OPT_BOOL(struct report, json, "0", "one line of JSON that names the page"),
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
		.runs = *args, .commands = cli_study_commands(c), .title = o->title, .command = cli_command_line(c), .made = time(NULL)
	};
	if (!report.commands) return nr_fail(c->err, NR_EMEMORY, "cannot start", "report", "out of memory");
	if (nr_report_write(&report, o->output, c->err)) return c->err->code;
	if (o->json) return cli_print_json(json_pack("{s:s}", "report", o->output), c->err);
	printf("%s\n", o->output);
	return NR_OK;
}

const struct cli_command cli_report = {
	.name = "report",
	.title = "a study, or runs compared, in one page of HTML",
	.usage = "RUN...|STUDY",
	.about = "Reads the folders of runs and writes one page that stands alone: which norm plan wins and by how much, with\n"
		 "95 % intervals; the curves of every metric; the spectra of the features and the reconstructions, where norma\n"
		 "probe and norma pretrain left them; and how each run came about. Runs that differ in nothing but the seed are\n"
		 "one arm. With several seeds the interval is over them (Student's t), with one over the test samples (Wilson).\n\n"
		 "Of a study's folder, finished or not: its table with intervals and tests, published numbers beside the measured\n"
		 "ones, accuracy against FLOPs and seconds, uniformity against accuracy, what tuning saw, curves of each stage,\n"
		 "spectra, what an analyze stage measured, commands, machines, citations, and what failed.\n\n"
		 "What a run lacks is said on the page. The page fetches nothing and can be read without scripts, on a phone, in\n"
		 "the dark and on paper.",
	.conf_size = sizeof(struct report),
	.options = options,
	.run = run,
};
