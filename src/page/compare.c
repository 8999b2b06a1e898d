/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  Finding what an update changes.
 *
 * Both rows are walked column by column, so that a column that grew does not
 * make everything after it look changed; within a column of unchanged length
 * the difference is narrowed to bytes.
 *
 * A column counts as changed if its stored bytes differ, as on heap.
 *
 * Most updates change neither the row's length nor that of a column.  Then
 * only the columns between the first byte that differs and the last are
 * looked at; the result is the same.
 *
 * A chunk of a large value into which something has been inserted further to the front
 * differs in every byte, yet has little that is new (inplace_diff_shifted).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/sysattr.h"
#include "access/tupmacs.h"
#include "no_lock.h"
#include "page/compare.h"
#include "page/delta.h"
#include "page/tuple.h"

static bool
same_by_value(Datum a, Datum b, int16 len)
{
	switch (len)
	{
		case sizeof(char):
			return DatumGetChar(a) == DatumGetChar(b);
		case sizeof(int16):
			return DatumGetInt16(a) == DatumGetInt16(b);
		case sizeof(int32):
			return DatumGetInt32(a) == DatumGetInt32(b);
		default:
			Assert(len == sizeof(Datum));
			return a == b;
	}
}

static bool
same_varlena(struct varlena *x, struct varlena *y)
{
	Size		len = toast_raw_datum_size(PointerGetDatum(x)) - VARHDRSZ;
	struct varlena *a;
	struct varlena *b;
	bool		same;

	if (len != toast_raw_datum_size(PointerGetDatum(y)) - VARHDRSZ)
		return false;
	a = pg_detoast_datum_packed(x);
	b = pg_detoast_datum_packed(y);
	same = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), len) == 0;
	if (a != x)
		pfree(a);
	if (b != y)
		pfree(b);
	return same;
}

/* the values themselves, however they are stored */
bool
inplace_same_value(Datum a, Datum b, bool byval, int16 len)
{
	if (byval)
		return same_by_value(a, b, len);
	if (len == -1)
		return same_varlena((struct varlena *) DatumGetPointer(a),
							(struct varlena *) DatumGetPointer(b));
	if (len == -2)
		return strcmp(DatumGetCString(a), DatumGetCString(b)) == 0;
	return memcmp(DatumGetPointer(a), DatumGetPointer(b), len) == 0;
}

/* as they are stored */
bool
inplace_same_stored(Datum a, Datum b, bool byval, int16 len)
{
	Size		size;

	if (byval || len != -1)
		return inplace_same_value(a, b, byval, len);
	size = VARSIZE_ANY(DatumGetPointer(a));
	return size == VARSIZE_ANY(DatumGetPointer(b)) &&
		memcmp(DatumGetPointer(a), DatumGetPointer(b), size) == 0;
}

/* where attribute's value starts, given the end of the one before */
static int
value_start(Form_pg_attribute att, const char *tup, int prev_end, int end)
{
	if (att->attlen > 0)
		return end - att->attlen;
	if (att->attlen == -1 && !VARATT_NOT_PAD_BYTE(tup + prev_end))
		return att_align_nominal(prev_end, att->attalign);
	return prev_end;
}

/* bytes at the start, or at the end, that are equal; there is a difference */
static int
equal_before(const char *o, const char *n, int from, int len)
{
	while (from + 8 <= len && memcmp(o + from, n + from, 8) == 0)
		from += 8;
	while (from < len && o[from] == n[from])
		from++;
	return from;
}

static int
equal_after(const char *o, const char *n, int from, int len)
{
	while (len - 8 >= from && memcmp(o + len - 8, n + len - 8, 8) == 0)
		len -= 8;
	while (len > from && o[len - 1] == n[len - 1])
		len--;
	return len;
}

/*
 * inplace_diff_rows for rows of the same length and with the same nulls; false
 * if the columns between the differences are not of the same lengths.  What
 * is equal in both needs no look at the old row, for the new one is sound.
 */
