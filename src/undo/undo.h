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
#define UR_VALID_BITS		0x3F

typedef struct UndoRecordHeader
{
	uint16		ur_len;			/* whole record */
	uint8		ur_type;
	uint8		ur_flags;
	TransactionId ur_xid;		/* who made the change */
	CommandId	ur_cid;			/* and in which command */
	Oid			ur_spc;			/* tablespace and relfilenumber of the table */
	Oid			ur_rel;
	BlockNumber ur_block;
	OffsetNumber ur_off;
} pg_attribute_packed() UndoRecordHeader;

#define SizeOfUndoRecordHeader	sizeof(UndoRecordHeader)	/* 26 */

/*
 * Who replaced the old version, and in which command, if that is not who made
 * the newer one; see squeeze.c.
 */
typedef struct UndoReplaced
{
	TransactionId xid;
	CommandId	cid;
} UndoReplaced;

/*
 * Of a row's locker: who replaced the oldest version that it has locked
 * (row/lock_trace.c).
 */
typedef struct OldLocker
{
	TransactionId xid;
	TransactionId replacer;
} OldLocker;

#define MAX_OLD_LOCKERS		6

/*
 * After the header: the old tuple header (15 bytes), or with
 * UR_RELATIVE_HEADER only the old xid (4 bytes): the old version was
 * committed and nobody needs one older than it (so it counts as FRESH);
 * attribute count and flags are those of the newer version, and the tag is one
 * less.
 * Then, by type:
 *	UNDO_UPDATE	 the backward delta (see delta.h), to the end of the record
 *	UNDO_MOVE	 BlockNumber, OffsetNumber of the new row (6 bytes)
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
	UndoReplaced replaced;		/* who replaced the old version */
	const char *payload;		/* what follows the old header (and that) */
	Size		payload_len;
	char		data[BLCKSZ];
} UndoRecord;

/*
 * A link stands between a version and the record of the change that made it,
 * and leads to a version further back; see link.c, also for who may follow
 * it.  ul_level and ul_seq tell which (only for who puts the next links).
 */
typedef struct UndoLink
{
	uint32		ul_seq;			/* number of the version with this link among
								 * those of the row that have links, from 1 */
	uint8		ul_level;		/* leads to that with ul_seq less 4^ul_level;
								 * UNDO_LINK_KEYS: a key may have changed in
								 * between */
	TransactionId ul_newer_xid; /* who replaced the version it leads to */
	CommandId	ul_newer_cid;	/* and in which command */
	InplaceTupleHeaderData ul_hdr;	/* header of the version it leads to */
} pg_attribute_packed() UndoLink;

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

/*
 * Reserving, with nothing locked, what is to be written with a data page locked.
 * So many records, each of which may need a page of its own, unless what is left
 * of the current page is enough for len bytes, which is what all of them take.
 * UndoHasRoom is for who has locked the page: is that reserved?  UndoBegin is for
 * who will most likely write undo: it reserves a little, if that can be had.
 * UndoReserveRestore is for InplaceRestoreRow.  See append.c.
 */
extern bool UndoHasRoom(Relation rel, int records, Size len);
extern void UndoReserve(Relation rel, int records, Size len);
extern bool UndoReserveRestore(Relation rel, bool missing_ok);
extern void UndoBegin(Relation rel);

/*
 * A transaction makes at most INPLACE_MAX_TAG versions of a row, and restoring each may
 * take the record of a lock.
 */
#define UNDO_RESTORE_RECORDS	4

/* pages that others leave for whom they work for */
#define UNDO_SPARE_RECORDS		3

/*
 * Writing.  UndoPrepare finds room for a record of len bytes in the space
 * that belongs to rel, which the caller has reserved, pins and exclusively locks the
 * page, and notes in shared memory that newest_xid and GetCurrentTransactionId
 * have a record there.  In the critical section UndoAppend puts the record on
 * the page and marks the buffer dirty, UndoRegister registers the buffer for
 * the WAL record, UndoSetLSN sets the page's LSN.  UndoRelease unlocks it.
 */
