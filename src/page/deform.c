/*-------------------------------------------------------------------------
 *
 * deform.c
 *	  Taking inplace tuples apart: values that InplaceDeform() does not take
 *	  itself, and the same for callers that are not in a hot path.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/deform.h"
#include "page/tuple.h"
#include "utils/lsyscache.h"

/* put a trimmed bpchar's blanks back */
static Datum
untrim(const char *p, MemoryContext cxt)
{
	uint16		kept;
	uint16		blanks;
	Size		len;
	char	   *res;
	char	   *data;

	memcpy(&kept, p + 2, 2);
	memcpy(&blanks, p + 4, 2);
	len = (Size) kept + blanks;

	if (len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		res = MemoryContextAlloc(cxt, len + VARHDRSZ_SHORT);
		SET_VARSIZE_SHORT(res, len + VARHDRSZ_SHORT);
		data = res + VARHDRSZ_SHORT;
	}
	else
	{
		res = MemoryContextAlloc(cxt, len + VARHDRSZ);
		SET_VARSIZE(res, len + VARHDRSZ);
		data = res + VARHDRSZ;
	}
	memcpy(data, p + SizeOfTrimmedHeader, kept);
	memset(data + kept, ' ', blanks);
	return PointerGetDatum(res);
}

/*
 * A varlena at *o that is not a short one, which InplaceDeform() takes itself.  Moves *o past
 * it; returns false if it cannot be one, or leads out of the row.
 */
static bool
deform_varlena(Form_pg_attribute att, const char *start, Size len, uint32 *o,
			   Datum *value, MemoryContext cxt)
{
	const char *p = start + *o;

	if (VARATT_IS_1B_E(p))
	{
		if (*o + SizeOfTrimmedHeader > len)
			return false;
		if (VarlenaIsTrimmed(p))
		{
			*o += TrimmedSize(p);
			if (*o > len)
				return false;
			*value = untrim(p, cxt);
		}
		else if (VARTAG_EXTERNAL(p) == VARTAG_ONDISK)
		{
			*value = PointerGetDatum(p);
			*o += VARSIZE_EXTERNAL(p);
		}
		else
			return false;
	}
	else
	{
		if (!VARATT_NOT_PAD_BYTE(p))
		{
			*o = att_align_nominal(*o, att->attalign);
			p = start + *o;
		}
		if (*o + VARHDRSZ > len || VARATT_IS_1B(p) ||
			VARSIZE_4B(p) < VARHDRSZ)
			return false;
		*value = PointerGetDatum(p);
		*o += VARSIZE_4B(p);
	}
	/* nobody is to follow a length that leads out of the row */
	return likely(*o <= len);
}

bool
inplace_deform_by_ref(Form_pg_attribute att, const char *start, Size len, uint32 *o,
					  Datum *value, MemoryContext cxt)
{
	if (att->attlen == -1)
		return deform_varlena(att, start, len, o, value, cxt);

	if (att->attlen == -2)
	{
		if (*o >= len)
			return false;
		*value = PointerGetDatum(start + *o);
		*o += strnlen(start + *o, len - *o) + 1;
		return *o <= len;
	}

	if (AttrNeedsAlign(att))
		*o = att_align_nominal(*o, att->attalign);
	else if (AttrIsCopied(att))
	{
		char	   *copy = MemoryContextAlloc(cxt, att->attlen);

		memcpy(copy, start + *o, att->attlen);
		*value = PointerGetDatum(copy);
		*o += att->attlen;
		return true;
	}
	*value = PointerGetDatum(start + *o);
	*o += att->attlen;
	return true;
}

int
inplace_deform(TupleDesc desc, InplaceTupleHeader tup, Size len, int attnum,
			   uint32 *off, int natts, Datum *values, bool *isnull,
			   MemoryContext cxt)
{
	return InplaceDeform(desc, tup, len, attnum, off, natts, values, isnull, cxt);
}

/*
 * A row cannot be what it says it is.  tid may be invalid, or NULL, or have a
 * tag.
 */
void
inplace_damaged_row(Oid relid, const ItemPointerData *tid)
{
	char	   *relname;
	ItemPointerData row;

	/* the TID may be on a page; and a name is not looked up with one locked */
	ItemPointerSetInvalid(&row);
	if (tid != NULL)
		row = *tid;
	(void) InplaceBeforeReport(ERROR);
	relname = OidIsValid(relid) ? get_rel_name(relid) : NULL;

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 ItemPointerIsValid(&row) ?
			 errmsg("row (%u,%u) of relation \"%s\" is damaged",
					ItemPointerGetBlockNumberNoCheck(&row), TidOffset(&row),
					relname ? relname : "?") :
			 errmsg("a row of relation \"%s\" is damaged",
					relname ? relname : "?"),
			 errdetail("Its values do not end where it ends.")));
}

/*
 * The first natts attributes of a tuple.  The caller does not know its length, which
 * is at most a page.  Damage is an error, which names tid unless that is NULL.
 */
int
inplace_deform_first(TupleDesc desc, InplaceTupleHeader tup, int natts,
					 Datum *values, bool *isnull, MemoryContext cxt,
					 const ItemPointerData *tid)
{
	uint32		off = HdrSize(tup);
	int			got = inplace_deform(desc, tup, BLCKSZ, 0, &off, natts,
									 values, isnull, cxt);

	if (got < 0)
		inplace_damaged_row(TupleDescAttr(desc, 0)->attrelid, tid);
	return got;
}

/* tid is for errors; it may be NULL */
Datum
inplace_getattr(TupleDesc desc, InplaceTupleHeader tup, int attnum,
				bool *isnull, MemoryContext cxt, const ItemPointerData *tid)
{
	Datum		values[MaxTupleAttributeNumber];
	bool		nulls[MaxTupleAttributeNumber];

	if (attnum > HdrNatts(tup))
		return getmissingattr(desc, attnum, isnull);
	inplace_deform_first(desc, tup, attnum, values, nulls, cxt, tid);
	*isnull = nulls[attnum - 1];
	return values[attnum - 1];
}
