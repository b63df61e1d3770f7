/* MAT v5: see mat.h. What the library returns is believed only where class, rank, sizes and bytes fit together. */
#include "data/mat.h"

#include <errno.h>
#include <fcntl.h>
#include <matio.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* 124 bytes of text and offsets, version 0x0100, and "IM" for little-endian. Checked here: for a version it
 * takes for HDF5,
 * or none, the library goes other ways and may write to standard error. */
static int check_header(const char *path, struct nr_error *err)
{
	unsigned char head[128];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return nr_fail(err, NR_EIO, "cannot read", path, "%s", strerror(errno));
	const ssize_t n = read(fd, head, sizeof head);
	close(fd);
	if (n != sizeof head) return nr_fail(err, NR_EFORMAT, "cannot read", path,
		"it is shorter than the 128 bytes of a MAT header");
	if (head[124] == 0 && head[125] == 2)
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is MAT v7.3 (HDF5) instead of v5");
	if (memcmp(head + 124, "\0\1IM", 4)) return nr_fail(err, NR_EFORMAT, "cannot read", path,
		"it is not a little-endian MAT v5 file");
	return NR_OK;
}

static size_t width(enum matio_classes class)
{
	switch (class) {
	case MAT_C_DOUBLE: case MAT_C_INT64: case MAT_C_UINT64: return 8;
	case MAT_C_SINGLE: case MAT_C_INT32: case MAT_C_UINT32: return 4;
	case MAT_C_INT16: case MAT_C_UINT16: return 2;
	case MAT_C_INT8: case MAT_C_UINT8: return 1;
	default: return 0;
	}
}

static const char *measure(struct nr_mat *m, const matvar_t *v, int64_t max)
{
	if (!width(v->class_type)) return "is not an array of numbers";
	if (v->isComplex) return "is complex";
	if (v->rank < 1 || v->rank > 4 || !v->dims) return "has more than four dimensions";
	m->rank = v->rank;
	m->count = 1;
	for (int i = 0; i < 4; i++) {
		const size_t d = i < v->rank ? v->dims[i] : 1;
		if (d > INT32_MAX || __builtin_mul_overflow(m->count, (int64_t)d, &m->count) ||
			m->count > max) return "is too large";
		m->dim[i] = (int64_t)d;
	}
	return m->count ? NULL : "is empty";
}

int nr_mat_read(struct nr_mat *m, const char *path, const char *name, int64_t max, struct nr_error *err)
{
	*m = (struct nr_mat){ 0 };
	if (check_header(path, err)) return err ? (int)err->code : NR_EFORMAT;
	mat_t *file = Mat_Open(path, MAT_ACC_RDONLY);
	if (!file) return nr_fail(err, NR_EFORMAT, "cannot read", path, "libmatio cannot read it as a MAT file");
	matvar_t *v = Mat_VarReadInfo(file, name);
	const char *wrong = v ? measure(m, v, max) : "is missing, or the file is incomplete";
	if (!wrong && Mat_VarReadDataAll(file, v)) wrong = "cannot be read: the file is damaged or incomplete";
	if (!wrong && (!v->data || v->isComplex || (size_t)v->data_size != width(v->class_type) ||
		v->nbytes != (size_t)m->count * width(v->class_type)))
		wrong = "has fewer numbers than its header states";
	Mat_Close(file);
	if (wrong) {
		Mat_VarFree(v);
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "variable '%s' %s", name, wrong);
	}
	m->var = v;
	return NR_OK;
}

double nr_mat_at(const struct nr_mat *m, int64_t i)
{
	const matvar_t *v = m->var;
	switch (v->class_type) {
	case MAT_C_DOUBLE: return ((const double *)v->data)[i];
	case MAT_C_SINGLE: return (double)((const float *)v->data)[i];
	case MAT_C_INT64: return (double)((const int64_t *)v->data)[i];
	case MAT_C_UINT64: return (double)((const uint64_t *)v->data)[i];
	case MAT_C_INT32: return ((const int32_t *)v->data)[i];
	case MAT_C_UINT32: return ((const uint32_t *)v->data)[i];
	case MAT_C_INT16: return ((const int16_t *)v->data)[i];
	case MAT_C_UINT16: return ((const uint16_t *)v->data)[i];
	case MAT_C_INT8: return ((const int8_t *)v->data)[i];
	default: return ((const uint8_t *)v->data)[i];
	}
}

const uint8_t *nr_mat_bytes(const struct nr_mat *m)
{
	const matvar_t *v = m->var;
	return v->class_type == MAT_C_UINT8 ? v->data : NULL;
}

void nr_mat_release(struct nr_mat *m)
{
	if (m->var) Mat_VarFree(m->var);
	*m = (struct nr_mat){ 0 };
}