typedef struct UndoInsert
{
	Buffer		buffer;
	UndoPtr		ptr;			/* where the record goes */
	bool		init;			/* first record of its page */
	bool		needs_wal;		/* false for unlogged and temporary */
	bool		by_name;		/* the WAL record names the page in its data,
								 * without a block reference (log.c) */
	bool		from_page;		/* it leaves the old row to the data page
								 * (log_update.c) */
} UndoInsert;

extern void UndoPrepare(Relation rel, Size len, TransactionId newest_xid,
						UndoInsert *ui);
extern void UndoPrepareRestore(Relation rel, Size len,
							   TransactionId newest_xid, UndoInsert *ui);
extern void UndoAppend(UndoInsert *ui, const char *rec, Size len);
extern void UndoRegister(UndoInsert *ui, uint8 block_id);
extern void UndoSetLSN(UndoInsert *ui, XLogRecPtr lsn);
extern void UndoRelease(UndoInsert *ui);
extern bool UndoOwnChangeCid(Relation rel, UndoPtr ptr, TransactionId xid,
							 CommandId *cid);

/* page-level work shared with redo (record.c) */
extern void UndoPageInit(Page page);
extern void UndoPagePut(Page page, uint16 offset, const char *rec, Size len);

/*
 * Build a record in dst (room for UNDO_MAX_RECORD); returns its length.
 * "newer" is the header the row will have, to see if the relative form fits;
 * relative_ok says that nobody needs anything older than "old".
 */
extern Size UndoBuild(char *dst, UndoRecordType type, TransactionId xid,
					  CommandId cid, Oid spc, Oid rel,
					  BlockNumber block, OffsetNumber off,
					  const InplaceTupleHeaderData *old,
					  const InplaceTupleHeaderData *newer, bool relative_ok,
					  const char *payload, Size payload_len);

/*
 * Reading.  UndoFetch copies and checks the record at ptr, which must be one
 * of (block, off) of rel; newer is the header that leads there (completes a
 * relative header).  A record that is not there, or is another row's, is
 * corruption: ereport(ERROR, ERRCODE_DATA_CORRUPTED) with relation, block and
 * offset; with missing_ok, false is returned instead.  missing_ok is for
 * those who may hold a pointer to undo that was given back (lock records):
 * it is safe against reuse and truncation going on at the same time.
 * A bare delete (tuple.h) has no record; it is made up.
 */
extern bool UndoFetch(Relation rel, UndoPtr ptr, BlockNumber block,
					  OffsetNumber off, const InplaceTupleHeaderData *newer,
					  bool missing_ok, UndoRecord *rec);

/*
 * The same, but links are told: UndoFetch passes over them, for they change
 * nothing about what comes next.
 */
extern bool UndoFetchRecord(Relation rel, UndoPtr ptr, BlockNumber block,
							OffsetNumber off,
							const InplaceTupleHeaderData *newer,
							bool missing_ok, UndoRecord *rec);

/* records that this process has read so far */
extern uint64 UndoRecordsRead;

/* the link of an UNDO_LINK record, and its delta */
static inline const char *
UndoGetLink(const UndoRecord *rec, UndoLink *link, Size *delta_len)
{
	memcpy(link, rec->payload, SizeOfUndoLink);
	*delta_len = rec->payload_len - SizeOfUndoLink;
	return rec->payload + SizeOfUndoLink;
}

/*
 * Guard of a walk along undo pointers against damage that makes them a circle
 * (Brent's algorithm): call with each pointer that has led to a record; ereports
 * at the latest after twice round.  Not before it has: the last one of a chain
 * may be dangling, and what it points to may be the place, used again, where the
 * chain began.  Long walks with a page locked can be ended by that, too.
 */
typedef struct UndoWalkGuard
{
	UndoPtr		seen;
	uint32		steps;
	uint32		limit;
} UndoWalkGuard;

extern void UndoReportCircle(Relation rel, UndoPtr ptr, BlockNumber block,
							 OffsetNumber off);

static inline void
UndoWalkCheck(UndoWalkGuard *g, Relation rel, UndoPtr ptr, BlockNumber block,
			  OffsetNumber off)
{
	if (unlikely(InterruptPending))
		InplaceEndIfAsked();
	if (ptr == g->seen && g->limit > 0)
		UndoReportCircle(rel, ptr, block, off);
	if (++g->steps > g->limit)
	{
		g->seen = ptr;
		g->limit = g->limit * 2 + 8;
		g->steps = 0;
	}
}

