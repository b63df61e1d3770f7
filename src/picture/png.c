/* PNG through libpng. What it finds is brought to 8 bits, grey or RGB: palettes are looked up, 16 bits lose their lower half,
 * alpha is dropped (Pillow's convert does not blend either). Label maps keep their numbers instead (nr_picture_numbers).
 *
 * libpng reports by longjmp: all that must survive one lives in struct reader, outside of the function that sets the jump. */
#include "picture/picture.h"

#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/bytes.h"
#include "base/save.h"
#include "base/str.h"

struct reader {
	png_structp png;
	png_infop info;
	const uint8_t *bytes;
	size_t left;
	char message[160];
	png_bytep *row;
	struct nr_picture raw;          /* channels as the file has them, when those wanted differ; 16 bits */
	struct nr_palette *numbers;     /* no colours are wanted but the numbers of the file, and its palette */
	bool wide;                      /* 16 bits, of numbers */
};

static void failed(png_structp png, png_const_charp message)
{
	struct reader *r = png_get_error_ptr(png);
	strncpy(r->message, message, sizeof r->message - 1);
	png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {}

static void feed(png_structp png, png_bytep to, size_t n)
{
	struct reader *r = png_get_io_ptr(png);
	if (n > r->left) png_error(png, "the file is incomplete");
	memcpy(to, r->bytes, n);
	r->bytes += n;
	r->left -= n;
}

/* Pixels as the file has them, one byte each, or two. */
static void keep_numbers(struct reader *r, int colour)
{
	png_colorp palette;
	int count = 0;
	r->wide = colour == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(r->png, r->info) == 16;
	png_set_packing(r->png);
	if (!r->wide) png_set_strip_16(r->png);
	if (colour == PNG_COLOR_TYPE_PALETTE) png_get_PLTE(r->png, r->info, &palette, &count);
	*r->numbers = (struct nr_palette){ .count = count };
	for (int i = 0; i < count; i++)
		memcpy(r->numbers->colour[i], (uint8_t[]){ palette[i].red, palette[i].green, palette[i].blue }, 3);
}

/* Header and transformations; the width, height and channels that rows will have. */
static bool read_head(struct reader *r, png_uint_32 *h, png_uint_32 *w, int *channels)
{
	if (setjmp(png_jmpbuf(r->png))) return false;
	png_set_user_limits(r->png, NR_PICTURE_SIDE, NR_PICTURE_SIDE);
	png_read_info(r->png, r->info);
	const int colour = png_get_color_type(r->png, r->info);
	if (r->numbers) {
		keep_numbers(r, colour);
	} else {
		if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
		if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(r->png);
		png_set_strip_16(r->png);
	}
	png_set_strip_alpha(r->png);
	png_set_interlace_handling(r->png);
	png_read_update_info(r->png, r->info);
	*h = png_get_image_height(r->png, r->info);
	*w = png_get_image_width(r->png, r->info);
	*channels = png_get_channels(r->png, r->info);
	return true;
}

static bool read_rows(struct reader *r)
{
	if (setjmp(png_jmpbuf(r->png))) return false;
	png_read_image(r->png, r->row);
	png_read_end(r->png, NULL);
	return true;
}

static int complain(const struct reader *r, const char *name, struct nr_error *err)
{
	nr_fail(err, NR_EFORMAT, "cannot decode", name, "PNG: %s", r->message);
	return nr_hint(err, "the file is damaged: copy it again or leave it out");
}

/* The lower halves of 16 bits, if the upper ones are 0. */
static int narrow(const struct reader *r, png_uint_32 h, png_uint_32 w, struct nr_picture *p, const char *name, struct nr_error *err)
{
	const int code = nr_picture_room(p, h, w, 1, name, err);
	for (size_t i = 0; !code && i < (size_t)h * w; i++) {
		const uint8_t *v = r->raw.pixels + 2 * i;
		if (v[0])
			return nr_fail(err, NR_EVALUE, "cannot use the labels of", name, "pixel (%zu,%zu) is %d, and 255 is the most",
				i % w,
				i / w, v[0] << 8 | v[1]);
		p->pixels[i] = v[1];
	}
	return code;
}

static int decode(struct reader *r, struct nr_picture *p, int32_t wanted, const char *name, struct nr_error *err)
{
	png_uint_32 h, w;
	int channels;
	if (!read_head(r, &h, &w, &channels)) return complain(r, name, err);
	const int bytes = channels * (r->wide ? 2 : 1);
	struct nr_picture *to = r->wide || (wanted && wanted != channels) ? &r->raw : p;
	int code = nr_picture_room(to, h, r->wide ? 2 * (int64_t)w : w, channels, name, err);
	if (code) return code;
	if (png_get_rowbytes(r->png, r->info) != (size_t)w * (size_t)bytes)
		return nr_fail(err, NR_EFORMAT, "cannot decode", name, "PNG: rows of %zu bytes for %u pixels",
			png_get_rowbytes(r->png, r->info), (unsigned)w);
	r->row = malloc(h * sizeof *r->row);
	if (!r->row) return nr_fail(err, NR_EMEMORY, "cannot decode", name, "out of memory for %u rows", (unsigned)h);
	for (png_uint_32 y = 0; y < h; y++) r->row[y] = to->pixels + (size_t)y * w * (size_t)bytes;
	if (!read_rows(r)) return complain(r, name, err);
	if (r->wide) return narrow(r, h, w, p, name, err);
	return to == p ? NR_OK : nr_picture_convert(to, wanted, p, err);
}

static int decode_as(struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, struct nr_palette *numbers,
	const char *name, struct nr_error *err)
{
	struct reader r = { .bytes = bytes, .left = size, .numbers = numbers };
	r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, failed, ignore);
	r.info = r.png ? png_create_info_struct(r.png) : NULL;
	int code;
	if (r.info) {
		png_set_read_fn(r.png, &r, feed);
		code = decode(&r, p, channels, name, err);
	} else
		code = nr_fail(err, NR_EMEMORY, "cannot decode", name, "out of memory for the PNG decoder");
	png_destroy_read_struct(&r.png, &r.info, NULL);
	free(r.row);
	nr_picture_release(&r.raw);
	return code;
}

