/*-------------------------------------------------------------------------
 *
 * table.h
 *	  The inside of the table access method: visibility, pages, slots.
 *
 * Rule for readers: nobody keeps a pointer into a data page after letting go
 * of its lock, for an in-place update writes under a mere pin.  Rows are
 * copied out under the share lock.  In return nothing needs a cleanup lock:
 * pruning and compacting a page take the ordinary exclusive lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TABLE_H
#define INPLACE_TABLE_H

#include "access/clog.h"
#include "inplace.h"
#include "page/tuple.h"
#include "undo/undo.h"
#include "utils/memutils.h"

/* ---------------- slot.c ---------------- */

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
	TransactionId xmin;			/* who made this version */
	CommandId	cmin;			/* InvalidCommandId if not known cheaply */
	TransactionId xmax;			/* who replaced, deleted or locked it, or 0 */
	CommandId	cmax;
	VersionTag	tag;
} RowVersionInfo;

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

/* ---------------- visibility.c ---------------- */

/*
 * A row's version as somebody sees it, in memory of the caller.  Under the
 * page lock "tuple" may point into the page if no undo had to be applied;
 * "owned" says whether it is in "space" instead.
 */
typedef struct RowVersion
{
	InplaceTupleHeader tuple;
	Size		len;			/* without padding */
	bool		owned;
	RowVersionInfo info;
	/* union forces MAXALIGN; two areas, for undo steps go back and forth */
	union
	{
		char		data[BLCKSZ];
		double		align_it;
		int64		align_it2;
	}			space[2];
} RowVersion;

extern RowVersion *RowVersionAlloc(void);	/* palloc'd, big: reuse it */

/*
 * The version of the row at (buffer, off) that the snapshot sees; false if
 * none.  buffer at least share-locked.  page is the buffer's page, or a copy
 * of it that the caller made under the lock (then buffer may be unlocked; it
 * is used for hint bits only if buffer_locked).
 * Works for MVCC, Self, Any (the newest version, whatever its state), Dirty
 * (sets the snapshot's xmin, xmax and speculativeToken), Toast is for heap
 * only, NonVacuumable.
 *
 * need_info: also fill xmin.. of version->info exactly (cmin, cmax may need
 * undo reads); without it only what was looked at anyway.
 * With serializable snapshots conflicts out are checked by this function, with
 * those who made the versions that it meets and does not see, and with who
 * replaced the one that is seen.
 */
extern bool inplace_fetch_version(Relation rel, Buffer buffer,
								  bool buffer_locked, Page page,
								  BlockNumber blk, OffsetNumber off,
								  Snapshot snapshot, RowVersion *version);

/*
 * The cheap common case of the above, to be tried first: returns 1 if the
 * newest version (the one on the page) is visible to this MVCC snapshot, 0
 * if the row is not visible to it in any version, -1 if it has to be
 * worked out by inplace_fetch_version.
 */
extern int	inplace_quick_visible(InplaceTupleHeader tup, Snapshot snapshot);

/*
 * Does the MVCC snapshot see the version on the page (and not an older one)?
 */
extern bool inplace_newest_visible(Relation rel, Buffer buffer, OffsetNumber off,
								   Snapshot snapshot);

/*
 * The version with this tag, walking back from the newest, rolled back ones
 * included, as far as our own transaction has to do with the row: it has made
 * the versions, or has locked or replaced the first that somebody else made.
 * false if there is none.
 */
extern bool inplace_fetch_ours(Relation rel, Buffer buffer, Page page,
							   BlockNumber blk, OffsetNumber off,
							   VersionTag tag, RowVersion *version);

/* state of a row's newest version, for pruning, vacuum and index builds */
typedef enum RowState
{
	ROW_DEAD,					/* deleted for everybody: space can go */
	ROW_LIVE,					/* committed, not deleted */
	ROW_RECENTLY_DEAD,			/* deleted, but some snapshot may see it */
	ROW_INSERT_IN_PROGRESS,		/* t_xid in progress, was an insert */
	ROW_UPDATE_IN_PROGRESS,		/* t_xid in progress, was an in-place update */
	ROW_DELETE_IN_PROGRESS,
	ROW_ABORTED_INSERT,			/* dead: aborted, nothing before it */
	ROW_ABORTED_CHANGE			/* needs InplaceRestoreRow first */
} RowState;

/*
 * Sets hint bits (buffer locked, share will do).  Cutoff: xids that precede
 * it (or pass vistest, if that is given) are gone for everybody.
 * all_visible is set if everybody sees the newest version (then undo pointer
 * and t_xid do not matter any more).
 */
