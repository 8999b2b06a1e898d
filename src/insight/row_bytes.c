/*-------------------------------------------------------------------------
 *
 * row_bytes.c
 *	  Are the bytes of a row, or of a value in the TOAST table, sound?
 *
 * Nothing of them is trusted.  They are a private copy.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "insight/row_bytes.h"
#include "modify/chunk.h"
#include "page/tuple.h"
#include "utils/fmgroids.h"

/*
 * Which combinations of flags cannot be.
 */
static const char *
check_flags(const InplaceTupleHeaderData *h)
{
	uint16		m = h->t_infomask;

	if ((m & IP_COMMITTED) && (m & IP_ABORTED))
		return "hinted both committed and aborted";
	if ((m & IP_FROZEN) && (m & IP_ABORTED))
		return "both frozen and hinted aborted";
	if ((m & (IP_MOVED | IP_MOVED_PARTITION)) && !(m & IP_DELETED))
		return "moved but not deleted";
	if ((m & IP_MOVED) && (m & IP_MOVED_PARTITION))
		return "moved both in the table and to another partition";
	if ((m & IP_LOCK_DIRECT) && (m & IP_LOCK_INDIRECT))
		return "locked both directly and by an undo record";
	if (!HdrIsLocked(h) && (m & (IP_LOCK_MULTI | IP_LOCK_MODE_MASK)))
		return "has a lock mode but no lock";
	if ((m & IP_FRESH) && (m & IP_DELETED))
		return "fresh, yet deleted";
	if ((m & IP_FRESH) && HdrIsLocked(h))
		return "fresh, yet locked";
	if ((m & IP_SPECULATIVE) && !(m & IP_FRESH))
		return "speculative, but not fresh";
	if (HdrIsEvicted(h))
	{
		if (!(m & IP_DELETED))
			return "evicted, but not deleted";
		if (HdrIsBareDelete(h))
			return "evicted, but does not lead to undo";
		if ((h->t_natts & ~IP_NATTS_MASK) || (m & IP_PADDED))
			return "evicted, but has a flag of a row's values";
	}
	if (h->t_natts & ~(IP_NATTS_MASK | IP_HASNULL | IP_HASEXTERNAL |
					   IP_ALIGNED | IP_HASTRIMMED | IP_UNCHANGED))
		return "unknown flag in the attribute count";
	return NULL;
}

/*
 * Is what lies in itemlen bytes at tup a row as far as can be told without its
 * columns?  NULL and the length without padding, or what is wrong.
 */
const char *
InsightCheckShape(const InplaceTupleHeaderData *tup, Size itemlen, Size *len)
{
	const char *data = (const char *) tup;
	const char *problem;

	*len = 0;
	if (itemlen < SizeOfInplaceTupleHeader)
		return "item is shorter than a row header";
	if (itemlen > InplaceMaxTupleSize)
		return "item is longer than a row can be";
	if (HdrSize(tup) > itemlen)
		return "null bitmap runs over the item's end";
	if (!TagIsValid(tup->t_tag))
		return psprintf("version tag %d is out of range", TagNumber(tup->t_tag));
	problem = check_flags(tup);
	if (problem)
		return psprintf("row is %s", problem);

	/* the padding, before anybody else reads its length */
	if (tup->t_infomask & IP_PADDED)
	{
		Size		room = itemlen - HdrSize(tup);
		Size		pad;

		if (room < 1)
			return "row is padded but has no room for padding";
		pad = (uint8) data[itemlen - 1];
		if (pad == 255)
		{
			uint16		big;

			if (room < 3)
				return "row is padded but has no room for padding";
			memcpy(&big, data + itemlen - 3, sizeof(big));
			pad = big;
		}
		if (pad == 0 || pad > room)
			return psprintf("padding of %zu bytes does not fit the item", pad);
	}
	*len = inplace_tuple_len(tup, itemlen);
	if (*len < HdrSize(tup) || *len > itemlen)
	{
		*len = 0;
		return "padding does not fit the item";
	}
	if (HdrIsEvicted(tup) && *len != SizeOfInplaceTupleHeader)
		return "row is evicted, but has values";
	return NULL;
}

/*
 * ... and can a row of that shape be deformed?
 */
const char *
InsightCheckAttributes(TupleDesc desc, InplaceTupleHeader tup, Size len)
{
	uint16		ends[MaxTupleAttributeNumber + 1];
	const char *data = (const char *) tup;
	int			natts = HdrNattsAsStored(tup);
	Size		start;
	int			i;

	if (natts > desc->natts)
		return psprintf("row has %d attributes, the relation has %d",
						natts, desc->natts);
	if (inplace_attr_ends(desc, tup, ends, len) != len)
		return psprintf("attributes do not end at the row's length %zu", len);

	/* our own and the external kinds of varlena have no other guard */
	start = HdrSize(tup);
	for (i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Size		size;

		if (ends[i] < start || ends[i] > len)
			return psprintf("attribute %d ends before it starts", i + 1);
		size = ends[i] - start;
		if (att->attlen == -1 && size > 0 && (uint8) data[start] == 0x01)
		{
			uint8		tag;

			if (size < 2)
				return psprintf("attribute %d is cut off", i + 1);
			tag = (uint8) data[start + 1];
			if (tag == VARTAG_ONDISK)
			{
				if (size != TOAST_POINTER_SIZE)
					return psprintf("attribute %d: TOAST pointer of %zu bytes",
									i + 1, size);
				if (!(tup->t_natts & IP_HASEXTERNAL))
					return psprintf("attribute %d is external but the row's flag is not set",
									i + 1);
			}
			else if (tag == VARTAG_INPLACE_TRIMMED)
			{
				uint16		bytes;

				if (size < SizeOfTrimmedHeader)
					return psprintf("attribute %d is cut off", i + 1);
				memcpy(&bytes, data + start + 2, sizeof(bytes));
				if (size != SizeOfTrimmedHeader + (Size) bytes)
					return psprintf("attribute %d: wrong length of a trimmed value",
									i + 1);
				if (!(tup->t_natts & IP_HASTRIMMED))
					return psprintf("attribute %d is trimmed but the row's flag is not set",
									i + 1);
			}
			else
				return psprintf("attribute %d: unknown kind %d of external value",
								i + 1, tag);
		}
		start = ends[i];
	}

	return NULL;
}

