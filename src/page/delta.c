/*-------------------------------------------------------------------------
 *
 * delta.c
 *	  Finding, encoding and applying the difference between two row images.
 *	  The format is in delta.h.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/delta.h"

/*
 * Edits closer than this are joined: the bytes between cost less than a new
 * edit's head.
 */
#define JOIN_GAP 2

int
varint_size(uint32 v)
{
	int			n = 1;

	while (v >= 0x80)
	{
		v >>= 7;
		n++;
	}
	return n;
}

char *
varint_put(char *p, uint32 v)
{
	while (v >= 0x80)
	{
		*p++ = (char) (v | 0x80);
		v >>= 7;
	}
	*p++ = (char) v;
	return p;
}

/* NULL if the number does not end before "end" */
const char *
varint_get(const char *p, const char *end, uint32 *v)
{
	uint32		res = 0;

	for (int shift = 0; shift < 32; shift += 7)
	{
		uint8		b;

		if (p >= end)
			return NULL;
		b = (uint8) *p++;
		res |= (uint32) (b & 0x7F) << shift;
		if (!(b & 0x80))
		{
			*v = res;
			return p;
		}
	}
	return NULL;
}

void
delta_add(DeltaEdits *d, const char *oldimg, const char *newimg,
		  int os, int oe, int ns, int ne)
{
	DeltaEdit  *last;

	while (os < oe && ns < ne && oldimg[os] == newimg[ns])
	{
		os++;
		ns++;
	}
	while (oe > os && ne > ns && oldimg[oe - 1] == newimg[ne - 1])
	{
		oe--;
		ne--;
	}
	if (os == oe && ns == ne)
		return;

	last = d->n > 0 ? &d->edit[d->n - 1] : NULL;
	if (last &&
		(os - (last->old_start + last->old_len) <= JOIN_GAP ||
		 d->n == DELTA_MAX_EDITS))
	{
		last->old_len = oe - last->old_start;
		last->new_len = ne - last->new_start;
		return;
	}
	d->edit[d->n].old_start = os;
	d->edit[d->n].old_len = oe - os;
	d->edit[d->n].new_start = ns;
	d->edit[d->n].new_len = ne - ns;
	d->n++;
}

void
delta_add_same_size(DeltaEdits *d, const char *oldimg, const char *newimg,
					int os, int ns, int len)
{
	int			i = 0;

	while (i < len)
	{
		int			start;

		/* skip what is equal, eight bytes at a time */
		while (i + 8 <= len && memcmp(oldimg + os + i, newimg + ns + i, 8) == 0)
			i += 8;
		while (i < len && oldimg[os + i] == newimg[ns + i])
			i++;
		if (i >= len)
			break;
		start = i;
		while (i < len && oldimg[os + i] != newimg[ns + i])
			i++;
		delta_add(d, oldimg, newimg, os + start, os + i, ns + start, ns + i);
	}
}

Size
delta_size(const DeltaEdits *d, bool backward)
{
	Size		size = 0;
	int			pos = 0;

	for (int i = 0; i < d->n; i++)
	{
		const DeltaEdit *e = &d->edit[i];
		int			put = backward ? e->old_len : e->new_len;

		size += varint_size(e->old_start - pos);
		size += varint_size(put << 1 | (e->old_len != e->new_len));
		if (e->old_len != e->new_len)
			size += varint_size(backward ? e->new_len : e->old_len);
		size += put;
		pos = e->old_start + e->old_len;
	}
	return size;
}

Size
delta_encode(const DeltaEdits *d, bool backward, const char *oldimg,
			 const char *newimg, char *dst)
{
	char	   *p = dst;
	int			pos = 0;

	for (int i = 0; i < d->n; i++)
	{
		const DeltaEdit *e = &d->edit[i];
		int			put = backward ? e->old_len : e->new_len;

		p = varint_put(p, e->old_start - pos);
		p = varint_put(p, put << 1 | (e->old_len != e->new_len));
		if (e->old_len != e->new_len)
			p = varint_put(p, backward ? e->new_len : e->old_len);
		memcpy(p, backward ? oldimg + e->old_start : newimg + e->new_start, put);
		p += put;
		pos = e->old_start + e->old_len;
	}
	return p - dst;
}

/* one edit, taken from an encoded delta */
typedef struct EncodedEdit
{
	uint32		skip;
	uint32		del;
	uint32		put;
	const char *data;			/* what is put in */
} EncodedEdit;

/* NULL if what is at p is not an edit that fits srclen bytes of the image */
static const char *
read_edit(const char *p, const char *end, Size srclen, EncodedEdit *e)
{
	uint32		head;

	if ((p = varint_get(p, end, &e->skip)) == NULL ||
		(p = varint_get(p, end, &head)) == NULL)
		return NULL;
	e->del = e->put = head >> 1;
	if ((head & 1) && (p = varint_get(p, end, &e->del)) == NULL)
		return NULL;
	if (e->skip > srclen || e->del > srclen - e->skip ||
		e->put > (Size) (end - p))
		return NULL;
	e->data = p;
	return p + e->put;
}

int
delta_apply(const char *delta, Size delta_len, const char *src, Size srclen,
			char *dst, Size dstmax)
{
	const char *p = delta;
	const char *end = delta + delta_len;
	Size		s = 0;
	Size		o = 0;

	while (p < end)
	{
		EncodedEdit e;

		if ((p = read_edit(p, end, srclen - s, &e)) == NULL ||
			o + (Size) e.skip + e.put > dstmax)
			return -1;
		memcpy(dst + o, src + s, e.skip);
		s += e.skip;
		o += e.skip;
		memcpy(dst + o, e.data, e.put);
		o += e.put;
		s += e.del;
	}
	if (o + (srclen - s) > dstmax)
		return -1;
	memcpy(dst + o, src + s, srclen - s);
	o += srclen - s;
	return (int) o;
}

int
delta_invert(const char *delta, Size delta_len, const char *src, Size srclen,
			 char *dst, Size dstmax)
{
	const char *p = delta;
	const char *end = delta + delta_len;
	char	   *o = dst;
	Size		s = 0;

	while (p < end)
	{
		EncodedEdit e;

		if ((p = read_edit(p, end, srclen - s, &e)) == NULL ||
			(Size) (o - dst) + 15 + e.del > dstmax)
			return -1;
		o = varint_put(o, e.skip);
		o = varint_put(o, e.del << 1 | (e.del != e.put));
		if (e.del != e.put)
			o = varint_put(o, e.put);
		memcpy(o, src + s + e.skip, e.del);
		o += e.del;
		s += (Size) e.skip + e.del;
	}
	return (int) (o - dst);
}
