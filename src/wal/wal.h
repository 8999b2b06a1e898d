/*-------------------------------------------------------------------------
 *
 * wal.h
 *	  The resource manager and its records.
 *
 * Conventions: block 0 is the data page (XLOG_IP_MOVE: the new row's page),
 * block 1 of a record that writes undo is the undo page.  xl_xid is the
 * changer; redo takes t_xid from it unless the record has a whole header.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_WAL_H
#define INPLACE_WAL_H

#include "access/xlogreader.h"
#include "inplace.h"
#include "lib/stringinfo.h"
#include "page/delta.h"
#include "page/tuple.h"
#include "undo/undo.h"

/* custom resource manager IDs are 128 to 255 */
#define RM_INPLACE_ID			177
#define RM_INPLACE_NAME			"inplace"

#define XLOG_IP_INSERT			0x00
#define XLOG_IP_MULTI_INSERT	0x10
#define XLOG_IP_UPDATE			0x20	/* in place */
#define XLOG_IP_DELETE			0x30
#define XLOG_IP_MOVE			0x40	/* update to a new TID */
#define XLOG_IP_LOCK			0x50
#define XLOG_IP_RESTORE			0x60	/* rollback of one row, on its page */
#define XLOG_IP_PRUNE			0x70
#define XLOG_IP_VACUUM			0x80	/* LP_DEAD to LP_UNUSED; or pages of
										 * an index merged */
#define XLOG_IP_FREEZE			0x90
#define XLOG_IP_VISIBLE			0xA0
#define XLOG_IP_UNDO_DISCARD	0xB0
#define XLOG_IP_HEADER			0xC0	/* a row's header set, nothing else */
#define XLOG_IP_PUSH			0xD0	/* raw version pushed by a rewrite */
#define XLOG_IP_UNDO			0xE0	/* undo alone, of a table without WAL
										 * or to refer to its page (log.c);
										 * block 0 is the undo page */
#define XLOG_IP_LOGICAL			0xF0	/* for logical decoding only */

/* block references to the visibility map's pages, if bits are cleared */
#define WAL_BLOCK_MAP			3	/* those of block 0 */
#define WAL_BLOCK_MAP_OLD		4	/* MOVE: those of block 2, if on another
									 * page */

/*
 * Main data of INSERT, MULTI_INSERT, UPDATE, DELETE, MOVE, LOCK, HEADER,
 * PUSH: none, or one byte of these, which is replayed whether or not the page
 * needs it.
 */
#define XLIP_CLEAR_VISIBLE		0x01	/* clear the map bits of block 0 */
#define XLIP_CLEAR_VISIBLE_OLD	0x02	/* MOVE: of block 2 */
#define XLIP_CLEAR_FROZEN		0x04	/* LOCK, HEADER: clear all-frozen only */
#define XLIP_BARE_DELETES		0x04	/* RESTORE: of bare deletes */
#define XLIP_LOGICAL			0x08	/* what follows is for logical
										 * decoding */

/*
 * With XLIP_LOGICAL (INSERT, MULTI_INSERT, UPDATE, DELETE, MOVE) main data go
 * on with a byte of these, then the heap tuples it announces, the new row or
 * rows first: each uint32 length of what follows, xl_heap_header, null bitmap
 * and data.
 */
#define XLIP_LOGICAL_NEW		0x01
#define XLIP_LOGICAL_OLD		0x02	/* the whole old row */
#define XLIP_LOGICAL_KEY		0x04	/* its key columns, others null */
#define XLIP_LOGICAL_SPECULATIVE 0x08	/* INSERT: an XLOG_IP_LOGICAL follows */
#define XLIP_LOGICAL_MORE		0x10	/* MULTI_INSERT: of several records,
										 * not the last */

/* XLOG_IP_LOGICAL: the end of a speculative insertion.  No block. */
typedef struct xl_ip_logical
{
	RelFileLocator locator;
	uint8		confirm;		/* the row is there; 0: it has been withdrawn */
} xl_ip_logical;

