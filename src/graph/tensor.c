#include "norma/tensor.h"
#include "base/real.h"

#include <stdio.h>

size_t nr_dtype_size(enum nr_dtype dtype)
{
	switch (dtype) {
	case NR_REAL: return sizeof(real);
	case NR_BF16: return 2;
	case NR_I32: return 4;
	case NR_U8: return 1;
	}
	return 0;
}

const char *nr_shape_text(const nr_t *x, char *buf, size_t size)
{
	int used = snprintf(buf, size, "%s", x->nd ? "" : "1");
	for (int i = 0; i < x->nd && used >= 0 && (size_t)used < size; i++)
		used += snprintf(buf + used, size - (size_t)used, i ? "x%lld" : "%lld", (long long)x->d[i]);
	return buf;
}
