/* norma-check64 [--plugin FILE.so]... NAME...: the part of `norma check` that is done in double. Linked with libnorma64. */
#include "check/check.h"

int main(int argc, char **argv) { return nr_check_twin(argc, argv, stdout, stderr); }
