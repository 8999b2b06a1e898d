/*-------------------------------------------------------------------------
 *
 * deform.h
 *	  Taking inplace tuples apart.  The format is in tuple.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DEFORM_H
#define INPLACE_DEFORM_H

#include "inplace.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "page/tuple.h"

/*
 * Is an attribute of a fixed length that is not by value aligned?  Not if it has the length
 * and alignment of a by-value type: pg_upgrade makes dropped columns again with those, but
 * always by reference, so "by value" must make no difference to where things are.
 */
static inline bool
AttrNeedsAlign(Form_pg_attribute att)
{
	switch (att->attalign)
	{
		case TYPALIGN_CHAR:
			return false;
		case TYPALIGN_SHORT:
			return att->attlen != 2;
		case TYPALIGN_INT:
			return att->attlen != 4;
		default:
			return att->attlen != 8;
	}
}

/* has its value to be copied out, if it is not by value? */
static inline bool
AttrIsCopied(Form_pg_attribute att)
{
	return att->attalign != TYPALIGN_CHAR && !att->attisdropped;
}

static inline bool
VarlenaIsTrimmed(const char *p)
{
	return (uint8) p[0] == 0x01 && (uint8) p[1] == VARTAG_INPLACE_TRIMMED;
}

static inline Size
TrimmedSize(const char *p)
{
	uint16		kept;

	memcpy(&kept, p + 2, 2);
	return SizeOfTrimmedHeader + kept;
}

static pg_attribute_always_inline Datum
DeformByVal(const char *p, int16 attlen)
{
	int32		v4;
	int16		v2;
	Datum		v8;

	switch (attlen)
	{
		case 4:
			memcpy(&v4, p, 4);
			return Int32GetDatum(v4);
		case 8:
			memcpy(&v8, p, 8);
			return v8;
		case 1:
			return CharGetDatum(*p);
		default:
			memcpy(&v2, p, 2);
			return Int16GetDatum(v2);
	}
}

/* a value of a type that is not by value, at *o, which is moved past it; false: damaged */
extern bool inplace_deform_by_ref(Form_pg_attribute att, const char *start, Size len,
								  uint32 *o, Datum *value, MemoryContext cxt);

/*
 * inplace_deform, see tuple.h.  Returns the number of attributes deformed, which is less than
 * natts if the tuple was stored before columns were added, or -1.  Lengths are looked at as
 * they come; fixed ones cannot lead far, so they are only at the end.
 */
static inline int
InplaceDeform(TupleDesc desc, InplaceTupleHeader tup, Size len, int attnum,
			  uint32 *off, int natts, Datum *values, bool *isnull,
			  MemoryContext cxt)
{
	const char *start = (const char *) tup;
	bool		hasnull = HdrHasNull(tup);
	const bits8 *bits = HdrBits(tup);
	uint32		o = *off;

	if (unlikely(HdrIsEvicted(tup)))
		return -1;
	natts = Min(natts, HdrNatts(tup));

	for (; attnum < natts; attnum++)
	{
		CompactAttribute *att = TupleDescCompactAttr(desc, attnum);
		const char *p = start + o;

		if (hasnull && att_isnull(attnum, bits))
		{
			values[attnum] = (Datum) 0;
			isnull[attnum] = true;
			continue;
		}
		isnull[attnum] = false;

		if (att->attbyval)
		{
			values[attnum] = DeformByVal(p, att->attlen);
			o += att->attlen;
		}
		else if (att->attlen == -1 && VARATT_IS_1B(p) && !VARATT_IS_1B_E(p))
		{
			values[attnum] = PointerGetDatum(p);
			o += VARSIZE_1B(p);
			if (unlikely(o > len))
				return -1;
		}
		else if (!inplace_deform_by_ref(TupleDescAttr(desc, attnum), start, len, &o,
										&values[attnum], cxt))
			return -1;
	}

	if (unlikely(o > len))
		return -1;
	*off = o;
	return attnum;
}

#endif							/* INPLACE_DEFORM_H */
