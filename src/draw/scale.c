/* Axes: see scale.h. */
#include "draw/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double LARGEST = 1e100;                    /* differences and squares stay finite */
static const double LEAST_SPREAD = 1e-7;                /* of a range, as a part of its values: less is noise of a float */

bool nr_ruler_takes(bool log, double v) { return isfinite(v) && fabs(v) <= LARGEST && (!log || v > 1 / LARGEST); }

void nr_ruler_fit(struct nr_ruler *a, double lo, double hi, bool log)
{
	a->log = log;
	const double size = fmax(fabs(lo), fabs(hi));
	if (log && hi < lo * 1.2) {
		lo /= 2, hi *= 2;
	} else if (!log && !(hi - lo > size * LEAST_SPREAD)) {
		const double pad = size > 0 ? size * 0.05 : 1;
		lo -= pad, hi += pad;
	}
	a->lo = lo;
	a->hi = hi;
}

double nr_ruler_at(const struct nr_ruler *a, double v)
{
	const double share = a->log ? log(v / a->lo) / log(a->hi / a->lo) : (v - a->lo) / (a->hi - a->lo);
	return a->from + share * (a->to - a->from);
}

/* ---- ticks ------------------------------------------------------------------------------------------------------------- */

static int linear_ticks(const struct nr_ruler *a, int about, double *tick, double *step)
{
	const double raw = (a->hi - a->lo) / about, power = pow(10, floor(log10(raw)));
	const double lead = raw / power;
	const double distance = (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10) * power;
	const double first = ceil(a->lo / distance - 1e-6);
	int n = 0;
	for (; n < NR_MAX_TICKS && (first + n) * distance <= a->hi + 1e-6 * distance; n++) tick[n] = (first + n) * distance;
	if (!n) tick[n++] = a->lo;
	*step = distance;
	return n;
}

static int log_ticks(const struct nr_ruler *a, int about, double *tick)
{
	static const double lead[] = { 1, 2, 5 };
	const double decades = log10(a->hi / a->lo);
	const int leads = decades * 3 <= about + 2 ? 3 : 1, every = decades > about + 2 ? (int)ceil(decades / about) : 1;
	int n = 0;
	for (int e = (int)floor(log10(a->lo)); e <= (int)ceil(log10(a->hi)); e++) {
		for (int k = 0; k < leads && n < NR_MAX_TICKS; k++) {
			const double v = lead[k] * pow(10, e);
			if (e % every == 0 && v >= a->lo * (1 - 1e-9) && v <= a->hi * (1 + 1e-9)) tick[n++] = v;
		}
	}
	if (n < 2) tick[0] = a->lo, tick[1] = a->hi, n = 2;
	return n;
}

int nr_ruler_ticks(const struct nr_ruler *a, int about, double tick[NR_MAX_TICKS], double *step)
{
	if (about < 1) about = 1;
	if (about > NR_MAX_TICKS / 2) about = NR_MAX_TICKS / 2;
	*step = 0;
	return a->log ? log_ticks(a, about, tick) : linear_ticks(a, about, tick, step);
}

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

static void power_text(int e, char *buf, size_t size)
{
	static const char *const digit[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
	char plain[16];
	snprintf(plain, sizeof plain, "%d", e < 0 ? -e : e);
	size_t n = (size_t)snprintf(buf, size, "10%s", e < 0 ? "⁻" : "");
	for (const char *p = plain; *p && n < size; p++) n += (size_t)snprintf(buf + n, size - n, "%s", digit[*p - '0']);
}

/* Digits in groups of three from 10 000 on, by a narrow space; a true minus sign. */
static const char *plain_text(double v, int decimals, char *buf, size_t size)
{
	char digits[64], *p = digits;
	snprintf(digits, sizeof digits, "%.*f", decimals, v);
	size_t n = 0;
	buf[0] = 0;
	if (*p == '-') n += (size_t)snprintf(buf, size, "%s", strpbrk(p, "123456789") ? "−" : ""), p++;
	const size_t whole = strcspn(p, ".");
	for (size_t i = 0; p[i] && n < size; i++) {
		if (i && i < whole && whole > 4 && (whole - i) % 3 == 0) n += (size_t)snprintf(buf + n, size - n, "\u202f");
		if (n < size) n += (size_t)snprintf(buf + n, size - n, "%c", p[i]);
	}
	return buf;
}

const char *nr_tick_text(double v, double step, char *buf, size_t size)
{
	const double unit = step > 0 ? step : fabs(v);
	if (v == 0 || (step > 0 && fabs(v) < 1e-9 * step)) return snprintf(buf, size, "0"), buf;
	const int e = (int)floor(log10(unit) + 1e-9), top = (int)floor(log10(fabs(v)) + 1e-9);
	if (e >= (step > 0 ? -6 : -4) && e <= 5 && top < 15) return plain_text(v, e < 0 ? -e : 0, buf, size);  /* all ticks alike */
	char lead[32], power[64];
	plain_text(v / pow(10, top), top > e ? (top - e > 6 ? 6 : top - e) : 0, lead, sizeof lead);
	power_text(top, power, sizeof power);
	if (!strcmp(lead, "1")) snprintf(buf, size, "%s", power);
	else snprintf(buf, size, "%s×%s", lead, power);
	return buf;
}

const char *nr_short_text(double v, char *buf, size_t size)
{
	if (!isfinite(v)) return snprintf(buf, size, "–"), buf;
	return nr_tick_text(v, v == 0 ? 1 : pow(10, floor(log10(fabs(v))) - 2), buf, size);
}

/* ---- thinning ---------------------------------------------------------------------------------------------------------- */

static int64_t add(int64_t *keep, int64_t count, int64_t i)
{
	if (count && keep[count - 1] >= i) return count;
	keep[count] = i;
	return count + 1;
}

/* The least, the largest and a bad one of [from, to), in their order. */
static int64_t thin_bucket(const double *y, int64_t from, int64_t to, bool log, int64_t *keep, int64_t count)
{
	int64_t pick[3] = { -1, -1, -1 };               /* least, largest, bad */
	for (int64_t i = from; i < to; i++) {
		if (!nr_ruler_takes(log, y[i])) {
			pick[2] = i;
			continue;
		}
		if (pick[0] < 0 || y[i] < y[pick[0]]) pick[0] = i;
		if (pick[1] < 0 || y[i] > y[pick[1]]) pick[1] = i;
	}
	for (int round = 0; round < 3; round++) {
		int64_t next = -1;
		for (int k = 0; k < 3; k++)
			if (pick[k] >= 0 && (!count || pick[k] > keep[count - 1]) && (next < 0 || pick[k] < next)) next = pick[k];
		if (next >= 0) count = add(keep, count, next);
	}
	return count;
}

int64_t nr_thin(const double *y, int64_t n, int64_t buckets, bool log, int64_t *keep)
{
	int64_t count = 0;
	if (buckets < 1) buckets = 1;
	if (n <= 3 * buckets) {
		for (; count < n; count++) keep[count] = count;
		return count;
	}
	count = add(keep, count, 0);
	for (int64_t b = 0; b < buckets; b++)
		count = thin_bucket(y, b * n / buckets, (b + 1) * n / buckets, log, keep, count);
	return add(keep, count, n - 1);
}