/* record.c: parse a raw record image; returns false if it makes no sense */
extern bool UndoParse(const char *raw, Size maxlen,
					  const InplaceTupleHeaderData *newer, UndoRecord *rec);

/*
 * space.c: shared memory.
 */
extern Size UndoShmemSize(void);
extern void UndoShmemInit(void);
extern void UndoRegisterCallbacks(void);	/* xact and subxact, per backend */

/*
 * The raw page access that UndoFetch builds on: pins the undo page of ptr in
 * rel's space, or returns InvalidBuffer if missing_ok and that extent is free
 * or beyond the end.
 */
extern Buffer UndoReadBuffer(Relation rel, UndoPtr ptr, bool missing_ok);

/*
 * May undo be cut off before a version made by xid, as far as standbys are
 * concerned?  To be asked besides the horizon of this server: a standby that
 * gives no feedback may have a snapshot that does not see xid, and would take
 * the version for the row's first.  True once a discard record has told them.
 */
extern bool UndoStandbysKnow(Relation rel, TransactionId xid);

/*
 * Before versions that are older than xid's are dropped: writes such a record
 * if need be.  all_ended: have all transactions with an older xid ended?  If
 * not, standbys know of this xid only.
 */
extern void UndoTellStandbys(Relation rel, TransactionId xid, bool all_ended);

/* bytes now allocated (file size) and in use by extents, of this database */
extern int64 UndoSizeBytes(void);

/*
 * link.c: links past older versions.
 *
 * UndoLinkPut: the row tup (len bytes without padding), on an exclusively locked
 * page, is about to be replaced by one with header newer (xid and tag).  base
 * is its own header without lock, by a committed transaction, with older
 * versions that somebody may need.  If it is time for it, puts links under it, to
 * which base leads afterwards.  The caller has reserved two records then.
 *
 * UndoLinkIsDue: may it be time, for a new version by that xid and with that tag?
 */
extern bool UndoLinkIsDue(TransactionId xid, VersionTag tag);
extern void UndoLinkPut(Relation rel, BlockNumber block, OffsetNumber off,
						InplaceTupleHeader tup, Size len,
						const InplaceTupleHeaderData *newer,
						InplaceTupleHeader base);

/*
 * squeeze.c: dropping versions that no snapshot can see.
 *
 * In the place of UndoLinkPut: makes base lead to the versions that are
 * needed and to no others, if that is worth it.  False if there is reason to put
 * links instead.
 */
extern bool UndoSqueeze(Relation rel, BlockNumber block, OffsetNumber off,
						InplaceTupleHeader tup, Size len,
						InplaceTupleHeader base);

/* worker.c */
extern void UndoWorkerRegister(void);	/* at preload: the launcher */
extern void UndoWorkerWakeup(void);
extern void UndoWorkerDetachDatabase(Oid dboid);

/*
 * restore.c: bring back the version before an aborted change, on the page.
 *
 * InplaceRestoreRow: buffer is exclusively locked, its visibility map page
 * pinned if the page is all-visible (an aborted change is never there on an
 * all-visible page, so this does not arise).  Restores the row at off until
 * its newest version is not aborted; an aborted insert becomes LP_DEAD.
 * With an aborted bare delete (page/tuple.h) those of other rows of the page
 * are taken back, too.  Returns true if it changed anything.  A row with a lock that
 * stays may take undo: who must restore it asks InplaceRestoreNeedsUndo, and if so
 * unlocks the page, calls UndoReserveRestore and looks again.  Otherwise such a row
 * is left alone if there is no undo reserved.
 *
 * InplaceRestoreTid: for the worker and for tests: locks the page itself and
 * restores the row if its newest version is an aborted change (by anybody).
 */
extern bool InplaceRestoreRow(Relation rel, Buffer buffer, OffsetNumber off,
							  bool must);
extern bool InplaceRestoreNeedsUndo(Relation rel, Buffer buffer,
									OffsetNumber off);
extern bool InplaceRestoreTid(Relation rel, BlockNumber block, OffsetNumber off);

#endif							/* INPLACE_UNDO_H */
