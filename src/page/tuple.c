/*-------------------------------------------------------------------------
 *
 * tuple.c
 *	  Forming and measuring inplace tuples.  The format is in tuple.h.  They
 *	  are taken apart in deform.h.
 *
 * Sizing and filling walk the attributes in the same way; a change in one
 * of inplace_compute_size, inplace_fill_tuple, inplace_row_from_heap,
 * InplaceDeform and inplace_attr_ends is a change in all five.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_type_d.h"
#include "page/deform.h"
#include "page/tuple.h"
#include "utils/expandeddatum.h"
#include "utils/lsyscache.h"

/* how a varlena is going to be stored */
typedef enum VarlenaForm
{
	VF_ASIS_UNALIGNED,			/* short or external, copied as it is */
	VF_EXPANDED,				/* to be flattened, aligned */
	VF_TO_SHORT,				/* 4-byte header becomes 1-byte */
	VF_TRIMMED,					/* bpchar without its trailing blanks */
	VF_ALIGNED					/* 4-byte header, aligned */
} VarlenaForm;

typedef struct FlagName
{
	uint16		bit;
	const char *name;
} FlagName;

static const FlagName infomask_names[] = {
	{IP_FRESH, "FRESH"},
	{IP_DELETED, "DELETED"},
	{IP_MOVED, "MOVED"},
	{IP_MOVED_PARTITION, "MOVED_PARTITION"},
	{IP_COMMITTED, "COMMITTED"},
	{IP_ABORTED, "ABORTED"},
	{IP_FROZEN, "FROZEN"},
	{IP_KEYS_UPDATED, "KEYS_UPDATED"},
	{IP_LOCK_DIRECT, "LOCK_DIRECT"},
	{IP_LOCK_INDIRECT, "LOCK_INDIRECT"},
	{IP_LOCK_MULTI, "LOCK_MULTI"},
	{IP_SPECULATIVE, "SPECULATIVE"},
	{IP_STALE, "STALE"},
	{IP_PADDED, "PADDED"}
};

static const FlagName natts_names[] = {
	{IP_HASNULL, "HASNULL"},
	{IP_HASEXTERNAL, "HASEXTERNAL"},
	{IP_ALIGNED, "ALIGNED"},
	{IP_HASTRIMMED, "HASTRIMMED"},
	{IP_UNCHANGED, "UNCHANGED"}
};

StaticAssertDecl(lengthof(infomask_names) + lengthof(natts_names) + 1 <= INPLACE_MAX_FLAGS,
				 "INPLACE_MAX_FLAGS is too small");

int
inplace_flag_names(const InplaceTupleHeaderData *hdr, const char **names)
{
	int			n = 0;

	if (HdrIsEvicted(hdr))
		names[n++] = "EVICTED";
	for (int i = 0; i < lengthof(infomask_names); i++)
		if (hdr->t_infomask & infomask_names[i].bit)
			names[n++] = infomask_names[i].name;
	for (int i = 0; i < lengthof(natts_names); i++)
		if (hdr->t_natts & natts_names[i].bit)
			names[n++] = natts_names[i].name;
	return n;
}

const char *
inplace_lock_mode_name(LockTupleMode mode)
{
	switch (mode)
	{
		case LockTupleKeyShare:
			return "for key share";
		case LockTupleShare:
			return "for share";
		case LockTupleNoKeyExclusive:
			return "for no key update";
		case LockTupleExclusive:
			return "for update";
	}
	return "unknown";
}

/*
 * Number of trailing blanks of a bpchar that is stored here in plain form; 0
 * if trimming them does not pay.
 */
static int
trimmable_blanks(struct varlena *v)
{
	const uint64 eight_blanks = UINT64CONST(0x2020202020202020);
	const char *data = VARDATA_ANY(v);
	Size		len = VARSIZE_ANY_EXHDR(v);
	Size		n = len;

	while (n >= sizeof(uint64) &&
		   memcmp(data + n - sizeof(uint64), &eight_blanks, sizeof(uint64)) == 0)
		n -= sizeof(uint64);
	while (n > 0 && data[n - 1] == ' ')
		n--;
	if (len - n < BPCHAR_TRIM_MIN || len > PG_UINT16_MAX)
		return 0;
	return (int) (len - n);
}

