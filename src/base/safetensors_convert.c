/* safetensors, conversion of elements: see norma/safetensors.h. Data may be unaligned, so each
 * is copied out. */
#include <string.h>

#include "base/safetensors.h"

static double from_f32(uint32_t bits)
{
	float v;
	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

static double from_bf16(uint16_t bits)
{
	return from_f32((uint32_t)bits << 16);
}

static double from_f16(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double v = exponent == 31 ? (fraction ? NAN : INFINITY)
		 : exponent	  ? ldexp(1024 + fraction, exponent - 25)
				  : ldexp(fraction, -24);
	return bits >> 15 ? -v : v;
}

static int check_count(const struct nr_st_tensor *t, int64_t n, struct nr_error *err)
{
	int64_t have = nr_st_elements(t);
	if (have == n)
		return NR_OK;
	return nr_fail(err, NR_ESHAPE, "cannot copy tensor", t->name, "it has %lld elements instead of %lld",
		       (long long)have, (long long)n);
}

/* One case of a switch over dtypes: out[i] = f(element i of type T). */
#define CASE(D, T, f) \
	case D: \
		for (int64_t i = 0; i < n; i++) { \
			T v; \
			memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v); \
			out[i] = f(v); \
		} \
		break

#define WHOLE_CASES(f) \
	CASE(NR_ST_I64, int64_t, f); CASE(NR_ST_I32, int32_t, f); CASE(NR_ST_I16, int16_t, f); \
	CASE(NR_ST_I8, int8_t, f); CASE(NR_ST_U32, uint32_t, f); CASE(NR_ST_U16, uint16_t, f); \
	CASE(NR_ST_U8, uint8_t, f); CASE(NR_ST_BOOL, uint8_t, !!)

int nr_st_to_f64(const struct nr_st_tensor *t, double *out, int64_t n, struct nr_error *err)
{
	int e = check_count(t, n, err);
	if (e)
		return e;
	switch (t->dtype) {
		CASE(NR_ST_F64, double, );
		CASE(NR_ST_F32, uint32_t, from_f32);
		CASE(NR_ST_F16, uint16_t, from_f16);
		CASE(NR_ST_BF16, uint16_t, from_bf16);
		CASE(NR_ST_U64, uint64_t, (double));
		WHOLE_CASES((double));
	}
	return NR_OK;
}

int nr_st_to_f32(const struct nr_st_tensor *t, float *out, int64_t n, struct nr_error *err)
{
	int e = check_count(t, n, err);
	if (e)
		return e;
	switch (t->dtype) {
	case NR_ST_F32:
		if (n)
			memcpy(out, t->data, t->bytes);
		break;
		CASE(NR_ST_F64, double, (float));
		CASE(NR_ST_F16, uint16_t, (float)from_f16);
		CASE(NR_ST_BF16, uint16_t, (float)from_bf16);
		CASE(NR_ST_U64, uint64_t, (float));
		WHOLE_CASES((float));
	}
	return NR_OK;
}

int nr_st_to_i64(const struct nr_st_tensor *t, int64_t *out, int64_t n, struct nr_error *err)
{
	int e = check_count(t, n, err);
	if (e)
		return e;
	switch (t->dtype) {
		WHOLE_CASES();
	case NR_ST_U64:
		for (int64_t i = 0; i < n; i++) {
			uint64_t v;
			memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
			if (v > INT64_MAX)
				return nr_fail(err, NR_EVALUE, "cannot copy tensor", t->name,
					       "element %lld is too large", (long long)i);
			out[i] = (int64_t)v;
		}
		break;
	default:
		return nr_fail(err, NR_EVALUE, "cannot copy tensor", t->name,
			       "%s is not a type of whole numbers", nr_st_dtype_name(t->dtype));
	}
	return NR_OK;
}
