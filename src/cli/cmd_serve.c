/* norma serve [RUN|STUDY|DIR...]: the pages of runs and studies, live. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli.h"
#include "serve/serve.h"
#include "study.h"

struct serve { int64_t port; char *host; bool no_token, json; };

static const struct nr_option options[] = {
	NR_OPT_INT(struct serve, port, 7317, 0, 65535, "port; 0: any free one"),
	NR_OPT_STRING(struct serve, host, "", "address of this machine to listen on, for other machines; empty: this machine only"),
	NR_OPT_BOOL(struct serve, no_token, "0", "any user of this machine may read, without the token"),
	NR_OPT_BOOL(struct serve, json, "0", "print the address as one line of JSON"),
	NR_OPT_END
};

struct told { const char *host; bool json; struct nr_error *err; };

static void tell(void *context, const struct nr_serve_start *start)
{
	const struct told *t = context;
	char url[256], name[HOST_NAME_MAX + 1] = "127.0.0.1";
	const bool six = t->host && strchr(t->host, ':'), all = t->host && (!strcmp(t->host, "0.0.0.0") || !strcmp(t->host, "::"));
	if (all && gethostname(name, sizeof name - 1)) snprintf(name, sizeof name, "localhost");
	snprintf(url, sizeof url, "http://%s%s%s:%d/%s%s", six && !all ? "[" : "", t->host && !all ? t->host : name,
		six && !all ? "]" : "", start->port, *start->token ? "?token=" : "", start->token);
	if (t->host)
		nr_log_line(NR_LOG_WARNING, "other machines can reach %s: whoever has the address can read, and nothing is encrypted",
			t->host);
	if (t->json) {
		cli_print_json(json_pack("{s:s, s:I, s:I}", "url", url, "runs", (json_int_t)start->runs, "studies",
			(json_int_t)start->studies), t->err);
	} else {
		printf("%s%s%s shows %lld run%s and %lld stud%s, and new ones as they start; Ctrl-C stops it\n", cli_bold(), url,
			cli_plain(), (long long)start->runs, start->runs == 1 ? "" : "s", (long long)start->studies,
			start->studies == 1 ? "y" : "ies");
	}
	fflush(stdout);
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct serve *o = conf;
	struct stat st;
	char usual[] = "runs", *item[] = { usual };
	const struct nr_list none = { item, 1 };
	if (!args->count && stat(usual, &st)) {
		cli_usage(c, "serve needs a folder: there is no runs/ here");
		return nr_hint(c->err, "norma serve DIR, where DIR holds runs or studies");
	}
	if (*o->host && o->no_token) {
		cli_usage(c, "--host needs the token: without it anyone on the network could read");
		return nr_hint(c->err, "leave out --no-token");
	}
	const char *host = *o->host ? o->host : NULL;
	struct told told = { .host = host, .json = o->json, .err = c->err };
	const struct nr_serve serve = { .roots = args->count ? *args : none, .port = o->port, .host = host, .open = o->no_token,
		.command = cli_command_line(c), .commands = cli_study_commands(c) };
	return nr_serve_run(&serve, tell, &told, c->err);
}

const struct cli_command cli_serve = {
	.name = "serve",
	.title = "show runs and studies live in a browser",
	.usage = "[RUN|STUDY|DIR...]",
	.about = "Serves pages on 127.0.0.1 and ::1: a list of the runs and studies in the folders (default: runs/) with their state, "
		 "progress\n"
		 "and time left; curves that grow during training; for a study the state of every stage and the table with intervals;\n"
		 "and the full report so far. New folders appear automatically.\n"
		 "\n"
		 "It only reads files, at the lowest priority, and does not disturb a training. Nothing can be changed through it;\n"
		 "requests that name another host are rejected. To look from another machine, forward the same port:\n"
		 "\n"
		 "    ssh -L 7317:127.0.0.1:7317 HOST\n"
		 "\n"
		 "The address that it prints ends with a token, new at every start: other users of this machine cannot read without it.\n"
		 "The first visit turns it into a cookie. --host listens on the network, always with a token and without encryption.",
	.conf_size = sizeof(struct serve),
	.options = options,
	.run = run,
};