#define SizeOfIpLogical	(offsetof(xl_ip_logical, confirm) + sizeof(uint8))

/* that part of a record, before it is written */
typedef struct LogicalChange
{
	uint8		what;			/* XLIP_LOGICAL_* */
	char	   *tuples;
	Size		len;
} LogicalChange;

/*
 * Block data of an undo page (block 1; 0 for XLOG_IP_UNDO): uint16 offset in
 * the page, then the record or records, back to back.  XLOG_IP_UPDATE in its
 * compact form has none.
 *
 * XLOG_IP_INSERT, block 0: uint16 offset, uint8 XLIP_FROZEN or 0, uint16
 * t_natts, the tuple after the fixed header.
 * XLOG_IP_MULTI_INSERT, block 0: uint8 XLIP_FROZEN or 0, uint16 count; for
 * each: uint16 offset, uint16 t_natts, uint16 length, the tuple after the
 * fixed header.  In both t_xid is the record's, the command id is 0.
 */
#define XLIP_FROZEN				0x01

/*
 * XLOG_IP_UPDATE, block 0 (kept beside a full-page image): uint16, whose low
 * 9 bits are the offset and the others these flags.
 *
 * With COMPACT: the undo place, varint the record's xid less the old
 * version's, varint cid if CID, then edits to the end, each varint skip, varint length, the old
 * bytes, the new bytes.  The undo place is the uint16 offset on the undo page
 * and, if the record has no block 1: varint block << 1 | 1 if in another
 * tablespace than the table, varint the table's relfilenumber less the undo
 * relation's, modulo 2^32, and varint tablespace if another.  The undo record is built from that in redo.
 * Without: the new tuple header, the forward delta.
 */
#define XLIP_UPD_COMPACT		0x0200
#define XLIP_UPD_CID			0x0400
#define XLIP_UPD_KEYS			0x0800
#define XLIP_UPD_TAG_ZERO		0x1000
#define XLIP_UPD_TAG_WRAPPED	0x2000
#define XLIP_UPD_CONFLICT		0x8000	/* standby queries that do not see the
										 * old version's xid are in conflict */
#define XLIP_DEL_BARE			0x1000	/* DELETE: without undo (tuple.h) */
#define XLIP_DEL_PARTITION		0x2000	/* DELETE: moved to another partition */
#define XLIP_UPD_OLD_FROZEN		0x4000

/*
 * XLOG_IP_UPDATE with COMPACT, and XLIP_FROM_PAGE in the uint16 of the undo
 * place: the old bytes are not in the record, but on the page when it is
 * replayed (log_update.c).  After the undo place: varint cid if CID, varint
 * the record's xid less the old version's if CONFLICT, uint16 the new t_natts
 * if NATTS; if WHOLE_HEADER (the undo record has the whole old header) uint16
 * its infomask, where PADDED says that its cid follows as a varint; then the
 * forward delta.  CID, KEYS, CONFLICT and these flags:
 */
#define XLIP_UPD_NATTS			0x1000
#define XLIP_UPD_STALE			0x2000	/* the new version has STALE */
#define XLIP_UPD_WHOLE_HEADER	0x4000
#define XLIP_OLD_HAS_CID		IP_PADDED	/* in the old infomask, which
											 * never has it */

#define XLIP_FROM_PAGE			0x8000
#define XLIP_UNDO_OFFSET_MASK	0x7FFF

