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
 * differs in every byte, yet has little that is new.  Of a compressed one pieces come again
 * that have moved by different lengths (inplace_diff_moved).
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

/* what is looked for in the old bytes: so many, every so many of them */
#define ANCHOR_SIZE		8
#define ANCHOR_STEP		4
#define ANCHOR_BUCKETS	1024

/* shorter pieces cost as much as they save, in both directions of a delta */
#define MIN_PIECE		16

/* a diff that is no larger is not worth a search */
#define MIN_TO_SEARCH	100

/* what is won if all edits keep their length (log_update.c), in bytes */
#define WORTH_OF_SAME_SIZE	32

static inline uint32
anchor_bucket(const char *p)
{
	uint64		bytes;

	memcpy(&bytes, p, ANCHOR_SIZE);
	return (uint32) ((bytes * UINT64CONST(0x9E3779B97F4A7C15)) >> 54);
}

/* is what begins at "n" of the new bytes at "o" of the old ones, from "o_min" on? */
static inline bool
is_at(const char *oimg, int o, const char *nimg, int n, int o_min, int end)
{
	return o >= o_min && o <= end - ANCHOR_SIZE &&
		memcmp(oimg + o, nimg + n, ANCHOR_SIZE) == 0;
}

/*
 * Edits from old[start, end) to new[start, end): bytes of the old one are found again
 * wherever they are, as long as they are in the same order.  "shift" is what most may have
 * moved by.
 */
static void
find_pieces(DeltaEdits *edits, const char *oimg, const char *nimg, int start, int end,
			int shift)
{
	uint16		first[ANCHOR_BUCKETS];	/* behind the first old anchor, or 0 */
	int			o = start;		/* up to there all is said */
	int			n = start;

	StaticAssertStmt(ANCHOR_BUCKETS == 1 << 10, "see anchor_bucket()");
	memset(first, 0, sizeof(first));
	for (int i = end - ANCHOR_SIZE; i >= start; i -= ANCHOR_STEP)
		first[anchor_bucket(oimg + i)] = i + 1;

	for (int i = start; i <= end - MIN_PIECE;)
	{
		int			same = o + (i - n);
		int			found = first[anchor_bucket(nimg + i)] - 1;
		int			from;
		int			len = 0;

		/* where it would be if no more had come in or gone, or all before? */
		if (is_at(oimg, same, nimg, i, o, end))
			found = same;
		else if (is_at(oimg, i - shift, nimg, i, o, end))
			found = i - shift;
		if (found >= o)
			while (found + len < end && i + len < end &&
				   oimg[found + len] == nimg[i + len])
				len++;

		/* the anchor need not be where the piece begins */
		from = i;
		while (len > 0 && found > o && from > n && oimg[found - 1] == nimg[from - 1])
		{
			found--;
			from--;
			len++;
		}
		if (len < MIN_PIECE)
		{
			i++;
			continue;
		}
		delta_add(edits, oimg, nimg, o, found, n, from);
		o = found + len;
		n = from + len;
		i = n;
	}
	delta_add(edits, oimg, nimg, o, end, n, end);
}

#ifdef USE_ASSERT_CHECKING
/* What is between the edits is the same in both. */
static bool
edits_are_right(const DeltaEdits *edits, const char *oimg, const char *nimg, int end)
{
	int			o = 0;
	int			n = 0;

	for (int i = 0; i <= edits->n; i++)
	{
		const DeltaEdit *e = i < edits->n ? &edits->edit[i] : NULL;
		int			same = (e ? e->old_start : end) - o;

		if (same < 0 || (e ? e->new_start : end) - n != same ||
			memcmp(oimg + o, nimg + n, same) != 0)
			return false;
		if (e)
		{
			o = e->old_start + e->old_len;
			n = e->new_start + e->new_len;
		}
	}
	return true;
}
#endif

/*
 * The same for rows that end with "len" bytes of a large value, in which bytes may have
 * moved: what came in at one place has pushed others along.
 */
void
inplace_diff_moved(InplaceTupleHeader oldtup, Size oldlen,
				   InplaceTupleHeader newtup, Size newlen, int len, int shift,
				   RowDiff *diff)
{
	const char *oimg = (const char *) oldtup + SizeOfInplaceTupleHeader;
	const char *nimg = (const char *) newtup + SizeOfInplaceTupleHeader;
	int			end = (int) newlen - (int) SizeOfInplaceTupleHeader;
	int			begin = end - len;
	Size		size = delta_size(&diff->edits, true) + delta_size(&diff->edits, false);
	DeltaEdits	edits;

	if (oldlen != newlen || size < MIN_TO_SEARCH || len < MIN_PIECE ||
		begin < (int) (HdrSize(newtup) - SizeOfInplaceTupleHeader) ||
		HdrSize(oldtup) != HdrSize(newtup))
		return;

	edits.n = 0;
	delta_add_same_size(&edits, oimg, nimg, 0, 0, begin);
	find_pieces(&edits, oimg, nimg, begin, end, shift);
	Assert(edits_are_right(&edits, oimg, nimg, end));
	if (delta_size(&edits, true) + delta_size(&edits, false) +
		(diff->same_size ? WORTH_OF_SAME_SIZE : 0) < size)
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