int nr_decode_png(struct nr_picture *p, const uint8_t *bytes, size_t size, int32_t channels, const char *name, struct nr_error *err)
{
	return decode_as(p, bytes, size, channels, NULL, name, err);
}

int nr_picture_numbers(struct nr_picture *p, const char *path, struct nr_palette *palette, struct nr_error *err)
{
	struct nr_bytes b;
	if (nr_bytes_map(&b, path, err)) return err ? (int)err->code : NR_EIO;
	const bool png = b.size > 8 && !png_sig_cmp(b.data, 0, 8);
	const int code = png ? decode_as(p, b.data, b.size, 0, palette, path, err)
			     : nr_fail(err, NR_EFORMAT, "cannot use the labels of", path, "they must be a PNG file");
	nr_bytes_release(&b);
	return code;
}

void nr_png_size(const char *path, int32_t *h, int32_t *w)
{
	struct nr_bytes b;
	*h = *w = 0;
	if (nr_bytes_map(&b, path, &(struct nr_error){ 0 })) return;
	for (int i = 16; i < 24 && b.size >= 24 && !png_sig_cmp(b.data, 0, 8); i++) {
		int32_t *to = i < 20 ? w : h;
		*to = (int32_t)((uint32_t)*to << 8 | b.data[i]);
	}
	nr_bytes_release(&b);
}

struct writer {
	png_structp png;
	png_infop info;
	char message[160];
	struct nr_str out;
};

static void write_failed(png_structp png, png_const_charp message)
{
	struct writer *w = png_get_error_ptr(png);
	strncpy(w->message, message, sizeof w->message - 1);
	png_longjmp(png, 1);
}

static void take(png_structp png, png_bytep bytes, size_t n)
{
	struct writer *w = png_get_io_ptr(png);
	nr_str_add_n(&w->out, (const char *)bytes, n);
	if (w->out.failed) png_error(png, "out of memory");
}

static void flush(png_structp png) {}

static bool encode(struct writer *w, const struct nr_picture *p)
{
	if (setjmp(png_jmpbuf(w->png))) return false;
	png_set_IHDR(w->png, w->info, (png_uint_32)p->w, (png_uint_32)p->h, 8, p->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
		PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(w->png, w->info);
	for (int32_t y = 0; y < p->h; y++) png_write_row(w->png, p->pixels + (size_t)y * (size_t)p->w * (size_t)p->channels);
	png_write_end(w->png, NULL);
	return true;
}

int nr_picture_write_png(const struct nr_picture *p, const char *path, struct nr_error *err)
{
	if (!p->pixels) return nr_fail(err, NR_EVALUE, "cannot write", path, "the picture is empty");
	struct writer w = { 0 };
	w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, write_failed, ignore);
	w.info = w.png ? png_create_info_struct(w.png) : NULL;
	int code;
	if (!w.info)
		code = nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory for the PNG encoder");
	else {
		png_set_write_fn(w.png, &w, take, flush);
		code = encode(&w, p) ? nr_save_file(path, w.out.text, w.out.len, err) :
				       nr_fail(err, NR_EFORMAT, "cannot write", path, "PNG: %s", w.message);
	}
	png_destroy_write_struct(&w.png, &w.info);
	nr_str_release(&w.out);
	return code;
}
