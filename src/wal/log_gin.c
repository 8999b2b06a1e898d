/*-------------------------------------------------------------------------
 *
 * log_gin.c
 *	  Leaf pages of a GIN index's entry tree: one more TID in a posting list, and a page from
 *	  which VACUUM has deleted.
 *
 * GIN's own record of an insertion has the whole entry, with all TIDs of the key.  That of a
 * single TID here says where it goes, and replay makes the same entry of the one on the page.
 * It is an XLOG_IP_VACUUM with XLIP_MERGE and XLIP_GIN_ADD (wal.h), since there is no other
 * number left for records of indexes.
 *
 * The record of a deletion is GIN's own, an image of the page, so replay is, too.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/gin_private.h"
#include "access/ginxlog.h"
#include "access/xloginsert.h"
#include "page/protect.h"
#include "rmgr.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "wal/log_gin.h"
#include "wal/wal.h"

/* as ginpostinglist.c has them */
#define OFFSET_BITS				11	/* of a TID's number */
#define MAX_DIFFERENCE_BYTES	7

/* two differences; any number of 64 bits takes 10 bytes */
#define MAX_GROWTH				20

static uint64
tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << OFFSET_BITS |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static unsigned char *
put_difference(unsigned char *to, uint64 value)
{
	for (; value > 0x7F; value >>= 7)
		*to++ = 0x80 | (value & 0x7F);
	*to++ = (unsigned char) value;
	return to;
}

/* the one that begins at *from, after which it is set; false: it does not end before the end */
static inline bool
get_difference(const unsigned char **from, const unsigned char *end, uint64 *value)
{
	const unsigned char *at = *from;
	unsigned char c = *at++;
	uint64		sum = c & 0x7F;

	for (int shift = 7; c & 0x80; shift += 7)
	{
		if (at == end || shift == 7 * MAX_DIFFERENCE_BYTES)
			return false;
		c = *at++;
		sum |= (uint64) (c & 0x7F) << shift;
	}
	*from = at;
	*value = sum;
	return true;
}

/* each item but the first has one byte without the high bit */
static int
count_items(const GinPostingList *list)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	int			n = 1;
	int			i = 0;

	for (; i + (int) sizeof(uint64) <= list->nbytes; i += sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, list->bytes + i, sizeof(uint64));
		n += (((~word >> 7) & ones) * ones) >> 56;
	}
	for (; i < list->nbytes; i++)
		n += (list->bytes[i] & 0x80) == 0;
	return n;
}

/* ends with the bytes from "rest" to "end" */
static void
finish_list(GinPostingList *list, unsigned char *at, const unsigned char *rest,
			const unsigned char *end)
{
	memcpy(at, rest, end - rest);
	list->nbytes = at + (end - rest) - list->bytes;
	if (list->nbytes != SHORTALIGN(list->nbytes))
		list->bytes[list->nbytes] = 0;
}

/*
 * The list with one more TID, byte for byte as ginCompressPostingList() would make it.  Of an
 * item the list has the difference to the one before, so all but that of the next one stay.
 * False if the TID is there (*there), or if the list is damaged.  The result has MAX_GROWTH more
 * bytes, and one for alignment.
 */
static bool
add_to_posting_list(const GinPostingList *list, const ItemPointerData *tid,
					GinPostingList *result, bool *there)
{
	const unsigned char *from = list->bytes;
	const unsigned char *end = list->bytes + list->nbytes;
	uint64		added = tid_number(tid);
	uint64		before = tid_number(&list->first);

	*there = added == before;
	if (*there)
		return false;
	result->first = list->first;
	if (added < before)
	{
		result->first = *tid;
		finish_list(result, put_difference(result->bytes, before - added), from, end);
		return true;
	}
	for (;;)
	{
		const unsigned char *kept = from;
		unsigned char *to;
		uint64		next = 0;

		if (from < end)
		{
			if (!get_difference(&from, end, &next))
				return false;
			next += before;
			*there = next == added;
			if (*there)
				return false;
			if (next < added)
			{
				before = next;
				continue;
			}
		}
		memcpy(result->bytes, list->bytes, kept - list->bytes);
		to = put_difference(result->bytes + (kept - list->bytes), added - before);
		if (kept < end)
			to = put_difference(to, next - added);
		finish_list(result, to, from, end);
		return true;
	}
}