/* A value in memory may be a pointer to another; a row has that one. */
static inline struct varlena *
varlena_to_store(Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);

	while (unlikely(VARATT_IS_EXTERNAL_INDIRECT(v)))
	{
		struct varatt_indirect redirect;

		memcpy(&redirect, VARDATA_EXTERNAL(v), sizeof(redirect));
		v = redirect.pointer;
	}
	return v;
}

/*
 * Most values that come from another table are short already, and are stored as
 * they are.
 */
static inline bool
stored_as_short(Form_pg_attribute att, const void *v)
{
	return VARATT_IS_1B(v) && !VARATT_IS_1B_E(v) && att->atttypid != BPCHAROID;
}

static VarlenaForm
varlena_form(Form_pg_attribute att, struct varlena *v, Size *size)
{
	if (VARATT_IS_EXTERNAL(v))
	{
		if (VARATT_IS_EXTERNAL_EXPANDED(v))
		{
			*size = EOH_get_flat_size(DatumGetEOHP(PointerGetDatum(v)));
			return VF_EXPANDED;
		}
		*size = VARSIZE_EXTERNAL(v);
		return VF_ASIS_UNALIGNED;
	}
	if (unlikely(!VARATT_IS_1B(v) && VARSIZE_4B(v) < VARHDRSZ))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("value for column \"%s\" is damaged", NameStr(att->attname)),
				 errdetail("Its length is less than that of a length word.")));
	if (att->atttypid == BPCHAROID && !VARATT_IS_COMPRESSED(v))
	{
		int			blanks = trimmable_blanks(v);

		if (blanks > 0)
		{
			*size = SizeOfTrimmedHeader + VARSIZE_ANY_EXHDR(v) - blanks;
			return VF_TRIMMED;
		}
	}
	if (VARATT_IS_SHORT(v))
	{
		*size = VARSIZE_SHORT(v);
		return VF_ASIS_UNALIGNED;
	}
	if (att->attstorage != TYPSTORAGE_PLAIN && VARATT_CAN_MAKE_SHORT(v))
	{
		*size = VARATT_CONVERTED_SHORT_SIZE(v);
		return VF_TO_SHORT;
	}
	*size = VARSIZE(v);
	return VF_ALIGNED;
}

/*
 * Length of the tuple that these values make; *nattsflags becomes its t_natts.
 */
Size
inplace_compute_size(TupleDesc desc, const Datum *values, const bool *isnull,
					 uint16 *nattsflags)
{
	int			natts = desc->natts;
	uint16		flags = natts;
	Size		size = SizeOfInplaceTupleHeader;

	for (int i = 0; i < natts; i++)
	{
		if (isnull[i])
		{
			flags |= IP_HASNULL;
			size += BITMAPLEN(natts);
			break;
		}
	}

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i])
			continue;
		if (att->attbyval)
			size += att->attlen;
		else if (att->attlen == -1 &&
				 stored_as_short(att, DatumGetPointer(values[i])))
			size += VARSIZE_1B(DatumGetPointer(values[i]));
		else if (att->attlen == -1)
		{
			struct varlena *v = varlena_to_store(values[i]);
			Size		vsize;

			switch (varlena_form(att, v, &vsize))
			{
				case VF_ALIGNED:
				case VF_EXPANDED:
					size = att_align_nominal(size, att->attalign);
					flags |= IP_ALIGNED;
					break;
				case VF_TRIMMED:
					flags |= IP_HASTRIMMED;
					break;
				case VF_ASIS_UNALIGNED:
					if (VARATT_IS_EXTERNAL(v))
						flags |= IP_HASEXTERNAL;
					break;
				case VF_TO_SHORT:
					break;
			}
			size += vsize;
		}
		else if (att->attlen == -2)
			size += strlen(DatumGetCString(values[i])) + 1;
		else
		{
			if (AttrNeedsAlign(att))
			{
				size = att_align_nominal(size, att->attalign);
				flags |= IP_ALIGNED;
			}
			else if (AttrIsCopied(att))
				flags |= IP_HASTRIMMED;
			size += att->attlen;
		}
	}

	*nattsflags = flags;
	return size;
}

/* zeros, up to where the attribute may begin */
static inline char *
pad_for(char *p, char *start, Form_pg_attribute att)
{
	char	   *to = start + att_align_nominal(p - start, att->attalign);

	while (p < to)
		*p++ = 0;
	return p;
}

