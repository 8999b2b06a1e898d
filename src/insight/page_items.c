/*-------------------------------------------------------------------------
 *
 * page_items.c
 *	  inplace.page_items(): what is in one page of a table, item by item.
 *
 * The page is copied under its share lock, then taken apart as it is: no
 * undo, no commit log and no multixact is read, so that a page can be looked
 * at whatever state the rest is in.  Columns that the bytes do not give come
 * out as NULL; an item that cannot be a row gives its line pointer only.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "insight/open_table.h"
#include "insight/row_bytes.h"
#include "insight/walk.h"
#include "page/page.h"
#include "page/tuple.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"


PG_FUNCTION_INFO_V1(inplace_page_items);
Datum		inplace_page_items(PG_FUNCTION_ARGS);

enum
{
	COL_ITEM,
	COL_LP_OFF,
	COL_LP_LEN,
	COL_STATE,
	COL_XID,
	COL_UNDO,
	COL_CID,
	COL_FLAGS,
	COL_NATTS,
	COL_TAG,
	COL_LOCK_MODE,
	COL_LOCKER,
	COL_MULTI,
	COL_NULL_BITS,
	COL_DATA,
	NUM_COLS
};

static Datum
flags_array(const InplaceTupleHeaderData *hdr)
{
	const char *flags[INPLACE_MAX_FLAGS];
	Datum		names[INPLACE_MAX_FLAGS];
	int			n = inplace_flag_names(hdr, flags);

	for (int i = 0; i < n; i++)
		names[i] = CStringGetTextDatum(flags[i]);
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

/* one '1' for each attribute that is there, '0' for a null, as pageinspect */
static char *
null_bits_text(const bits8 *bits, int natts)
{
	char	   *str = palloc(natts + 1);
	int			i;

	for (i = 0; i < natts; i++)
		str[i] = (bits[i >> 3] & (1 << (i & 7))) ? '1' : '0';
	str[natts] = '\0';
	return str;
}

static void
show_tuple(const char *item, Size itemlen, Datum *values, bool *nulls)
{
	InplaceTupleHeaderData hdr;
	Size		hdrsize;

	memcpy(&hdr, item, SizeOfInplaceTupleHeader);

	values[COL_XID] = TransactionIdGetDatum(hdr.t_xid);
	values[COL_FLAGS] = flags_array(&hdr);
	values[COL_NATTS] = Int32GetDatum(HdrNattsAsStored(&hdr));
	values[COL_TAG] = Int32GetDatum(TagNumber(hdr.t_tag));
	nulls[COL_XID] = nulls[COL_FLAGS] = nulls[COL_TAG] = false;
	nulls[COL_NATTS] = HdrIsEvicted(&hdr);

	/* what t_undo means */
	if (HdrHasDirectLocker(&hdr))
	{
		int			col = (hdr.t_infomask & IP_LOCK_MULTI) ? COL_MULTI : COL_LOCKER;

		values[col] = TransactionIdGetDatum(HdrDirectLocker(&hdr));
		nulls[col] = false;
	}
	else if (HdrHasCid(&hdr))
	{
		values[COL_CID] = CommandIdGetDatum(HdrFreshCid(&hdr));
		nulls[COL_CID] = false;
	}
	else if (!HdrHasUndo(&hdr))
		 /* a token, or an xid for VACUUM: of no use to anybody else */ ;
	else if (HdrIsBareDelete(&hdr))
	{
		values[COL_CID] = CommandIdGetDatum(BarePtrCid(HdrUndoPtr(&hdr)));
		nulls[COL_CID] = false;
	}
	else if (UndoPtrIsValid(HdrUndoPtr(&hdr)))
	{
		values[COL_UNDO] = CStringGetTextDatum(InsightUndoText(HdrUndoPtr(&hdr)));
		nulls[COL_UNDO] = false;
	}

	if (HdrIsLocked(&hdr))
	{
		values[COL_LOCK_MODE] =
			CStringGetTextDatum(inplace_lock_mode_name(HdrLockMode(&hdr)));
		nulls[COL_LOCK_MODE] = false;
	}

	hdrsize = HdrSize(&hdr);
	if (hdrsize > itemlen)
		return;					/* the null bitmap runs over the end */
	if (HdrHasNull(&hdr))
	{
		values[COL_NULL_BITS] =
			CStringGetTextDatum(null_bits_text((const bits8 *) item +
											   SizeOfInplaceTupleHeader,
											   HdrNattsAsStored(&hdr)));
		nulls[COL_NULL_BITS] = false;
	}

	{
		Size		len;
		bytea	   *data;

		/* all bytes of the item, if it makes no sense */
		if (InsightCheckShape((const InplaceTupleHeaderData *) item, itemlen,
							  &len) != NULL)
			len = itemlen;
		len -= hdrsize;
		data = palloc(VARHDRSZ + len);
		SET_VARSIZE(data, VARHDRSZ + len);
		memcpy(VARDATA(data), item + hdrsize, len);
		values[COL_DATA] = PointerGetDatum(data);
		nulls[COL_DATA] = false;
	}
}