static bool
diff_in_place(TupleDesc desc, InplaceTupleHeader oldtup,
			  InplaceTupleHeader newtup, Size len, RowDiff *diff)
{
	const char *o = (const char *) oldtup;
	const char *n = (const char *) newtup;
	int			natts = HdrNatts(newtup);
	bool		hasnull = HdrHasNull(newtup);
	int			end = HdrSize(newtup);
	int			first = equal_before(o, n, end, len);
	int			last = equal_after(o, n, first, len);

	diff->edits.n = 0;
	diff->natts = natts;
	diff->same_size = true;
	memset(diff->changed, 0, natts * sizeof(diff->changed[0]));

	for (int i = 0; i < natts && end < last; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		int			prev = end;

		if (hasnull && att_isnull(i, HdrBits(newtup)))
			continue;
		end = att->attbyval ? prev + att->attlen :
			inplace_attr_end(att, newtup, prev, len);
		if (end <= prev || end > len)
			return false;
		if (end <= first)
			continue;
		if (!att->attbyval && inplace_attr_end(att, oldtup, prev, len) != end)
			return false;
		if (memcmp(o + prev, n + prev, end - prev) == 0)
			continue;
		diff->changed[i] = true;
		delta_add_same_size(&diff->edits, o + SizeOfInplaceTupleHeader,
							n + SizeOfInplaceTupleHeader,
							prev - SizeOfInplaceTupleHeader,
							prev - SizeOfInplaceTupleHeader, end - prev);
	}
	return end >= last;
}

/*
 * The old row is from before column i was added, and has what the catalog says.  Is
 * that other than what the new one has?
 */
static bool
added_differs(TupleDesc desc, InplaceTupleHeader newtup, int i, bool nnull)
{
	Form_pg_attribute att = TupleDescAttr(desc, i);
	bool		missing_null;
	Datum		missing = getmissingattr(desc, i + 1, &missing_null);
	bool		isnull;
	Datum		v;

	if (nnull || missing_null)
		return nnull != missing_null;
	v = inplace_getattr(desc, newtup, i + 1, &isnull, CurrentMemoryContext,
						NULL);
	return !inplace_same_stored(missing, v, att->attbyval, att->attlen);
}

bool
inplace_diff_rows(TupleDesc desc, InplaceTupleHeader oldtup, Size oldlen,
				  InplaceTupleHeader newtup, Size newlen, RowDiff *diff)
{
	uint16		oldends[MaxTupleAttributeNumber];
	uint16		newends[MaxTupleAttributeNumber];
	const char *o = (const char *) oldtup;
	const char *n = (const char *) newtup;
	const char *oimg = o + SizeOfInplaceTupleHeader;
	const char *nimg = n + SizeOfInplaceTupleHeader;
	int			onatts = HdrNatts(oldtup);
	int			natts = HdrNatts(newtup);
	int			oprev = HdrSize(oldtup);
	int			nprev = HdrSize(newtup);

	if (oldlen == newlen && oprev == nprev && natts <= desc->natts &&
		oprev <= oldlen &&
		((oldtup->t_natts ^ newtup->t_natts) & (IP_NATTS_MASK | IP_HASNULL)) == 0 &&
		memcmp(oimg, nimg, oprev - SizeOfInplaceTupleHeader) == 0 &&
		diff_in_place(desc, oldtup, newtup, newlen, diff))
		return true;

	diff->edits.n = 0;
	diff->natts = natts;

	if (inplace_attr_ends(desc, oldtup, oldends, oldlen) != oldlen ||
		inplace_attr_ends(desc, newtup, newends, newlen) != newlen ||
		onatts > natts)
		return false;

	/* the null bitmap */
	delta_add(&diff->edits, oimg, nimg, 0, oprev - SizeOfInplaceTupleHeader,
			  0, nprev - SizeOfInplaceTupleHeader);

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		int			oend = i < onatts ? oldends[i] : oprev;
		int			nend = newends[i];
		int			olen = oend - oprev;
		int			nlen = nend - nprev;
		bool		nnull = HdrHasNull(newtup) && att_isnull(i, HdrBits(newtup));
		bool		onull;

		if (i >= onatts)
		{
			diff->changed[i] = added_differs(desc, newtup, i, nnull);
			if (nlen > 0)
				delta_add(&diff->edits, oimg, nimg,
						  oprev - SizeOfInplaceTupleHeader,
						  oprev - SizeOfInplaceTupleHeader,
						  nprev - SizeOfInplaceTupleHeader,
						  nend - SizeOfInplaceTupleHeader);
			nprev = nend;
			continue;
		}

		onull = HdrHasNull(oldtup) && att_isnull(i, HdrBits(oldtup));
		if (olen == nlen && memcmp(o + oprev, n + nprev, olen) == 0)
			diff->changed[i] = onull != nnull;
		else
		{
			if (onull != nnull)
				diff->changed[i] = true;
			else
			{
				int			os = value_start(att, o, oprev, oend);
				int			ns = value_start(att, n, nprev, nend);

				diff->changed[i] = (oend - os != nend - ns) ||
					memcmp(o + os, n + ns, oend - os) != 0;
			}
			if (olen == nlen)
				delta_add_same_size(&diff->edits, oimg, nimg,
									oprev - SizeOfInplaceTupleHeader,
									nprev - SizeOfInplaceTupleHeader, olen);
			else
				delta_add(&diff->edits, oimg, nimg,
						  oprev - SizeOfInplaceTupleHeader,
						  oend - SizeOfInplaceTupleHeader,
						  nprev - SizeOfInplaceTupleHeader,
						  nend - SizeOfInplaceTupleHeader);
		}
		oprev = oend;
		nprev = nend;
	}

	diff->same_size = (oldlen == newlen);
	for (int i = 0; i < diff->edits.n && diff->same_size; i++)
		if (diff->edits.edit[i].old_len != diff->edits.edit[i].new_len)
			diff->same_size = false;
	return true;
}