/* of the form and size that varlena_form() said; returns the end */
static inline char *
fill_varlena(char *p, char *start, Form_pg_attribute att, struct varlena *v,
			 VarlenaForm form, Size size)
{
	switch (form)
	{
		case VF_ASIS_UNALIGNED:
			memcpy(p, v, size);
			break;
		case VF_EXPANDED:
			p = pad_for(p, start, att);
			EOH_flatten_into(DatumGetEOHP(PointerGetDatum(v)), p, size);
			break;
		case VF_TO_SHORT:
			SET_VARSIZE_SHORT(p, size);
			memcpy(p + 1, VARDATA(v), size - 1);
			break;
		case VF_TRIMMED:
			{
				uint16		kept = size - SizeOfTrimmedHeader;
				uint16		blanks = VARSIZE_ANY_EXHDR(v) - kept;

				p[0] = 0x01;
				p[1] = VARTAG_INPLACE_TRIMMED;
				memcpy(p + 2, &kept, 2);
				memcpy(p + 4, &blanks, 2);
				memcpy(p + SizeOfTrimmedHeader, VARDATA_ANY(v), kept);
				break;
			}
		case VF_ALIGNED:
			p = pad_for(p, start, att);
			memcpy(p, v, size);
			break;
	}
	return p + size;
}

/*
 * Fill a tuple of the length and flags that inplace_compute_size gave.  The
 * version part of the header is zeroed.
 */
void
inplace_fill_tuple(TupleDesc desc, const Datum *values, const bool *isnull,
				   uint16 nattsflags, InplaceTupleHeader tup, Size len)
{
	int			natts = desc->natts;
	char	   *start = (char *) tup;
	char	   *p;

	memset(tup, 0, SizeOfInplaceTupleHeader);
	tup->t_natts = nattsflags;

	if (nattsflags & IP_HASNULL)
	{
		bits8	   *bits = HdrBits(tup);

		memset(bits, 0, BITMAPLEN(natts));
		for (int i = 0; i < natts; i++)
			if (!isnull[i])
				bits[i >> 3] |= 1 << (i & 7);
	}
	p = start + HdrSize(tup);

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (isnull[i])
			continue;
		if (att->attbyval)
		{
			switch (att->attlen)
			{
				case 1:
					*p = DatumGetChar(values[i]);
					break;
				case 2:
					{
						int16		v = DatumGetInt16(values[i]);

						memcpy(p, &v, 2);
						break;
					}
				case 4:
					{
						int32		v = DatumGetInt32(values[i]);

						memcpy(p, &v, 4);
						break;
					}
				case 8:
					memcpy(p, &values[i], 8);
					break;
				default:
					elog(ERROR, "unsupported byval length: %d", att->attlen);
			}
			p += att->attlen;
		}
		else if (att->attlen == -1 &&
				 stored_as_short(att, DatumGetPointer(values[i])))
		{
			Size		vsize = VARSIZE_1B(DatumGetPointer(values[i]));

			memcpy(p, DatumGetPointer(values[i]), vsize);
			p += vsize;
		}
		else if (att->attlen == -1)
		{
			struct varlena *v = varlena_to_store(values[i]);
			Size		vsize;
			VarlenaForm form = varlena_form(att, v, &vsize);

			p = fill_varlena(p, start, att, v, form, vsize);
		}
		else if (att->attlen == -2)
		{
			Size		n = strlen(DatumGetCString(values[i])) + 1;

			memcpy(p, DatumGetCString(values[i]), n);
			p += n;
		}
		else
		{
			if (AttrNeedsAlign(att))
				p = pad_for(p, start, att);
			memcpy(p, DatumGetPointer(values[i]), att->attlen);
			p += att->attlen;
		}
	}

	Assert((Size) (p - start) == len);
}

/* the most that a row made of it takes */
Size
inplace_row_from_heap_bound(TupleDesc desc, HeapTuple heap)
{
	return SizeOfInplaceTupleHeader + BITMAPLEN(desc->natts) + heap->t_len +
		desc->natts * MAXIMUM_ALIGNOF;
}

/*
 * A varlena at *o of a heap tuple's data, which is of this length.  Moves *o and *p past
 * it; returns false if inplace_row_from_heap cannot take it.
 */
