/*-------------------------------------------------------------------------
 *
 * slot.h
 *	  The slot that a stored row is in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SLOT_H
#define INPLACE_SLOT_H

#include "inplace.h"

#include "page/tuple.h"

typedef struct InplaceTupleTableSlot
{
	TupleTableSlot base;
	InplaceTupleHeader tuple;	/* the stored row, or NULL if virtual */
	Size		tuple_len;
	uint32		off;			/* deforming continues here */
	char	   *buf;			/* slot-owned memory for the row, or NULL */
	Size		buf_size;
	char	   *spare;			/* the buffer before: values may be in it that
								 * the next row is formed from */
	Size		spare_size;
	bool		has_sysattrs;	/* the five below are known */
	TransactionId xmin;			/* version information; tuple->t_xid is not
								 * used for it */
	TransactionId xmax;
	CommandId	cmin;
	CommandId	cmax;
	bool		replaced;		/* is xmax what replaced or deleted it? */
	VersionTag	tag;
	MemoryContext deform_cxt;	/* trimmed values, reset by clear; made when
								 * first needed */
	HeapTuple	heap_tuple;		/* the row as one, in tts_mcxt, or NULL */
	TupleDesc	compared_desc;	/* another descriptor, or NULL: */
	bool		compared_same;	/* are its rows like the slot's? */
} InplaceTupleTableSlot;

extern const TupleTableSlotOps TTSOpsInplace;

#define TTS_IS_INPLACE(slot) ((slot)->tts_ops == &TTSOpsInplace)

/*
 * What visibility found out about a version besides its bytes.
 */
typedef struct RowVersionInfo
{
	TransactionId xmin;			/* transaction that made this version */
	CommandId	cmin;			/* InvalidCommandId if not known cheaply */
	TransactionId xmax;			/* that replaced, deleted or locked it, or 0 */
	CommandId	cmax;
	bool		replaced;		/* ... replaced or deleted it */
	VersionTag	tag;
} RowVersionInfo;

/*
 * The locker of a row that stands in memory alone (row/memory_lock.c), or
 * InvalidTransactionId.  It is the xmax of the version that nothing has replaced.
 */
extern TransactionId (*inplace_memory_locker) (Oid relid, const ItemPointerData *tid);

extern void inplace_slot_free_heap_tuple(InplaceTupleTableSlot *is);

/*
 * Make the slot forget its row, before another is put in.  The row itself must not be
 * looked at: at the end of a query the scan whose memory it was in is gone.
 */
static inline void
InplaceSlotReset(InplaceTupleTableSlot *is)
{
	if (unlikely(is->deform_cxt != NULL))
		MemoryContextReset(is->deform_cxt);
	if (unlikely(is->heap_tuple != NULL))
		inplace_slot_free_heap_tuple(is);
	is->tuple = NULL;
	is->off = 0;
	is->has_sysattrs = false;
	is->base.tts_nvalid = 0;
}

static inline void
InplaceSlotSetInfo(InplaceTupleTableSlot *is, const RowVersionInfo *vi)
{
	is->has_sysattrs = true;
	is->xmin = vi->xmin;
	is->xmax = vi->xmax;
	is->cmin = vi->cmin;
	is->cmax = vi->cmax;
	is->replaced = vi->replaced;
	is->tag = vi->tag;
}

extern InplaceTupleHeader inplace_slot_ready_row(Relation rel,
												 TupleTableSlot *slot,
												 Size *len);
extern InplaceTupleHeader inplace_slot_own_row(Relation rel,
											   TupleTableSlot *slot,
											   Size *len);

/*
 * Store a row in a slot.  "tuple" must be MAXALIGNed if it is IP_ALIGNED.
 * With copy the slot copies it into memory of its own; without, the caller
 * keeps it in place (and unchanged) until the slot is cleared or stored to.
 * tid goes to tts_tid as it is (tagged or not); vi may be NULL.
 */
extern void inplace_store_tuple(TupleTableSlot *slot, Oid tableoid,
								const ItemPointerData *tid,
								InplaceTupleHeader tuple, Size len,
								const RowVersionInfo *vi, bool copy);

/* the slot's own buffer, at least size bytes, MAXALIGNed; old content lost */
extern char *inplace_slot_buffer(TupleTableSlot *slot, Size size);

/* inplace_store_tuple, for where rows are read one after the other */
static inline void
InplaceSlotStore(TupleTableSlot *slot, Oid tableoid, const ItemPointerData *tid,
				 InplaceTupleHeader tuple, Size len, const RowVersionInfo *vi,
				 bool copy)
{
	InplaceTupleTableSlot *is = (InplaceTupleTableSlot *) slot;

	Assert(TTS_IS_INPLACE(slot));
	InplaceSlotReset(is);
	if (copy)
	{
		char	   *buf = likely(is->buf_size >= len) ? is->buf : inplace_slot_buffer(slot, len);

		memcpy(buf, tuple, len);
		tuple = (InplaceTupleHeader) buf;
	}
	is->tuple = tuple;
	is->tuple_len = len;
	is->off = HdrSize(tuple);
	if (vi)
		InplaceSlotSetInfo(is, vi);
	slot->tts_tid = *tid;
	slot->tts_tableOid = tableoid;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
}

/* slots of a result relation, by what they are for */
typedef enum ResultSlot
{
	RESULT_SLOT_NONE,
	RESULT_SLOT_RETURNING,		/* ON CONFLICT DO NOTHING's row in the way,
								 * DELETE's deleted row */
	RESULT_SLOT_TRIGGER_OLD,	/* the old row, for triggers */
	RESULT_SLOT_CONFLICT		/* ON CONFLICT DO UPDATE's row in the way */
} ResultSlot;

extern ResultSlot inplace_result_slot(TupleTableSlot *slot);

#endif							/* INPLACE_SLOT_H */
