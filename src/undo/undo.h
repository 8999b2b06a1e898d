/*-------------------------------------------------------------------------
 *
 * undo.h
 *	  Undo: the older versions of rows.
 *
 * Spaces
 *	  There are three: that of permanent tables (relation inplace.undo_log of
 *	  the database, WAL-logged), that of unlogged tables (relation
 *	  inplace.undo_log_unlogged, emptied by a crash as they are), and that of
 *	  temporary tables (a temporary file of the session, in local buffers).
 *	  All have the same pages and records.
 *
 * Pages
 *	  Standard page header; records are appended upward from
 *	  SizeOfPageHeaderData, pd_lower is the end of the last one; an 8-byte
 *	  special area with magic and version.  A record never spans pages, is
 *	  never moved, and is changed by nobody.  Block 0 is the meta page.
 *
 * Extents
 *	  Space is handed out in extents of UNDO_EXTENT_BLOCKS blocks; block 1 is
 *	  the first of extent 0.  An extent has one writer at a time.  For each
 *	  extent shared memory has the newest xid that can still make a snapshot
 *	  want one of its records, and whether some of its changes may be aborted
 *	  and not restored yet.
 *
 * Lock order
 *	  data pages (lower block first) -> undo page -> visibility map page (pinned
 *	  before); the undo space's LWLocks are taken with no undo page locked
 *	  but the meta page (space.c).  Whoever holds an undo page's lock takes no
 *	  data page lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNDO_H
#define INPLACE_UNDO_H

#include "inplace.h"

#include "page/tuple.h"

typedef enum UndoRecordType
{
	UNDO_UPDATE = 1,			/* in-place update: delta back to the old row */
	UNDO_DELETE,				/* delete: the row is still on the page */
	UNDO_MOVE,					/* delete by an update; payload: new TID */
	UNDO_LOCK,					/* row lock; payload: its xid or multixact */
	UNDO_LINK					/* a way round older versions: UndoLink */
} UndoRecordType;

/* ur_flags */
#define UR_RELATIVE_HEADER	0x01	/* of the old header the record has only
									 * the xid */
#define UR_TAG_WRAPPED		0x02	/* ... whose tag was INPLACE_MAX_TAG */
#define UR_TAG_ZERO			0x04	/* ... whose tag was 0 */
#define UR_TAG_SAME			0x08	/* ... whose tag was the newer one's */
#define UR_FROZEN			0x10	/* ... which was frozen */
#define UR_SQUEEZED			0x20	/* versions in between have been dropped:
									 * payload starts with UndoReplaced */
#define UR_EVICTED			0x40	/* the payload ends with the image of the
									 * old version, which is not on the page */
#define UR_VALID_BITS		0x7F

typedef struct UndoRecordHeader
{
	uint16		ur_len;			/* whole record */
	uint8		ur_type;
	uint8		ur_flags;
	TransactionId ur_xid;		/* transaction that made the change */
	CommandId	ur_cid;			/* and in which command */
	Oid			ur_spc;			/* tablespace and relfilenumber of the table */
	Oid			ur_rel;
	BlockNumber ur_block;
	OffsetNumber ur_off;
}			pg_attribute_packed()
UndoRecordHeader;

#define SizeOfUndoRecordHeader	sizeof(UndoRecordHeader)	/* 26 */

/*
 * The transaction and the command that replaced the old version, if another one
 * made the newer version in the chain; see squeeze.c.
 */
typedef struct UndoReplaced
{
	TransactionId xid;
	CommandId	cid;
} UndoReplaced;

/*
 * A locker of a row, and the transaction that replaced the oldest version which
 * the locker has locked (row/lock_trace.c).
 */
typedef struct OldLocker
{
	TransactionId xid;
	TransactionId replacer;
} OldLocker;

#define MAX_OLD_LOCKERS		6