static pg_attribute_always_inline bool
varlena_from_heap(Form_pg_attribute att, const char *from, Size limit, Size *o,
				  char *start, char **p, uint16 *flags)
{
	struct varlena *v;
	VarlenaForm form;
	Size		size;
	Size		vsize;

	*o = att_align_pointer(*o, att->attalign, -1, from + *o);
	v = (struct varlena *) (from + *o);
	if (*o + VARHDRSZ_SHORT > limit)
		return false;
	if (likely(stored_as_short(att, v)))
	{
		size = VARSIZE_1B(v);
		if (*o + size > limit)
			return false;
		memcpy(*p, v, size);
		*p += size;
		*o += size;
		return true;
	}

	if (*o + (VARATT_IS_1B_E(v) ? VARHDRSZ_EXTERNAL :
			  VARATT_IS_1B(v) ? VARHDRSZ_SHORT : VARHDRSZ) > limit)
		return false;
	if (VARATT_IS_1B_E(v))
	{
		if (VARTAG_EXTERNAL(v) != VARTAG_ONDISK)
			return false;
		*flags |= IP_HASEXTERNAL;
	}
	size = VARSIZE_ANY(v);
	if (size > limit || *o + size > limit)
		return false;
	form = varlena_form(att, v, &vsize);
	if (form == VF_ALIGNED)
		*flags |= IP_ALIGNED;
	else if (form == VF_TRIMMED)
		*flags |= IP_HASTRIMMED;
	*p = fill_varlena(*p, start, att, v, form, vsize);
	*o += size;
	return true;
}

/*
 * Make the row that inplace_fill_tuple would make of the values of a heap tuple, from
 * its bytes.  The descriptor is the table's, and that of the heap tuple, see
 * same_row_layout().  Returns the length, or 0 if it is to be done by way of the values:
 * the heap tuple is from before columns were added, has something that is not on
 * disk, or is damaged.
 */
Size
inplace_row_from_heap(TupleDesc desc, HeapTuple heap, InplaceTupleHeader tup)
{
	HeapTupleHeader header = heap->t_data;
	const char *from = (const char *) header + header->t_hoff;
	Size		limit = heap->t_len - header->t_hoff;
	const bits8 *bits = HeapTupleHasNulls(heap) ? header->t_bits : NULL;
	int			natts = desc->natts;
	uint16		flags = natts;
	char	   *start = (char *) tup;
	char	   *p;
	Size		o = 0;

	if (HeapTupleHeaderGetNatts(header) != natts || heap->t_len < header->t_hoff)
		return 0;

	memset(tup, 0, SizeOfInplaceTupleHeader);
	p = start + SizeOfInplaceTupleHeader;
	if (bits)
	{
		flags |= IP_HASNULL;
		memcpy(p, bits, BITMAPLEN(natts));
		p += BITMAPLEN(natts);
	}

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Size		size = att->attlen;

		if (bits && att_isnull(i, bits))
			continue;
		if (att->attlen == -1)
		{
			if (!varlena_from_heap(att, from, limit, &o, start, &p, &flags))
				return 0;
			continue;
		}
		if (att->attlen == -2)
		{
			if (o >= limit)
				return 0;
			size = strnlen(from + o, limit - o) + 1;
		}
		else
			o = att_align_nominal(o, att->attalign);
		if (o + size > limit)
			return 0;

		if (att->attbyval)
		{
			switch (att->attlen)
			{
				case 4:
					memcpy(p, from + o, 4);
					break;
				case 8:
					memcpy(p, from + o, 8);
					break;
				case 2:
					memcpy(p, from + o, 2);
					break;
				default:
					*p = from[o];
					break;
			}
		}
		else
		{
			if (att->attlen != -2)
			{
				if (AttrNeedsAlign(att))
				{
					p = pad_for(p, start, att);
					flags |= IP_ALIGNED;
				}
				else if (AttrIsCopied(att))
					flags |= IP_HASTRIMMED;
			}
			memcpy(p, from + o, size);
		}
		p += size;
		o += size;
	}

	tup->t_natts = flags;
	return p - start;
}

