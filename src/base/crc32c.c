/* CRC-32C: see crc32c.h. */
#include "base/crc32c.h"

#include <string.h>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

/* Remainders of the sixteen half bytes by the reflected polynomial 0x82F63B78. */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t nr_crc32c_plain(uint32_t crc, const void *data, size_t n)
{
	const unsigned char *p = data;
	crc = ~crc;
	for (; n; n--, p++) {
		crc = crc >> 4 ^ nibble[(crc ^ *p) & 15];
		crc = crc >> 4 ^ nibble[(crc ^ (unsigned)*p >> 4) & 15];
	}
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t fast(uint32_t crc, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t c = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		c = _mm_crc32_u64(c, word);
	}
	for (; n; n--, p++) c = _mm_crc32_u8((uint32_t)c, *p);
	return ~(uint32_t)c;
}
#endif

uint32_t nr_crc32c(uint32_t crc, const void *data, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2")) return fast(crc, data, n);
#endif
	return nr_crc32c_plain(crc, data, n);
}
