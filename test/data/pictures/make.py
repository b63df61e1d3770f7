#!/usr/bin/env python3
"""Writes the pictures of this folder and the tables files.def, resize.def and colour.def: what Pillow makes of them, as hashes.

Needs Pillow >= 13 (the order of its two resize passes changed there) and a C compiler with libpng and libjpeg for the kinds
that Pillow cannot write. Usage: make.py [FOLDER]"""
import os, PIL, subprocess, sys, tempfile
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

here = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))

def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = ((h ^ b) * 0x100000001b3) & 0xffffffffffffffff
    return f"0x{h:016x}"

def make(h, w, channels, kind):
    """The pictures that the tests make too: noise, slopes, black and white, dull."""
    v, out = 12345 + kind, bytearray()
    for i in range(h * w * channels):
        v = (v * 1664525 + 1013904223) & 0xffffffff
        b, x, y, c = v >> 24, i // channels % w, i // channels // w, i % channels
        out.append([b, (x * 5 + y * 3 + c * 40) & 255, 255 if b > 127 else 0, 60 + b % 90 + 20 * c][kind])
    return Image.frombytes("RGB" if channels == 3 else "L", (w, h), bytes(out))

WRITER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <png.h>
#include <jpeglib.h>
static unsigned v = 99;
static unsigned char next(void) { v = v * 1664525u + 1013904223u; return v >> 24; }
static void png(const char *name, int depth, int colour, int interlace)
{
	FILE *f = fopen(name, "wb");
	png_structp p = png_create_write_struct(PNG_LIBPNG_VER_STRING, 0, 0, 0);
	png_infop i = png_create_info_struct(p);
	png_init_io(p, f);
	png_set_IHDR(p, i, 23, 19, depth, colour, interlace, 0, 0);
	png_write_info(p, i);
	size_t n = png_get_rowbytes(p, i);
	png_bytep row[19];
	for (int y = 0; y < 19; y++) { row[y] = malloc(n); for (size_t k = 0; k < n; k++) row[y][k] = next(); }
	png_write_image(p, row);
	png_write_end(p, i);
	fclose(f);
}
static void ycck(const char *name)
{
	FILE *f = fopen(name, "wb");
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr e;
	c.err = jpeg_std_error(&e);
	jpeg_create_compress(&c);
	jpeg_stdio_dest(&c, f);
	c.image_width = 23, c.image_height = 19, c.input_components = 4, c.in_color_space = JCS_CMYK;
	jpeg_set_defaults(&c);
	jpeg_set_colorspace(&c, JCS_YCCK);
	jpeg_set_quality(&c, 90, 1);
	jpeg_start_compress(&c, 1);
	for (int y = 0; y < 19; y++) {
		unsigned char row[23 * 4], *r = row;
		for (int k = 0; k < 23 * 4; k++) row[k] = (k * 3 + y * 11 + k % 4 * 60) & 255;
		jpeg_write_scanlines(&c, &r, 1);
	}
	jpeg_finish_compress(&c);
	fclose(f);
}
int main(void)
{
	png("rgb16.png", 16, 2, 0); png("rgba16-interlaced.png", 16, 6, 1); png("la16.png", 16, 4, 0);
	png("grey16.png", 16, 0, 0); png("rgb-interlaced.png", 8, 2, 1); png("grey2.png", 2, 0, 0); png("grey4-interlaced.png", 4, 0, 1);
	ycck("ycck.jpg");
	return 0;
}
"""

def write_files():
    os.chdir(here)
    with tempfile.TemporaryDirectory() as d:
        open(f"{d}/w.c", "w").write(WRITER)
        subprocess.check_call(["cc", f"{d}/w.c", "-o", f"{d}/w", "-lpng", "-ljpeg"])
        subprocess.check_call([f"{d}/w"])
    colour, grey = make(29, 37, 3, 1), make(29, 37, 1, 1)
    colour.save("444.jpg", quality=90, subsampling=0)
    colour.save("422.jpg", quality=85, subsampling=1)
    colour.save("420.jpg", quality=80, subsampling=2)
    colour.save("progressive.jpg", quality=80, progressive=True)
    colour.save("rgb.jpg", quality=90, keep_rgb=True)
    grey.save("grey.jpg", quality=90)
    colour.convert("CMYK").save("cmyk.jpg", quality=90)
    colour.save("rgb.png")
    grey.save("grey.png")
    grey.convert("1").save("grey1.png")
    colour.quantize(13).save("palette.png", transparency=3)
    colour.quantize(200).save("palette200.png")
    alpha = colour.copy()
    alpha.putalpha(make(29, 37, 1, 0))
    alpha.save("rgba.png")
    la = grey.convert("LA")
    la.putalpha(make(29, 37, 1, 0))
    la.save("la.png")
    colour.save("exif-orientation.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0")
    Image.new("L", (4, 3000), 77).save("tall.png")
    held = lambda turn: b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0" + bytes([turn]) + b"\0\0\0\0\0\0\0"
    for turn in (2, 3, 4, 5, 7, 8):
        colour.save(f"exif-{turn}.jpg", exif=held(turn))
    colour.save("exif-6.png", exif=held(6))
    colour.save("exif-8.webp", lossless=True, exif=held(8))
    colour.save("exif-long.jpg", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x04\0\0\0\x01\0\0\0\x06\0\0\0\0")
    for turn in (2, 3, 4, 5, 6, 7, 8):
        colour.save(f"turned-{turn}.tif", compression="tiff_lzw", tiffinfo={274: turn})
    colour.save("lossless.webp", lossless=True)
    colour.save("lossy.webp", quality=80)
    alpha.save("alpha.webp", lossless=True, exact=True)
    colour.save("rgb.tif")
    colour.save("lzw.tif", compression="tiff_lzw")
    colour.convert("CMYK").save("cmyk.tif")
    grey.save("grey.tif", compression="packbits")
    colour.quantize(13).save("palette.tif")

def files():
    for name in sorted(os.listdir(here)):
        if name.split(".")[-1] not in ("jpg", "png", "webp", "tif"):
            continue
        im = ImageOps.exif_transpose(Image.open(os.path.join(here, name)))
        if im.mode == "I;16":  # Pillow clips; we take the upper half, as it does for colours
            im = Image.frombytes("L", im.size, bytes(v >> 8 for v in im.getdata()))
        rgb = im.convert("RGB")
        grey = im.mode in ("1", "L", "LA") or name == "la16.png"  # which Pillow opens as RGBA
        luma = (im if grey else rgb).convert("L")
        yield f'FILE("{name}", {im.size[1]}, {im.size[0]}, {1 if grey else 3}, {fnv(rgb.tobytes())}, {fnv(luma.tobytes())})'

FILTERS = ["NEAREST", "BOX", "BILINEAR", "BICUBIC", "LANCZOS"]

def resizes():
    sizes = [(1, 1), (2, 3), (7, 5), (16, 16), (17, 40), (33, 21), (64, 9), (90, 90)]
    n = 0
    for h, w in sizes:
        for H, W in [(1, 1), (5, 7), (h, 11), (13, w), (2 * h, 3 * w), (max(1, h // 3), max(1, w // 2)), (40, 33), (9, 60)]:
            n += 1
            c, kind, name = (3, 3, 1)[n % 3], n % 3, FILTERS[n % 5]
            for box in (None, (w * .1, h * .2, w * .93, h * .77), (float(w // 3), float(h // 4), float(w), float(h))):
                name = FILTERS[(n + (box is not None)) % 5]
                if name == "NEAREST" and box and box[0] != int(box[0]):
                    name = "LANCZOS"
                r = make(h, w, c, kind).resize((W, H), getattr(Image, name), box=box)
                b = box or (0, 0, w, h)
                yield (f"RESIZE({h}, {w}, {c}, {kind}, {H}, {W}, {name}, {b[0]!r}, {b[1]!r}, {b[2]!r}, {b[3]!r}, "
                       f"{fnv(r.tobytes())})")

def hue(im, f):
    h, s, v = im.convert("HSV").split()
    shift = int(f * 255)
    return Image.merge("HSV", (h.point([(i + shift) & 255 for i in range(256)]), s, v)).convert("RGB")

def solarize_add(im, add):
    return im.point([min(255, i + add) if i < 128 else i for i in range(256)] * len(im.getbands()))

def affine(im, m, f, fill):
    return im.transform(im.size, Image.AFFINE, m, resample=f, fillcolor=fill)

def colours():
    for c in (3, 1):
        for kind in range(4):
            im = make(31, 26, c, kind)
            def row(op, value, r):
                return f"COLOUR({op}, {c}, {kind}, {value!r}, {fnv(r.tobytes())})"
            for f in (0.0, 0.1, 0.37, 1.0, 1.4, 1.9):
                yield row("BRIGHTEN", f, ImageEnhance.Brightness(im).enhance(f))
                yield row("CONTRAST", f, ImageEnhance.Contrast(im).enhance(f))
                yield row("SATURATE", f, ImageEnhance.Color(im).enhance(f))
                yield row("SHARPEN", f, ImageEnhance.Sharpness(im).enhance(f))
            yield row("INVERT", 0, ImageOps.invert(im))
            yield row("AUTOCONTRAST", 0, ImageOps.autocontrast(im))
            yield row("EQUALIZE", 0, ImageOps.equalize(im))
            for b in (1, 3, 8):
                yield row("POSTERIZE", b, ImageOps.posterize(im, b))
            for t in (0, 100, 256):
                yield row("SOLARIZE", t, ImageOps.solarize(im, t))
            for a in (0, 33, 110):
                yield row("SOLARIZE_ADD", a, solarize_add(im, a))
            for r in (0.1, 0.6, 1.3, 2.0, 7.7, 40.0):
                yield row("BLUR", r, im.filter(ImageFilter.GaussianBlur(r)))
            if c == 3:
                for t in (-.5, -.1, .0, .25, .5):
                    yield row("HUE", t, hue(im, t))
            fill = (5, 130, 250) if c == 3 else 5
            for name in ("BILINEAR", "BICUBIC"):
                f = getattr(Image, name)
                for d in (-30.0, -7.25, 0.5, 27.0):
                    yield row("ROTATE_" + name, d, im.rotate(d, resample=f, fillcolor=fill))
                for s in (-.3, .11):
                    yield row("SHEAR_X_" + name, s, affine(im, (1, s, 0, 0, 1, 0), f, fill))
                    yield row("SHEAR_Y_" + name, s, affine(im, (1, 0, 0, s, 1, 0), f, fill))
                    yield row("TRANSLATE_X_" + name, s, affine(im, (1, 0, s * im.size[0], 0, 1, 0), f, fill))
                    yield row("TRANSLATE_Y_" + name, s, affine(im, (1, 0, 0, 0, 1, s * im.size[1]), f, fill))

write_files()
for name, what, rows in (("files", "name, h, w, channels; hash as RGB, as grey", files),
                         ("resize", "h, w, channels, kind; H, W, filter, box; hash", resizes),
                         ("colour", "operation, channels, kind, parameter; hash", colours)):
    with open(os.path.join(here, name + ".def"), "w") as out:
        out.write(f"/* Made by make.py with Pillow {PIL.__version__}. {what} */\n")
        out.writelines(r + "\n" for r in rows())