extern RowState inplace_row_state(Relation rel, InplaceTupleHeader tup,
								  Buffer buffer, TransactionId oldest_xmin,
								  GlobalVisState *vistest, bool *all_visible);

extern void inplace_set_hint(InplaceTupleHeader tup, Buffer buffer,
							 uint16 hint, TransactionId xid);

/* (XidStatus is the server's type, an int: see access/clog.h) */
enum
{
	XID_CURRENT,				/* ours (or a subtransaction of ours) */
	XID_IN_PROGRESS,
	XID_COMMITTED,
	XID_ABORTED
};

/* status of t_xid, from the hint bits if set; sets them (buffer may be
 * InvalidBuffer: no hint is set).  rel is for errors. */
extern XidStatus inplace_xid_status(Relation rel, InplaceTupleHeader tup,
									Buffer buffer);

/* the same of a copy of the header, or of an older one, of that row */
extern XidStatus inplace_copied_xid_status(Relation rel, InplaceTupleHeader hdr,
										   BlockNumber blk, OffsetNumber off);

/* the command in which our own transaction made the newest version */
extern CommandId inplace_change_cid(Relation rel, InplaceTupleHeader tup,
									BlockNumber blk, OffsetNumber off);

/* ---------------- lock.c ---------------- */

/*
 * What is known of a row's lockers besides (lock_trace.c).
 */
typedef struct LockTrace
{
	bool		before;			/* those not in old[] have locked the version
								 * before the newest, too */
	uint8		undone;			/* 1 + LockTupleMode of a change that was
								 * rolled back beside the lock, or 0 */
	int			nold;
	OldLocker	old[MAX_OLD_LOCKERS];
} LockTrace;

/*
 * The lockers of a row.  Fills xid (or multi) and returns true if the row
 * has lockers recorded that may still be alive.  base is the header
 * without its lock (for a new undo record on top).
 */
typedef struct RowLockers
{
	bool		multi;
	TransactionId xid;			/* or MultiXactId */
	LockTupleMode mode;			/* the strongest */
	LockTrace	trace;
	InplaceTupleHeaderData base;
} RowLockers;

extern bool inplace_get_lockers(Relation rel, InplaceTupleHeader tup,
								BlockNumber blk, OffsetNumber off,
								RowLockers *lockers);

/* is any locker of the row other than this transaction still running? */
extern bool inplace_lockers_alive(const RowLockers *lockers);

extern TM_Result inplace_tuple_lock(Relation relation, ItemPointer tid,
									Snapshot snapshot, TupleTableSlot *slot,
									CommandId cid, LockTupleMode mode,
									LockWaitPolicy wait_policy, uint8 flags,
									TM_FailureData *tmfd);

/* ---------------- page.c ---------------- */

/*
 * Every page with rows, or with room that rows have left, carries a mark by
 * which it is told from a page of a heap table: pd_lower, which is a multiple
 * of four there, is one more than the end of the line pointers.  What reads a
 * page for its line pointers rounds down, so that all else is as ever.  A page
 * with nothing on it need not have the mark: it is anybody's.
 */
#define ROW_PAGE_MARK			1
#define RowPageLower(nlines) \
	(SizeOfPageHeaderData + (nlines) * sizeof(ItemIdData) + ROW_PAGE_MARK)
#define RowPageIsMarked(page) \
	((((PageHeader) (page))->pd_lower & (sizeof(ItemIdData) - 1)) == ROW_PAGE_MARK)
/* the end of the line pointers */
#define RowPageLinesEnd(page) \
	(((PageHeader) (page))->pd_lower & ~(sizeof(ItemIdData) - 1))

#ifdef USE_ASSERT_CHECKING
extern bool InplacePageLocked(Buffer buffer);
#endif
extern bool inplace_page_is_blank(Page page);
extern void inplace_unmarked_page(Relation rel, Buffer buffer);

/*
 * The page of a table's buffer, which is locked.  All that look at rows get it
 * here: a page that is not ours is an error, with nothing locked any more.
 */
static inline Page
RowPage(Relation rel, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	Assert(InplacePageLocked(buffer));
	if (unlikely(!RowPageIsMarked(page)))
		inplace_unmarked_page(rel, buffer);
	return page;
}

#define PageGetTupleAt(page, off) \
	((InplaceTupleHeader) PageGetItem((page), PageGetItemId((page), (off))))

/*
 * Free bytes for growth or for a new item on the page, counting what
 * compacting would bring.
 */
extern Size inplace_page_free_space(Page page);

/* move items together; line pointers keep their numbers */
extern void inplace_page_compact(Page page);