/*
 * After the header: the old tuple header (15 bytes), or with
 * UR_RELATIVE_HEADER only the old xid (4 bytes).  Then the old version was
 * committed and nobody needs one older than it, so it counts as FRESH.  Attribute
 * count and flags are those of the newer version, and the tag is one less, if
 * ur_flags does not say otherwise.
 * Then, by type:
 *	UNDO_UPDATE	 the backward delta (see delta.h), to the end of the record
 *	UNDO_MOVE	 BlockNumber, OffsetNumber of the new row (6 bytes)
 *	UNDO_DELETE, UNDO_MOVE with UR_EVICTED
 *				 besides, to the end of the record, the old row's image: what
 *				 comes after its header
 *	UNDO_LOCK	 uint32 xid or multixact; the new header's IP_LOCK_MULTI says
 *				 which; then an OldLocker for each locker that has locked
 *				 older versions, if there is room.  ur_cid has flags.
 *				 Here ur_xid is the backend's own xid, and the old
 *				 header never has lock bits: locks do not stack.
 *	UNDO_LINK	 UndoLink, then a backward delta, to the end of the record.
 *				 ur_xid is the backend's own xid; the old header is that of
 *				 the version itself, and leads on to the version before, or
 *				 to the next of several links.
 */
typedef struct UndoRecord
{
	UndoRecordHeader hdr;
	InplaceTupleHeaderData old; /* completed */
	UndoReplaced replaced;		/* what replaced the old version */
	const char *payload;		/* what follows the old header (and that) */
	Size		payload_len;
	char		data[BLCKSZ];
} UndoRecord;

/* where an UNDO_MOVE leads to */
#define SizeOfUndoMoveLink	(sizeof(BlockNumber) + sizeof(OffsetNumber))

/* the image that a record with UR_EVICTED has; NULL if it is another record */
static inline const char *
UndoEvictedImage(const UndoRecord *rec, Size *len)
{
	Size		before = rec->hdr.ur_type == UNDO_MOVE ? SizeOfUndoMoveLink : 0;

	if ((rec->hdr.ur_flags & UR_EVICTED) == 0)
		return NULL;
	*len = rec->payload_len - before;
	return rec->payload + before;
}

/*
 * A link stands between a version and the record of the change that made it,
 * and leads to a version further back.  See link.c, also for the readers that may
 * follow it.  ul_level and ul_seq tell which version that is.  They are for putting
 * the next links; readers do without.
 */
typedef struct UndoLink
{
	uint32		ul_seq;			/* number of the version with this link among
								 * those of the row that have links, from 1 */
	uint8		ul_level;		/* leads to that with ul_seq less 4^ul_level;
								 * UNDO_LINK_KEYS: a key may have changed in
								 * between */
	TransactionId ul_newer_xid; /* xid that replaced the version it leads to */
	CommandId	ul_newer_cid;	/* and in which command */
	InplaceTupleHeaderData ul_hdr;	/* header of the version it leads to */
}			pg_attribute_packed()
UndoLink;

#define SizeOfUndoLink			sizeof(UndoLink)	/* 28 */
#define UNDO_LINK_MAX_LEVEL		15
#define UNDO_LINK_KEYS			0x80
#define UndoLinkLevel(link)		((link)->ul_level & ~UNDO_LINK_KEYS)
#define UndoLinkSpan(level)		((uint32) 1 << (2 * (level)))

#define UNDO_MAX_RECORD \
	(BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(UndoPageSpecial)))

typedef struct UndoPageSpecial
{
	uint32		magic;
	uint32		version;
} UndoPageSpecial;

#define UNDO_PAGE_MAGIC		0x1D0C0DE5
#define UNDO_META_BLOCK		0
#define UNDO_EXTENT_BLOCKS	32

#define UndoPageGetSpecial(page) ((UndoPageSpecial *) PageGetSpecialPointer(page))

/* of the meta page: what it says besides the format's version (inplace.h) */
static inline bool
UndoVersionHas(uint32 version, uint32 bit)
{
	return ((version - INPLACE_FORMAT_VERSION) & bit) != 0;
}

static inline void
UndoVersionAdd(uint32 *version, uint32 bit)
{
	*version = INPLACE_FORMAT_VERSION + ((*version - INPLACE_FORMAT_VERSION) | bit);
}

#endif							/* INPLACE_UNDO_H */