/*
 * XLOG_IP_DELETE, block 0 (kept beside a full-page image): uint16 as for
 * UPDATE.  With COMPACT: the undo place, varint xid difference, varint cid if
 * CID; redo makes the header and the undo record from that.  With COMPACT and
 * BARE: varint cid if CID, varint xid difference if CONFLICT; no block 1.
 * Without: the new tuple header.
 * XLOG_IP_LOCK, HEADER, block 0: uint16 offset, the new tuple header.
 * XLOG_IP_RESTORE, PUSH, block 0: uint16 offset, the tuple.  Block 1 is
 * optional.
 * XLOG_IP_RESTORE with XLIP_BARE_DELETES, block 0: uint16 offsets of rows whose
 * bare deletes are taken back.
 * XLOG_IP_MOVE: block 0 the new row's page: uint16 offset, the tuple; block 2
 * the old row's page if it is another one: uint16 offset, the new header.
 * If it is the same page, these come first in block 0: uint16 offset (or 0),
 * the header.
 */

/*
 * XLOG_IP_PRUNE.  Block 0.  Main data: this, then uint16 offsets: ndead of
 * rows made LP_DEAD, nunused of line pointers made LP_UNUSED, ntrim pairs
 * (offset, new item length) of items whose padding is given back.  The page
 * is then compacted.
 */
typedef struct xl_ip_prune
{
	TransactionId horizon;		/* newest xid removed, for standby conflicts */
	uint16		ndead;
	uint16		nunused;
	uint16		ntrim;
} xl_ip_prune;

/*
 * XLOG_IP_VACUUM.  Block 0.  Main data: uint16 count, then offsets of line
 * pointers made LP_UNUSED (trailing ones are cut off).
 *
 * With XLIP_MERGE for the count it is about an inplace_btree (log_merge.c).  Block 0
 * is the page that gets the entries, which are its data, one after the other, each
 * of MAXALIGNed length; block 1 the page that they come from, which is made
 * anew; block 2 the parent.
 */
typedef struct xl_ip_merge
{
	uint16		what;			/* XLIP_MERGE */
	OffsetNumber off;			/* of the downlink to block 1 in the parent */
	BlockNumber prev;			/* block 1's left sibling */
} xl_ip_merge;

/*
 * ... or, with XLIP_SHIFT as well, part of the entries: block 1 keeps those before
 * "first", block 2 is the parent.  Main data: this, then block 1's new high key.
 */
typedef struct xl_ip_shift
{
	uint16		what;			/* XLIP_MERGE | XLIP_SHIFT */
	OffsetNumber off;			/* of the downlink to block 1 in the parent */
	OffsetNumber first;			/* of the entries that have gone */
} xl_ip_shift;

/*
 * ... or, with XLIP_RELOCATE instead of that, a page of a btree that has moved to another
 * block (log_relocate.c).  The block references are these; those from LEFT on are there if
 * there is such a page.  That of TO has an image.
 */
typedef struct xl_ip_relocate
{
	uint16		what;			/* XLIP_MERGE | XLIP_RELOCATE */
	OffsetNumber off;			/* of the downlink in the parent, or 0 */
	uint32		level;			/* of the page */
	FullTransactionId safexid;	/* of the deleted page that it leaves */
} xl_ip_relocate;

#define WAL_MOVED_TO			0
#define WAL_MOVED_FROM			1
#define WAL_MOVED_LEFT			2
#define WAL_MOVED_RIGHT			3
#define WAL_MOVED_PARENT		4
#define WAL_MOVED_META			5

#define XLIP_MERGE				0x8000
#define XLIP_SHIFT				0x4000
#define XLIP_RELOCATE			0x2000
#define SizeOfIpRelocate	sizeof(xl_ip_relocate)
#define SizeOfIpMerge	(offsetof(xl_ip_merge, prev) + sizeof(BlockNumber))
#define SizeOfIpShift	sizeof(xl_ip_shift)

/*
 * XLOG_IP_FREEZE.  Block 0.  Main data: this, then offsets: nfreeze of rows
 * whose t_xid becomes frozen (FROZEN and COMMITTED set, ABORTED cleared; the
 * xid itself stays to be looked at), nunlock of rows whose finished
 * lockers are taken off: their header becomes the one that follows in an array of
 * InplaceTupleHeaderData.  Instead of both, with XLIP_SWEPT in nfreeze, it is
 * about stale entries (vacuum/stale.c): TransactionId swept, then offsets: nfreeze
 * of rows that have had none since that xid, nunlock of rows that are not
 * IP_STALE any more.
 */