/*
 * The same for the last "len" bytes of rows, where most of the old bytes are found "shift"
 * bytes further on in the new row, or before: what came in at the front has pushed as much
 * out at the end.
 */
void
inplace_diff_shifted(InplaceTupleHeader oldtup, Size oldlen,
					 InplaceTupleHeader newtup, Size newlen, int len, int shift,
					 RowDiff *diff)
{
	const char *oimg = (const char *) oldtup + SizeOfInplaceTupleHeader;
	const char *nimg = (const char *) newtup + SizeOfInplaceTupleHeader;
	int			end = (int) newlen - (int) SizeOfInplaceTupleHeader;
	int			begin = end - len;
	int			out = Max(shift, 0);	/* of the old bytes, at the end */
	int			in = Max(-shift, 0);	/* of the new ones */
	int			first;
	int			last;
	DeltaEdits	edits;

	if (oldlen != newlen || shift == 0 || len <= out + in ||
		begin < (int) (HdrSize(newtup) - SizeOfInplaceTupleHeader) ||
		HdrSize(oldtup) != HdrSize(newtup))
		return;

	/* old bytes from "last" on are found again, those before "first" stay */
	first = begin;
	while (first < end && oimg[first] == nimg[first])
		first++;
	last = end - out;
	if (last < first || last + shift < first)
		return;
	while (last + shift > first && last > first && oimg[last - 1] == nimg[last - 1 + shift])
		last--;

	edits.n = 0;
	delta_add_same_size(&edits, oimg, nimg, 0, 0, begin);
	delta_add(&edits, oimg, nimg, first, last, first, last + shift);
	delta_add(&edits, oimg, nimg, end - out, end, end - in, end);
	if (delta_size(&edits, true) + delta_size(&edits, false) <
		delta_size(&diff->edits, true) + delta_size(&diff->edits, false))
	{
		diff->edits = edits;
		diff->same_size = false;
	}
}

bool
inplace_diff_overlaps(const RowDiff *diff, const Bitmapset *attrs)
{
	int			x = -1;

	while ((x = bms_next_member(attrs, x)) >= 0)
	{
		int			attnum = x + FirstLowInvalidHeapAttributeNumber;

		if (attnum == InvalidAttrNumber)
		{
			/* a whole-row reference: any change counts */
			for (int i = 0; i < diff->natts; i++)
				if (diff->changed[i])
					return true;
		}
		else if (attnum > 0 && attnum <= diff->natts && diff->changed[attnum - 1])
			return true;
	}
	return false;
}