/*
 * Put an item on the page at offnum (InvalidOffsetNumber: a free line pointer
 * or a new one), compacting first if need be.  Returns the offset, or
 * InvalidOffsetNumber if it does not fit.  With overwrite the line pointer
 * offnum must be unused or the next new one (redo).
 */
extern OffsetNumber inplace_page_add(Page page, InplaceTupleHeader tup,
									 Size len, OffsetNumber offnum);

/* the line pointer that inplace_page_add is going to use */
extern OffsetNumber inplace_page_next_offset(Page page);

/*
 * Replace the item at offnum by newlen bytes.  If it fits the old item's
 * space it stays where it is (and, with keep_space, lp_len stays as it is and
 * the end is marked as padding); otherwise it is put elsewhere on the
 * page.  Returns false, with the page unchanged, if there is no room.
 */
extern bool inplace_page_replace(Page page, OffsetNumber offnum,
								 InplaceTupleHeader tup, Size newlen,
								 bool keep_space);

/* would the item at offnum, grown to newlen, fit on the page? */
extern bool inplace_page_can_grow(Page page, OffsetNumber offnum,
								  InplaceTupleHeader tup, Size newlen);

/* zero the bytes that belong to no item (of a copy of a page, for comparing) */
extern void inplace_page_blank_gaps(Page page);

/*
 * Is this page one of ours at all, and in one piece?  These ereport
 * ERRCODE_DATA_CORRUPTED if not, with no page locked any more.
 */
extern void inplace_check_page_mark(Relation rel, Page page, BlockNumber blk);
extern void inplace_check_page_header(Relation rel, Page page, BlockNumber blk);
extern void inplace_check_page(Relation rel, Page page, BlockNumber blk);

/* ... and may its items be moved about?  For those who are going to do so. */
extern void inplace_check_items(Relation rel, Page page, BlockNumber blk);

/* fetch.c: rows put on pages by this process */
extern uint64 inplace_rows_put;

/* recent.c: ReadBuffer for those who come by TID */
extern Buffer inplace_read_row_page(Relation rel, BlockNumber blk);
extern Buffer inplace_pin_row_page(Relation rel, BlockNumber blk,
								   OffsetNumber off);
extern void inplace_expect_row(Relation rel, const ItemPointerData *tid);
extern void inplace_foresee_page(Relation rel, BlockNumber blk);
extern void inplace_expect_page(Relation rel, BlockNumber blk);
extern Buffer inplace_expected_row_page(Relation rel, BlockNumber blk,
										OffsetNumber off);
extern Buffer inplace_prefetch_row_page(Relation rel, BlockNumber blk,
										OffsetNumber off);
extern void inplace_prefetch_row(Buffer recent, OffsetNumber off);
extern Buffer inplace_pin_prefetched(Relation rel, BlockNumber blk,
									 Buffer recent);
extern Buffer inplace_borrow_row_page(Relation rel, BlockNumber blk,
									  bool *borrowed);
extern void inplace_return_row_page(Buffer buffer, bool borrowed);
extern void inplace_own_row_page(Buffer buffer, bool *borrowed);
extern void inplace_register_row_page_callbacks(void);

/*
 * The page that a scan has pinned, whose pin commands may borrow.  Nothing but
 * these functions changes it.
 */
typedef struct ScanPin
{
	Buffer		buffer;			/* or InvalidBuffer */
} ScanPin;

extern void ScanPinTake(ScanPin *pin, Relation rel, BlockNumber blk,
						Buffer buffer);
extern void ScanPinDrop(ScanPin *pin);
extern void ScanPinEnd(ScanPin *pin);

static inline void
ScanPinInit(ScanPin *pin)
{
	pin->buffer = InvalidBuffer;
}

/* ---------------- insert.c, update.c, delete.c ---------------- */

extern void inplace_tuple_insert(Relation rel, TupleTableSlot *slot,
								 CommandId cid, int options,
								 struct BulkInsertStateData *bistate);
extern void inplace_tuple_insert_speculative(Relation rel, TupleTableSlot *slot,
											 CommandId cid, int options,
											 struct BulkInsertStateData *bistate,
											 uint32 specToken);
extern void inplace_tuple_complete_speculative(Relation rel, TupleTableSlot *slot,
											   uint32 specToken, bool succeeded);
extern void inplace_multi_insert(Relation rel, TupleTableSlot **slots,
								 int nslots, CommandId cid, int options,
								 struct BulkInsertStateData *bistate);

/*
 * For rewrites: put a row with a given header (xid, flags) and no undo; used
 * by build.c.  Returns its TID.  The header's xid and infomask are kept.
 */
extern void inplace_insert_raw(Relation rel, InplaceTupleHeader tup, Size len,
							   int options,
							   struct BulkInsertStateData *bistate,
							   ItemPointer tid);

