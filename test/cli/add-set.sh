#!/bin/bash
# A new instruction set is one header and one line (CONTRIBUTING.md): the build compiles the kernels for it, and the command and the tests
# know it without another edit. This one has no intrinsics at all: the compiler makes vectors of 8 from what the CPU has.
set -euo pipefail
# shellcheck source=test/cli/add_one.inc
. "$(dirname "$0")/add_one.inc"
grep -q '"isa_available":[^]]*"avx2"' <<<"$("${NORMA:?}" doctor --no-measure --json)" || exit 77

add_line math/sets.def 'SET(x86_64, twin, -mavx2 -mfma -O1, CPU(avx2) && CPU(fma))' NR_ISA_COUNT
cat >"$dir/tree/src/math/fast/vec_twin.h" <<'END'
/* Vectors of 8 that the compiler makes. */
#define VL 8
#include "math/fast/types.h"

INL vf select(vi m, vf a, vf b) { return (vf)(((vi)a & m) | ((vi)b & ~m)); }
INL vf bc(float x) { return (vf){ x, x, x, x, x, x, x, x }; }
INL vi bci(int32_t x) { return (vi){ x, x, x, x, x, x, x, x }; }
INL vw bcw(uint64_t x) { return (vw){ x, x, x, x }; }
INL vf VMAX(vf a, vf b) { return select((vi)(a > b), a, b); }
INL vf VMIN(vf a, vf b) { return select((vi)(a < b), a, b); }
INL vf VSQRT(vf a)
{
	for (int i = 0; i < VL; i++) a[i] = __builtin_sqrtf(a[i]);
	return a;
}

INL vf ldn(const float *p, int64_t n)
{
	vf v = { 0 };
	for (int i = 0; i < VL && i < n; i++) v[i] = p[i];
	return v;
}
INL void stn(float *p, vf v, int64_t n)
{
	for (int i = 0; i < VL && i < n; i++) p[i] = v[i];
}
INL void stream_st(float *p, vf v) { st(p, v); }
INL void stream_end(void) {}

INL v4 bc4(float x) { return (v4){ x, x, x, x }; }
INL v4 max4(v4 a, v4 b) { return (v4)(((i4)a & (i4)(a > b)) | ((i4)b & ~(i4)(a > b))); }
INL v4 ld4n(const float *p, int64_t n)
{
	v4 v = { 0 };
	for (int i = 0; i < 4 && i < n; i++) v[i] = p[i];
	return v;
}
INL v4 low4(vf x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3); }
INL v4 high4(vf x) { return __builtin_shufflevector(x, x, 4, 5, 6, 7); }
INL vf from4(v4 x) { return __builtin_shufflevector(x, (v4){ 0 }, 0, 1, 2, 3, 4, 5, 6, 7); }
INL vf join4(const float *const p[4], int64_t n)
{
	return __builtin_shufflevector(ld4n(p[0], n), ld4n(p[1], n), 0, 1, 2, 3, 4, 5, 6, 7);
}
INL float hmax(vf v)
{
	const v4 x = max4(low4(v), high4(v)), y = max4(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
	return y[0] > y[1] ? y[0] : y[1];
}
INL float hsum(vf v)
{
	const v4 x = low4(v) + high4(v), y = x + __builtin_shufflevector(x, x, 2, 3, 0, 1);
	return y[0] + y[1];
}
#define H4(op, a, b, c, d) ((v4){ h##op(a), h##op(b), h##op(c), h##op(d) })
#define hadd hsum

INL vf pick(const float table[VL], vf index)
{
	vf v;
	for (int i = 0; i < VL; i++) v[i] = table[((vi)index)[i] & (VL - 1)];
	return v;
}
INL vd widen_low(vf x) { return __builtin_convertvector(low4(x), vd); }
INL vd widen_high(vf x) { return __builtin_convertvector(high4(x), vd); }

INL vw mul_low(vw a, vw b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
INL vw odd_from(vw even, vw odd) { return (even & 0xffffffffu) | (odd & ~(uint64_t)0xffffffffu); }
INL vw unpack_low(vw a, vw b) { return (vw){ a[0], b[0], a[2], b[2] }; }
INL vw unpack_high(vw a, vw b) { return (vw){ a[1], b[1], a[3], b[3] }; }

INL uint8_t byte(int32_t x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }
INL i8 widen_bytes(const uint8_t *p) { return (i8){ p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7] }; }
INL void st_bytes16(uint8_t *p, i8 a, i8 b)
{
	for (int i = 0; i < 8; i++) p[i] = byte(a[i]);
	for (int i = 0; i < 8; i++) p[8 + i] = byte(b[i]);
}
INL void st_bytes4x4(uint32_t p[4], i4 a, i4 b, i4 c, i4 d)
{
	const i4 x[4] = { a, b, c, d };
	for (int r = 0; r < 4; r++) p[r] = byte(x[r][0]) | (uint32_t)byte(x[r][1]) << 8 | (uint32_t)byte(x[r][2]) << 16;
}
INL i8 two_pixels(const uint8_t *p) { return (i8){ p[0], p[1], p[2], 0, p[3], p[4], p[5], 0 }; }
INL i8 two_weights(const int32_t *p) { return (i8){ p[0], p[0], p[0], p[0], p[1], p[1], p[1], p[1] }; }
INL i4 fold_halves(i8 x) { return (i4){ x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7] }; }
END
build norma unit-act unit-attention unit-resize unit-random unit-row unit-gemm

knows "the doctor" ',"twin"],"isa_available":' "$norma" doctor --no-measure --json
knows "help" "twin" "$norma" help train
knows "an option" "kernels" "$norma" --isa twin doctor --no-measure
NORMA_ISA=twin knows "the environment" "twin: asked for by NORMA_ISA" "$norma" doctor --no-measure
misses "a wrong name" "twin" "$norma" --isa twins doctor --no-measure
# every kernel against the reference, on each set
for unit in act attention resize random row gemm; do
	"$dir/b/test/unit-$unit" >"$dir/log" 2>&1 || fail "unit-$unit: $(tail -5 "$dir/log")"
done
exit "$failed"
