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

#include "inplace.h"

#include "access/xlogreader.h"
#include "lib/stringinfo.h"
#include "page/tuple.h"

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

/*
 * XLOG_IP_LOGICAL: the end of a speculative insertion; or chunks of a value that has
 * been stored in a TOAST table, which follow as heap tuples (see above).  No block.
 */
typedef struct xl_ip_logical
{
	RelFileLocator locator;
	uint8		what;			/* as follows */
} xl_ip_logical;

#define XLIP_SPECULATION_WITHDRAWN	0
#define XLIP_SPECULATION_CONFIRMED	1
#define XLIP_VALUE_CHUNKS			2

#define SizeOfIpLogical	(offsetof(xl_ip_logical, what) + sizeof(uint8))

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

/*
 * XLOG_IP_UPDATE of line pointer 0: rows that are evicted (log_evict.c).  After the
 * uint16, with COMPACT the undo place, whose XLIP_FROM_PAGE is set; or the uint16 offset
 * on the undo page, whose records block 1 has.  Then for each row: uint16 offset, with
 * XLIP_EVICT_OLD if its delete is not a bare one, and then the old header, its uint32 cid
 * and, of a moved row, the TID it has gone to.
 */
#define XLIP_EVICT_OLD			0x8000

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
 * XLOG_IP_MOVE: block 0 the new row's page, block 2 the old row's page if it is
 * another one.  With COMPACT in the uint16 that block 0 begins with, which then is the
 * old row's as for UPDATE (and KEYS, OLD_FROZEN, CID): the undo place, varint xid
 * difference, varint cid if CID, uint16 offset of the new row, uint16 its t_natts, and
 * the forward delta; or with block 2 the tuple after the fixed header.  Then block 2 has
 * no data, and block 0's are kept beside a full-page image.
 * Without: block 0 uint16 offset, the tuple; block 2 uint16 offset, the new header.
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
 * of MAXALIGNed length.  Block 1 is the page that they come from, which is initialized
 * again.  Block 2 is the parent.
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

/*
 * ... or, with XLIP_GIN_ADD, one more TID in a posting list of a GIN index (log_gin.c).  Block 0
 * is the leaf page of the entry tree.
 */
typedef struct xl_ip_gin_add
{
	uint16		what;			/* XLIP_MERGE | XLIP_GIN_ADD */
	OffsetNumber off;			/* of the entry */
	ItemPointerData tid;
} xl_ip_gin_add;

#define SizeOfIpGinAdd	sizeof(xl_ip_gin_add)	/* 10 */

#define XLIP_MERGE				0x8000
#define XLIP_SHIFT				0x4000
#define XLIP_RELOCATE			0x2000
#define XLIP_GIN_ADD			0x1000
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

#endif							/* INPLACE_WAL_H */