extern TM_Result inplace_tuple_delete(Relation rel, ItemPointer tid,
									  CommandId cid, Snapshot snapshot,
									  Snapshot crosscheck, bool wait,
									  TM_FailureData *tmfd, bool changingPart);
#if PG_VERSION_NUM >= 160000
extern TM_Result inplace_tuple_update(Relation rel, ItemPointer otid,
									  TupleTableSlot *slot, CommandId cid,
									  Snapshot snapshot, Snapshot crosscheck,
									  bool wait, TM_FailureData *tmfd,
									  LockTupleMode *lockmode,
									  TU_UpdateIndexes *update_indexes);
#else
extern TM_Result inplace_tuple_update(Relation rel, ItemPointer otid,
									  TupleTableSlot *slot, CommandId cid,
									  Snapshot snapshot, Snapshot crosscheck,
									  bool wait, TM_FailureData *tmfd,
									  LockTupleMode *lockmode,
									  bool *update_indexes);
#endif

/* ---------------- cluster_push.c (for rewrites) ---------------- */

/*
 * Push the version "newer" on top of the row at tid, as a
 * committed transaction's in-place change (an UNDO_UPDATE record by
 * newer->t_xid), or, with IP_DELETED in it, an UNDO_DELETE one, or, with
 * IP_MOVED as well, an UNDO_MOVE one that leads to moved_to (else NULL).
 */
extern void inplace_push_version_raw(Relation rel, ItemPointer tid,
									 InplaceTupleHeader newer, Size len,
									 const ItemPointerData *moved_to,
									 const UndoReplaced *replaced);

/* ---------------- toast.c ---------------- */

/*
 * Compress and move out the large values of a row so that it fits; returns
 * the formed tuple (palloc'd).  old is the version that an update replaces
 * (its unchanged external values are kept), or NULL; oldtid names it in errors.
 */
extern InplaceTupleHeader inplace_toast_insert_or_update(Relation rel,
														 TupleTableSlot *slot,
														 InplaceTupleHeader old,
														 const ItemPointerData *oldtid,
														 Size *len, int options);

/*
 * Delete the external values of "gone" that "kept" does not have too; "unused"
 * if this command has written them itself, for nothing (a command cannot
 * delete what it has inserted).  tid names the row in errors.
 */
extern void inplace_toast_delete_replaced(Relation rel, InplaceTupleHeader gone,
										  InplaceTupleHeader kept,
										  const ItemPointerData *tid,
										  bool unused);

/*
 * Delete the external values of a row that is gone; tid names it in errors.
 */
extern void inplace_toast_delete(Relation rel, InplaceTupleHeader old,
								 const ItemPointerData *tid,
								 bool is_speculative);

/* ---------------- scan.c, fetch.c, build.c ---------------- */

/* filled into the routine by handler.c */
extern void inplace_init_scan_methods(TableAmRoutine *am);
extern void inplace_init_fetch_methods(TableAmRoutine *am);
extern void inplace_init_build_methods(TableAmRoutine *am);
extern void inplace_init_analyze_methods(TableAmRoutine *am);
extern void inplace_init_vacuum_methods(TableAmRoutine *am);
extern void inplace_init_ddl_methods(TableAmRoutine *am);

/* ---------------- vacuum/prune.c, index/index_delete.c ---------------- */

/*
 * Opportunistic: called by readers with the page pinned but not locked, as
 * heap_page_prune_opt is.
 */
extern void inplace_page_prune_opt(Relation rel, Buffer buffer);

/*
 * Prune with the page exclusively locked: rows dead to everybody become
 * LP_DEAD, aborted changes are restored, reserved space that is not needed
 * any more (IP_PADDED of committed rows) is given back, the page compacted.
 * WAL-logged.  Returns the number of rows made LP_DEAD.  off_to_keep, if
 * valid, is an item whose pointer the caller holds: it is not pruned
 * (but may be moved in the page by compaction).
 */
extern int	inplace_page_prune(Relation rel, Buffer buffer,
							   GlobalVisState *vistest,
							   OffsetNumber off_to_keep);

extern TransactionId inplace_index_delete_tuples(Relation rel,
												 TM_IndexDeleteOp *delstate);

/* returning.c */
extern void inplace_slot_tagged(Relation rel);

/* heap_readers.c */
extern void inplace_heap_readers_init(void);
extern uint64 inplace_relation_size(Relation rel, ForkNumber fork);

/* whose_page.c */
extern void inplace_check_whose_file(Relation rel);
extern void inplace_check_tables_of(Node *stmt);
extern void inplace_whose_page_init(void);

#endif							/* INPLACE_TABLE_H */