InplaceTupleHeader
inplace_form_tuple(TupleDesc desc, const Datum *values, const bool *isnull,
				   Size *len)
{
	uint16		flags;
	InplaceTupleHeader tup;

	*len = inplace_compute_size(desc, values, isnull, &flags);
	tup = (InplaceTupleHeader) palloc(*len);
	inplace_fill_tuple(desc, values, isnull, flags, tup, *len);
	return tup;
}

/*
 * Where the attribute ends that begins at o (or, aligned, after it) and is not
 * null.  Never reads past limit; returns 0 if the attribute does not fit
 * there, which means that the tuple is damaged.
 */
static pg_attribute_always_inline Size
attr_end(Form_pg_attribute att, const char *start, Size o, Size limit)
{
	if (att->attbyval)
		o += att->attlen;
	else if (att->attlen == -1)
	{
		const char *p = start + o;

		if (o + 1 > limit)
			return 0;
		if (!VARATT_NOT_PAD_BYTE(p))
		{
			o = att_align_nominal(o, att->attalign);
			p = start + o;
			if (o + VARHDRSZ > limit)
				return 0;
		}
		if (VARATT_IS_1B_E(p))
		{
			if (o + VARHDRSZ_EXTERNAL > limit)
				return 0;
			if (VarlenaIsTrimmed(p))
			{
				if (o + SizeOfTrimmedHeader > limit)
					return 0;
				o += TrimmedSize(p);
			}
			else
			{
				if (VARTAG_EXTERNAL(p) != VARTAG_ONDISK)
					return 0;
				o += VARSIZE_EXTERNAL(p);
			}
		}
		else if (VARATT_IS_1B(p))
			o += VARSIZE_1B(p);
		else
		{
			if (o + VARHDRSZ > limit || VARSIZE_4B(p) < VARHDRSZ)
				return 0;
			o += VARSIZE_4B(p);
		}
	}
	else if (att->attlen == -2)
	{
		if (o >= limit)
			return 0;
		o += strnlen(start + o, limit - o) + 1;
	}
	else
	{
		if (AttrNeedsAlign(att))
			o = att_align_nominal(o, att->attalign);
		o += att->attlen;
	}
	return o > limit ? 0 : o;
}

Size
inplace_attr_end(Form_pg_attribute att, InplaceTupleHeader tup, Size o,
				 Size limit)
{
	return attr_end(att, (const char *) tup, o, limit);
}

/*
 * See tuple.h.  Never reads past limit; returns 0 if the attributes do not
 * fit there, which means that the tuple is damaged.
 */
Size
inplace_attr_ends(TupleDesc desc, InplaceTupleHeader tup, uint16 *ends,
				  Size limit)
{
	const char *start = (const char *) tup;
	int			natts = HdrNatts(tup);
	bool		hasnull = HdrHasNull(tup);
	const bits8 *bits = HdrBits(tup);
	Size		o = HdrSize(tup);

	if (natts > desc->natts || o > limit)
		return 0;

	for (int i = 0; i < natts; i++)
	{
		if (!hasnull || !att_isnull(i, bits))
		{
			o = attr_end(TupleDescAttr(desc, i), start, o, limit);
			if (o == 0)
				return 0;
		}
		ends[i] = o;
	}
	return o;
}

Size
inplace_tuple_len(const InplaceTupleHeaderData *tup, Size itemlen)
{
	const uint8 *item = (const uint8 *) tup;
	uint16		pad;

	if (!(tup->t_infomask & IP_PADDED))
		return itemlen;
	pad = item[itemlen - 1];
	if (pad == 255)
		memcpy(&pad, item + itemlen - 3, 2);
	if (pad + SizeOfInplaceTupleHeader > itemlen)
		return SizeOfInplaceTupleHeader;	/* damaged; inplace_check says so */
	return itemlen - pad;
}

void
inplace_set_padding(InplaceTupleHeader tup, Size len, Size itemlen)
{
	uint8	   *item = (uint8 *) tup;
	uint16		pad = itemlen - len;

	Assert(len <= itemlen);
	if (pad == 0)
	{
		tup->t_infomask &= ~IP_PADDED;
		return;
	}
	tup->t_infomask |= IP_PADDED;
	memset(item + len, 0, pad);
	if (pad < 255)
		item[itemlen - 1] = pad;
	else
	{
		item[itemlen - 1] = 255;
		memcpy(item + itemlen - 3, &pad, 2);
	}
}