typedef struct xl_ip_freeze
{
	TransactionId horizon;
	uint16		nfreeze;
	uint16		nunlock;
} xl_ip_freeze;

#define XLIP_SWEPT				0x8000

/*
 * XLOG_IP_VISIBLE.  Block 0 the data page (PD_ALL_VISIBLE is set on it; no
 * image unless checksums or wal_log_hints), block 1 the visibility map page.
 */
typedef struct xl_ip_visible
{
	TransactionId horizon;
	uint8		flags;			/* VISIBILITYMAP_ALL_VISIBLE, _ALL_FROZEN */
} xl_ip_visible;

/* without the padding at the end */
#define SizeOfIpPrune	(offsetof(xl_ip_prune, ntrim) + sizeof(uint16))
#define SizeOfIpFreeze	(offsetof(xl_ip_freeze, nunlock) + sizeof(uint16))
#define SizeOfIpVisible	(offsetof(xl_ip_visible, flags) + sizeof(uint8))

/*
 * XLOG_IP_UNDO_DISCARD.  No block.
 */
typedef struct xl_ip_undo_discard
{
	Oid			dboid;
	TransactionId horizon;		/* newest xid whose undo is given back */
} xl_ip_undo_discard;

extern void InplaceRmgrRegister(void);
extern void inplace_redo(XLogReaderState *record);
extern void inplace_desc(StringInfo buf, XLogReaderState *record);
extern const char *inplace_identify(uint8 info);
extern void inplace_mask(char *pagedata, BlockNumber blkno);

/* log_merge.c */
extern bool inplace_page_merge(Page result, Page right, const char *entries,
							   Size len);
extern void inplace_page_make_half_dead(Page page, BlockNumber prev,
										BlockNumber next);
extern void inplace_page_drop_downlink(Page page, OffsetNumber off,
									   BlockNumber right);
extern bool inplace_page_cut(Page result, Page left, IndexTuple hikey,
							 OffsetNumber first);
extern bool inplace_page_rekey_downlink(Page page, OffsetNumber off,
										IndexTuple hikey, BlockNumber right);
extern void inplace_log_merge(Buffer right, Buffer left, Buffer parent,
							  OffsetNumber off, BlockNumber prev,
							  const char *entries, Size len);
extern void inplace_log_shift(Buffer right, Buffer left, Buffer parent,
							  OffsetNumber off, OffsetNumber first,
							  IndexTuple hikey, const char *entries, Size len);

/* log_relocate.c */

/* a page's way to another block: buffers that are locked, or InvalidBuffer */
typedef struct PageMove
{
	Buffer		to;
	Buffer		from;
	Buffer		left;			/* its siblings */
	Buffer		right;
	Buffer		parent;
	Buffer		meta;			/* if that leads to it */
	OffsetNumber off;			/* of the downlink in the parent */
	FullTransactionId safexid;	/* of the deleted page that it leaves */
} PageMove;

extern void inplace_page_copy(Page to, Page from);
extern void inplace_page_make_deleted(Page page, BlockNumber to,
									  FullTransactionId safexid);
extern void inplace_page_set_downlink(Page page, OffsetNumber off, BlockNumber to);
extern void inplace_page_set_root(Page page, BlockNumber from, BlockNumber to);
extern void inplace_log_relocate(const PageMove *move);

/* log_vacuum.c */
extern void inplace_log_undo_cut(RelFileLocator locator, BlockNumber start,
								 BlockNumber end);

/* decode.c */
struct LogicalDecodingContext;
struct XLogRecordBuffer;
extern void inplace_decode(struct LogicalDecodingContext *ctx,
						   struct XLogRecordBuffer *buf);