Datum
inplace_page_items(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			relid = PG_GETARG_OID(0);
	int64		blkno = PG_GETARG_INT64(1);
	Relation	rel;
	Buffer		buffer;
	PGAlignedBlock copy;
	Page		page = (Page) copy.data;
	MemoryContext cxt;
	MemoryContext oldcxt;
	int			maxoff;
	int			off;

	InplaceRequirePreload();
	InitMaterializedSRF(fcinfo, 0);

	rel = InsightOpenTable(relid, true);

	if (blkno < 0 || blkno >= (int64) RelationGetNumberOfBlocks(rel))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("block number %lld is out of range for relation \"%s\"",
						(long long) blkno, RelationGetRelationName(rel))));

	buffer = ReadBuffer(rel, (BlockNumber) blkno);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	inplace_check_page_mark(rel, page, (BlockNumber) blkno);

	/* a broken pd_lower must not lead past the page */
	if (PageIsNew(page) || ((PageHeader) page)->pd_lower > BLCKSZ)
		maxoff = 0;
	else
		maxoff = PageGetMaxOffsetNumber(page);

	cxt = AllocSetContextCreate(CurrentMemoryContext, "inplace page item",
								ALLOCSET_DEFAULT_SIZES);
	oldcxt = MemoryContextSwitchTo(cxt);

	for (off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemId		lp = PageGetItemId(page, off);
		Datum		values[NUM_COLS];
		bool		nulls[NUM_COLS];
		const char *state;

		CHECK_FOR_INTERRUPTS();
		memset(nulls, true, sizeof(nulls));

		switch (ItemIdGetFlags(lp))
		{
			case LP_NORMAL:
				state = "normal";
				break;
			case LP_DEAD:
				state = "dead";
				break;
			case LP_UNUSED:
				state = "unused";
				break;
			default:
				state = "invalid";
				break;
		}

		values[COL_ITEM] = Int32GetDatum(off);
		values[COL_LP_OFF] = Int32GetDatum(ItemIdGetOffset(lp));
		values[COL_LP_LEN] = Int32GetDatum(ItemIdGetLength(lp));
		values[COL_STATE] = CStringGetTextDatum(state);
		nulls[COL_ITEM] = nulls[COL_LP_OFF] = false;
		nulls[COL_LP_LEN] = nulls[COL_STATE] = false;

		if (ItemIdIsNormal(lp) &&
			ItemIdGetLength(lp) >= SizeOfInplaceTupleHeader &&
			ItemIdGetOffset(lp) >= SizeOfPageHeaderData &&
			ItemIdGetOffset(lp) + ItemIdGetLength(lp) <= BLCKSZ)
			show_tuple((const char *) page + ItemIdGetOffset(lp),
					   ItemIdGetLength(lp), values, nulls);

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(cxt);
	}

	MemoryContextSwitchTo(oldcxt);
	MemoryContextDelete(cxt);
	relation_close(rel, AccessShareLock);

	return (Datum) 0;
}