const char *
InsightCheckRow(TupleDesc desc, InplaceTupleHeader tup, Size itemlen,
				Size *len)
{
	const char *problem = InsightCheckShape(tup, itemlen, len);

	return problem || HdrIsEvicted(tup) ? problem :
		InsightCheckAttributes(desc, tup, *len);
}

void
InsightDeform(TupleDesc desc, InplaceTupleHeader tup, Datum *values,
			  bool *isnull)
{
	int			natts = Min(desc->natts, (int) HdrNatts(tup));
	int			i;

	(void) inplace_deform_first(desc, tup, natts, values, isnull,
								CurrentMemoryContext, NULL);
	for (i = natts; i < desc->natts; i++)
		values[i] = getmissingattr(desc, i + 1, &isnull[i]);
}

const char *
InsightCheckToast(Relation toastrel, Datum value, Snapshot snapshot)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	struct varatt_external ptr;
	const char *problem = NULL;
	Relation   *indexes;
	int			num_indexes;
	int			valid_index;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	chunk;
	int32		extsize;
	int32		nchunks;
	int32		next = 0;

	VARATT_EXTERNAL_GET_POINTER(ptr, attr);
	extsize = VARATT_EXTERNAL_GET_EXTSIZE(ptr);

	if (ptr.va_toastrelid != RelationGetRelid(toastrel))
		return psprintf("TOAST value %u is said to be in relation %u, not in the table's %u",
						ptr.va_valueid, ptr.va_toastrelid,
						RelationGetRelid(toastrel));
	if (extsize <= 0 || ptr.va_rawsize < VARHDRSZ ||
		ptr.va_rawsize > MaxAllocSize || extsize > ptr.va_rawsize)
		return psprintf("TOAST value %u has impossible lengths %d and %d",
						ptr.va_valueid, extsize, ptr.va_rawsize);
	nchunks = (extsize - 1) / TOAST_MAX_CHUNK_SIZE + 1;
	if (RelationIsInplace(toastrel))
	{
		int32		missing = inplace_missing_chunk(toastrel, ptr.va_valueid, extsize);

		return missing < 0 ? NULL :
			psprintf("TOAST value %u: chunk %d of %d is missing", ptr.va_valueid,
					 missing, nchunks);
	}

	valid_index = toast_open_indexes(toastrel, AccessShareLock, &indexes,
									 &num_indexes);
	ScanKeyInit(&key, (AttrNumber) 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ptr.va_valueid));
	scan = systable_beginscan_ordered(toastrel, indexes[valid_index],
									  snapshot, 1, &key);
	while ((chunk = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		bool		null_seq;
		bool		null_data;
		int32		seq = DatumGetInt32(fastgetattr(chunk, 2, toastrel->rd_att,
													&null_seq));
		Datum		data = fastgetattr(chunk, 3, toastrel->rd_att, &null_data);
		int32		expected;
		int32		size;

		CHECK_FOR_INTERRUPTS();

		if (null_seq || null_data || seq != next || next >= nchunks)
		{
			problem = psprintf("TOAST value %u: chunk %d found where chunk %d of %d was expected",
							   ptr.va_valueid, null_seq ? -1 : seq, next,
							   nchunks);
			break;
		}
		if (VARATT_IS_EXTENDED(DatumGetPointer(data)) &&
			!VARATT_IS_SHORT(DatumGetPointer(data)))
		{
			problem = psprintf("TOAST value %u: chunk %d is compressed or external",
							   ptr.va_valueid, seq);
			break;
		}
		size = VARSIZE_ANY_EXHDR(DatumGetPointer(data));
		expected = next < nchunks - 1 ? TOAST_MAX_CHUNK_SIZE :
			extsize - (nchunks - 1) * TOAST_MAX_CHUNK_SIZE;
		if (size != expected)
		{
			problem = psprintf("TOAST value %u: chunk %d has %d bytes, expected %d",
							   ptr.va_valueid, seq, size, expected);
			break;
		}
		next++;
	}
	systable_endscan_ordered(scan);
	toast_close_indexes(indexes, num_indexes, AccessShareLock);

	if (problem == NULL && next < nchunks)
		problem = psprintf("TOAST value %u: %d of %d chunks missing",
						   ptr.va_valueid, nchunks - next, nchunks);
	return problem;
}
