/*-------------------------------------------------------------------------
 *
 * update.h
 *	  An update under way, for the files that have a part in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TABLE_UPDATE_H
#define INPLACE_TABLE_UPDATE_H

#include "inplace.h"

#include "index/taking.h"
#include "modify/modify.h"
#include "modify/toast.h"
#include "page/compare.h"
#include "page/page.h"
#include "page/tuple.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "undo/append.h"
#include "undo/undo.h"
#include "wal/logical.h"

typedef struct UpdateState
{
	Relation	rel;
	RowTarget	target;
	BlockNumber blk;
	OffsetNumber off;
	TransactionId xid;
	CommandId	cid;
	Buffer		buffer;
	bool		borrowed;		/* the pin on it (recent.c) */
	Buffer		vmbuffer;
	RowCheck	rc;
	RowDiff		diff;
	ShiftedBytes shifted;		/* what the caller knows of the change */
	Size		delta_len;		/* of undo, for what changed */
	UndoRoom	room;			/* of undo, for the change */
	InplaceTupleHeader newtup;	/* formed; header filled last */
	Size		newlen;
	bool		key_changed;
	bool		index_changed;	/* ... that cannot take it in place */
	bool		summary_changed;
	Bitmapset  *index_attrs;	/* columns whose change moves the row, */
	Bitmapset  *summary_attrs;	/* ... those of summarizing indexes, */
	Bitmapset  *key_attrs;		/* ... of the keys foreign keys may refer to, */
	Bitmapset  *id_attrs;		/* ... of the replica identity */
	TakingIndexes *taking;		/* indexes that can take it, or NULL */
	bool		leaves_old_entry;	/* a key of theirs changed */
	bool		others_asked;	/* indexes of other methods were told to take
								 * it */
	bool		needs_sweep;	/* ... which makes the row one for VACUUM, and
								 * it was not before */
	bool		keys_verified;	/* with the row as in verified_hdr, */
	bool		keys_distinct;	/* ... the new may stand beside the old */
	InplaceTupleHeaderData verified_hdr;
	XLogRecPtr	verified_lsn;	/* of its page */
	bool		needs_toast;	/* the new row, as the caller gave it */
	InplaceTupleHeader oldcopy; /* what newtup is toasted against, */
	InplaceTupleHeaderData oldcopy_hdr; /* ... as it was then */
	Toasting   *toasting;		/* ... under way: compressing did not do */
	bool		toasted;		/* ... and newtup has been, if need be */
	bool		locks_first;	/* ... it was compressed in vain before */
	InplaceTupleHeader replaced;	/* a copy, if entries are made against it */
	bool		reserved;		/* the row, before values were stored */
	bool		evict_reserved; /* undo for others' eviction, or tried to */
	bool		key_changed_early;	/* as far as is known before toasting */
	bool		conflict;		/* older versions cut off, standbys not told */
	/* the new row's place, if it moved */
	Buffer		newbuf;
	Buffer		newvm;
	OffsetNumber newoff;
	bool		searched;		/* newbuf and newvm have pins of their own */
	LogicalChange lc;			/* for logical decoding, */
	bool		logical;		/* if need be */
} UpdateState;

/* the newest version; the page is locked */
static inline InplaceTupleHeader
current_tuple(UpdateState *us)
{
	return PageGetTupleAt(RowPage(us->rel, us->buffer), us->off);
}

static inline Size
item_len(UpdateState *us)
{
	return ItemIdGetLength(PageGetItemId(RowPage(us->rel, us->buffer), us->off));
}

/* where the row has gone, in the record of the move */
#define MOVE_LINK_SIZE	(sizeof(BlockNumber) + sizeof(OffsetNumber))

/* bytes of undo that the change takes, if that is not less */
static inline Size
inplace_update_undo_size(const UpdateState *us)
{
	Size		len = SizeOfUndoRecordHeader + SizeOfInplaceTupleHeader +
		Max(us->delta_len, MOVE_LINK_SIZE);

	if (us->rc.locked)
		len += 2 * UNDO_LOCK_RECORD_SIZE;
	return Min(len, UNDO_MAX_RECORD);
}

/* update_in_place.c */
extern void inplace_update_in_place(UpdateState *us);

/* update_move.c */

extern bool inplace_update_find_page(UpdateState *us);
extern void inplace_update_by_move(UpdateState *us);

/* update_toast.c */

/* what becomes of the large values of the new row */
typedef enum ToastNeed
{
	TOAST_KEEPS,				/* it has the old one's */
	TOAST_COMPRESSES,			/* ... and others, which may fit if compressed */
	TOAST_STORES				/* some will be stored */
} ToastNeed;

extern ToastNeed inplace_update_toast_need(UpdateState *us, TupleTableSlot *slot,
										   InplaceTupleHeader old);
extern void inplace_update_toast(UpdateState *us, TupleTableSlot *slot,
								 bool in_line);
extern void inplace_update_forget_copy(UpdateState *us);
extern bool inplace_update_keys_differ(UpdateState *us, TupleTableSlot *slot,
									   InplaceTupleHeader old);
extern void inplace_update_reserve_row(UpdateState *us, LockTupleMode mode,
									   UndoRoom *room);

#endif							/* INPLACE_TABLE_UPDATE_H */
