#!/bin/bash
# check-layers, check-bans and check-tags find what they are there for, and leave honest code alone.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# clean: an empty tree with one honest file of each kind
clean() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/{include/norma,bench,test,scripts,src/{base,math,graph,nn,data,norms,report,cli}}
	printf '#include "norma/real.h"\n' >"$tree/include/norma/tensor.h"
	printf '#include <stdio.h>\n#include "base/mem.h"\n#include "mem.h"\n' >"$tree/src/graph/plan.c"
	printf '/* no malloc(3), no exit(1) here */\nconst char *s = "printf(%%d)"; /* free(x) */\n' >"$tree/src/math/row.c"
	printf '#pragma omp simd reduction(+:s)\nnr_arena_free(a); x->free(x);\n' >"$tree/src/math/sum.c"
	printf 'struct nr_box { int x; };\nstruct nr_box b, *nr_box(struct nr_box *);\n' >"$tree/src/math/box.h"
	printf '#include "norma/norm.h"\n' >"$tree/src/nn/norm.c"
	printf '#include "bench/bench.h"\nprintf("x"); exit(1);\n' >"$tree/src/cli/norma.c"
}

# refuses CHECK FILE LINE TEXT: with TEXT in FILE, CHECK fails and names FILE:LINE
refuses() {
	clean
	printf '%b' "$4" >>"$tree/$2"
	if out=$("$NORMA_SOURCE/scripts/check-$1" "$tree" 2>&1); then
		echo "check-$1 accepted in $2: $4" >&2
		exit 1
	fi
	case $out in
	*"$2:$3: "*) ;;
	*) echo "check-$1 says of $2 '$out', without $2:$3" >&2; exit 1 ;;
	esac
}

clean
"$NORMA_SOURCE/scripts/check-layers" "$tree"
"$NORMA_SOURCE/scripts/check-bans" "$tree"
"$NORMA_SOURCE/scripts/check-tags" "$tree"

refuses layers src/base/err.c 2 '\n#include "math/row.h"\n'
refuses layers src/base/err.c 1 '#include <norma/graph.h>\n'
refuses layers src/math/gemm2.c 1 '#  include "graph/plan.h"\n'
refuses layers src/nn/site.c 1 '#include "norms/norms.def"\n'
refuses layers src/nn/load.c 1 '#include "data/load.h"\n'
refuses layers src/data/load.c 1 '#include "norma/tensor.h"\n'
refuses layers src/report/page.c 1 '#include "norma/trainer.h"\n'
refuses layers src/norms/rms.c 1 '#include "cli/cli.h"\n'
refuses layers src/norms/rms.c 1 '#include "../base/mem.h"\n'
refuses layers src/norms/rms.c 1 '#include "norma/unheard.h"\n'
refuses layers include/norma/err.h 1 '#include "norma/tensor.h"\n'
refuses layers bench/step.c 1 '#include "cli/cli.h"\n'

refuses bans src/math/a.c 1 '#pragma omp parallel for reduction(+:s)\n'
refuses bans src/math/a.c 2 '#pragma omp parallel for \\\\\n\treduction(+:s)\n'
refuses bans src/math/a.c 1 '#pragma omp atomic\n'
refuses bans src/math/a.c 1 '#pragma omp critical\n'
refuses bans src/math/a.c 2 '/* x\n*/ p = malloc(3);\n'
refuses bans src/norms/a.c 1 'free (p);\n'
refuses bans src/base/a.c 1 'fprintf(stderr, "x");\n'
refuses bans src/base/log.c 1 'abort();\n'
refuses bans src/base/a.c 1 '/* TO''DO: more */\n'
refuses bans src/base/a.c 2 'int x;\nint y; \n'
refuses bans src/base/a.c 1 '    int x;\n'
refuses bans src/base/a.c 1 "\tint $(printf '%0140d' 0);\n"
refuses bans src/base/a.c 701 "$(printf '%0701d' 0 | sed 's/0/x\\n/g')"
refuses tags src/nn/a.c 1 'enum nr_box { A };\n'
refuses tags src/math/box.h 3 '\ttypedef struct nr_box {\n'
refuses bans src/math/a.c 2 'int x;\n\treturn _mm256_add_ps(a, b);\n'
