/* CRC-32C (Castagnoli): polynomial 0x1EDC6F41, bits reflected, as iSCSI (RFC 3720, 12.1) and TFRecord files use it. */
#ifndef NR_CRC32C_H
#define NR_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc is 0 at first; the result of one piece goes on with the next. By the SSE4.2 instruction where the CPU has it. */
uint32_t nr_crc32c(uint32_t crc, const void *, size_t);
/* The same from a table: the reference, and what other CPUs use. */
uint32_t nr_crc32c_plain(uint32_t crc, const void *, size_t);

/* Checksums stored beside the bytes they cover are rotated and shifted, so that a checksum of data with checksums stays
 * useful (TensorFlow's record format). */
static inline uint32_t nr_crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