/*
 * logical.c.  inplace_logical_prepare: false if the table is not logically
 * logged.  Either row may be NULL; both MAXALIGNed; oldtid names the old one in
 * errors.  key: replica identity columns, as RelationGetIndexAttrBitmap gives
 * them.
 */
extern bool inplace_logical_prepare(LogicalChange *lc, Relation rel,
									InplaceTupleHeader newtup,
									InplaceTupleHeader oldtup,
									const ItemPointerData *oldtid,
									const Bitmapset *key, bool key_required);
extern void inplace_logical_append_new(StringInfo buf, Relation rel,
									   InplaceTupleHeader tup);
extern void inplace_log_speculative_end(Relation rel, bool succeeded);

/*
 * log_vacuum.c: one function a record; all are called inside the critical
 * section with the buffers locked and the changes made, and set the pages'
 * LSNs.
 */
extern void inplace_log_prune(Relation rel, Buffer buffer,
							  TransactionId horizon,
							  const OffsetNumber *dead, int ndead,
							  const OffsetNumber *unused, int nunused,
							  const OffsetNumber *trim /* pairs */ , int ntrim);
extern void inplace_log_vacuum(Relation rel, Buffer buffer,
							   const OffsetNumber *unused, int nunused);
extern void inplace_log_freeze(Relation rel, Buffer buffer,
							   TransactionId horizon,
							   const OffsetNumber *freeze, int nfreeze,
							   const OffsetNumber *unlock,
							   const InplaceTupleHeaderData *unlocked, int nunlock);
extern void inplace_log_swept(Relation rel, Buffer buffer,
							  TransactionId horizon, TransactionId swept,
							  const OffsetNumber *mark, int nmark,
							  const OffsetNumber *clear, int nclear);
extern XLogRecPtr inplace_log_visible(Relation rel, Buffer buffer,
									  Buffer vmbuffer, TransactionId horizon,
									  uint8 flags);
extern void inplace_log_discard(Oid dboid, TransactionId horizon);

/*
 * log.c: these take the undo that goes with the change (ui NULL: none); they
 * set the LSNs of all pages, the undo page's too.  clear: XLIP_CLEAR_*.
 * lc: for logical decoding, or NULL.
 */
extern void inplace_log_insert(Relation rel, Buffer buffer, OffsetNumber off,
							   bool init_page, bool clear,
							   const LogicalChange *lc);
extern void inplace_log_multi_insert(Relation rel, Buffer buffer,
									 const OffsetNumber *offs, int n,
									 bool init_page, bool clear, char *scratch,
									 const LogicalChange *lc);

/* room for the scratch buffer of the function above */
#define MULTI_INSERT_SCRATCH (2 * BLCKSZ)

/*
 * Put the undo place of a compact record; decides, with the undo page locked,
 * whether the record goes without a reference to it.  At most this long:
 */
#define MAX_UNDO_PLACE	17
#define MAX_NAMED_UNDO_BLOCK	0x7FFFFFFF
extern char *inplace_wal_put_undo_place(char *p, UndoInsert *ui,
										RelFileLocator table);

/* where a compact record's undo goes, when it is replayed */
typedef struct UndoPlace
{
	uint16		offset;
	BlockNumber block;
	RelFileLocator locator;		/* without a block reference only */
} UndoPlace;

/*
 * log_update.c.  inplace_wal_old_row_on_page: may the record of an update
 * leave the old row to the page?  tup is the row, base its header without
 * locks.  Then inplace_wal_build_update makes the record's data (room as for
 * the row, twice), and the page must be changed after inplace_log_update.
 */
extern InplaceTupleHeaderData inplace_wal_old_header(const InplaceTupleHeaderData *tup,
													 uint16 infomask,
													 CommandId cid);
extern bool inplace_wal_old_row_on_page(const InplaceTupleHeaderData *tup,
										const InplaceTupleHeaderData *base);