/* is it what GIN would make of the two? */
static bool PG_USED_FOR_ASSERTS_ONLY
is_list_with(GinPostingList *longer, GinPostingList *list, const ItemPointerData *tid)
{
	ItemPointerData added = *tid;
	int			n;
	int			nmerged;
	int			nwritten;
	ItemPointer items = ginPostingListDecode(list, &n);
	ItemPointer merged = ginMergeItemPointers(&added, 1, items, n, &nmerged);
	GinPostingList *made = ginCompressPostingList(merged, nmerged, BLCKSZ, &nwritten);
	bool		result = nwritten == n + 1 &&
		memcmp(made, longer, SizeOfGinPostingList(made)) == 0;

	pfree(items);
	pfree(merged);
	pfree(made);
	return result;
}

/*
 * An entry with a posting list, and one more TID in it.  NULL if it has that already (*there),
 * or if it would be too large for a list, or is not as this version of GIN makes them.
 */
IndexTuple
inplace_gin_entry_with(IndexTuple itup, const ItemPointerData *tid, bool *there)
{
	Size		off = GinGetPostingOffset(itup);
	int			n = GinGetNPosting(itup);
	GinPostingList *list;
	GinPostingList *longer;
	IndexTuple	result;
	Size		size;

	*there = false;
	if (GinIsPostingTree(itup) || !GinItupIsCompressed(itup) ||
		off < sizeof(IndexTupleData) || off > IndexTupleSize(itup))
		return NULL;
	list = (GinPostingList *) GinGetPosting(itup);
	if (n > 0 && (off + offsetof(GinPostingList, bytes) > IndexTupleSize(itup) ||
				  off + SizeOfGinPostingList(list) > IndexTupleSize(itup) ||
				  count_items(list) != n))
		return NULL;

	result = palloc0(MAXALIGN(IndexTupleSize(itup) + sizeof(GinPostingList) + MAX_GROWTH + 1));
	memcpy(result, itup, off);
	longer = (GinPostingList *) ((char *) result + off);
	if (n == 0)
		longer->first = *tid;
	else if (!add_to_posting_list(list, tid, longer, there))
	{
		pfree(result);
		return NULL;
	}
	Assert(n == 0 || is_list_with(longer, list, tid));
	size = MAXALIGN(off + SizeOfGinPostingList(longer));
	if (size > GinMaxItemSize)
	{
		pfree(result);
		return NULL;
	}
	GinSetNPosting(result, n + 1);
	result->t_info = (result->t_info & ~INDEX_SIZE_MASK) | size;
	return result;
}

/* in a critical section */
void
inplace_log_gin_add(Relation index, Buffer buffer, OffsetNumber off,
					const ItemPointerData *tid)
{
	xl_ip_gin_add xlrec;
	XLogRecPtr	lsn;

	if (!RelationNeedsWAL(index))
		return;
	xlrec.what = XLIP_MERGE | XLIP_GIN_ADD;
	xlrec.off = off;
	xlrec.tid = *tid;
	XLogBeginInsert();
	XLogRegisterData((char *) &xlrec, SizeOfIpGinAdd);
	XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
	lsn = inplace_xlog_insert(XLOG_IP_VACUUM);
	PageSetLSN(BufferGetPage(buffer), lsn);
}

/* in a critical section */
void
inplace_log_gin_entries(Relation index, Buffer buffer)
{
	XLogRecPtr	lsn;

	if (!RelationNeedsWAL(index))
		return;
	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	lsn = XLogInsert(RM_GIN_ID, XLOG_GIN_VACUUM_PAGE);
	PageSetLSN(BufferGetPage(buffer), lsn);
}