extern Size inplace_wal_build_update(char *dst, UndoInsert *ui, Relation rel,
									 const char *undo,
									 const InplaceTupleHeaderData *base,
									 const InplaceTupleHeaderData *newhdr,
									 bool conflict, const DeltaEdits *edits,
									 const char *oldimg, const char *newimg);

/* protect.c: inserting records, hints; see there */
extern Size WalProtectShmemSize(void);
extern void WalProtectShmemInit(void);
extern XLogRecPtr inplace_xlog_insert(uint8 info);
extern bool inplace_pages_protected(void);
extern void inplace_mark_hint(Buffer buffer);
extern void inplace_redo_cleanup(void);

/* the undo of a permanent table whose own changes are not logged */
extern void inplace_log_undo_alone(UndoInsert *ui, const char *undo,
								   Size undo_len);
extern void inplace_log_header(Relation rel, Buffer buffer, OffsetNumber off,
							   bool clear_frozen, UndoInsert *ui, const char *undo, Size undo_len);
extern void inplace_log_bare_delete(Relation rel, Buffer buffer,
									const char *data, Size len, bool clear,
									const LogicalChange *lc);
extern void inplace_log_delete(Relation rel, Buffer buffer, const char *data,
							   Size len, bool clear, UndoInsert *ui,
							   const char *undo /* NULL if compact */ ,
							   Size undo_len, const LogicalChange *lc);

/* info is XLOG_IP_RESTORE or XLOG_IP_PUSH */
extern void inplace_log_replace(Relation rel, Buffer buffer, uint8 info,
								OffsetNumber off, InplaceTupleHeader tup,
								Size len, UndoInsert *ui, const char *undo,
								Size undo_len);
extern void inplace_log_undo_deletes(Relation rel, Buffer buffer,
									 const OffsetNumber *offs, int n);
extern void inplace_log_move(Relation rel, Buffer oldbuf, OffsetNumber oldoff,
							 Buffer newbuf, OffsetNumber newoff,
							 bool init_page, uint8 clear, UndoInsert *ui,
							 const char *undo, Size undo_len,
							 const LogicalChange *lc);

/* compact and compact_len, or the header and forward delta, as in the above */
extern void inplace_log_update(Relation rel, Buffer buffer, const char *data,
							   Size len, bool clear, UndoInsert *ui,
							   const char *undo /* NULL if compact */ ,
							   Size undo_len, const LogicalChange *lc);

/*
 * The page changes themselves, shared by do and redo (redo.c).
 */
extern void inplace_page_apply_prune(Page page,
									 const OffsetNumber *dead, int ndead,
									 const OffsetNumber *unused, int nunused,
									 const OffsetNumber *trim, int ntrim);
extern void inplace_page_apply_vacuum(Page page, const OffsetNumber *unused,
									  int nunused);
extern void inplace_page_apply_freeze(Page page,
									  const OffsetNumber *freeze, int nfreeze,
									  const OffsetNumber *unlock,
									  const InplaceTupleHeaderData *unlocked,
									  int nunlock);

extern void inplace_page_apply_swept(Page page, TransactionId swept,
									 const OffsetNumber *mark, int nmark,
									 const OffsetNumber *clear, int nclear);

extern void inplace_map_page_set(Page vmpage, BlockNumber blk, uint8 flags);

/* take back the bare deletes of these rows */
extern void inplace_page_undo_deletes(Page page, const OffsetNumber *offs,
									  int n);

/*
 * Set visibility map bits of a block with our own record (log_heap_visible
 * would have heap's mask applied to our pages).  Both buffers pinned, the
 * data page exclusively locked.  Does the critical section itself.
 */
extern void inplace_visibilitymap_set(Relation rel, BlockNumber blk,
									  Buffer buffer, Buffer vmbuffer,
									  TransactionId horizon, uint8 flags);

#endif							/* INPLACE_WAL_H */
