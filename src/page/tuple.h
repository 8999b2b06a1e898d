/*-------------------------------------------------------------------------
 *
 * tuple.h
 *	  The on-disk tuple of an inplace table.
 *
 * A tuple is a 15-byte header, a null bitmap if any attribute is null, and
 * the attributes.  The header has no length of its own: it follows from the
 * attribute count and the HASNULL bit.
 *
 * Version information
 *	  t_xid is always the transaction that made the version the tuple shows:
 *	  the inserter, the last in-place updater, or (with DELETED) the deleter.
 *	  Row locks never hide it.
 *
 *	  t_undo is six bytes that mean one of
 *		FRESH set		the command id of the insert (4 bytes); there is no
 *						older version.  Of a swept row (vacuum/stale.c) the
 *						sweep's xid instead
 *		SPECULATIVE set	(besides FRESH) the speculative insertion token (4
 *						bytes) and the command id of the insert (2 bytes)
 *		LOCK_DIRECT		the xid or multixact of the lockers (4 bytes).  Only
 *						where no snapshot can need an older version: the
 *						version is all-visible, or it was FRESH and its
 *						transaction has finished
 *		otherwise		an undo pointer: the record that undoes the last
 *						change (or, with LOCK_INDIRECT, the record of the
 *						lock, which leads on to the record of the change);
 *						or all there is to say of a bare delete
 *	  Nobody but the functions below reads or writes it: each is for one of
 *	  these cases, and asserts that it is the one at hand (scripts/check-accessors
 *	  sees to that).
 *
 *	  The undo pointer may only be followed with a snapshot that does not see
 *	  t_xid.  The undo of a version that everybody sees is given back and its
 *	  space used again, with the pointer left dangling.
 *
 *	  A deleted row may have been evicted (row/evict.c).  Then it is a header only,
 *	  and the undo record has its values.
 *
 * Space
 *	  The item's lp_len is the space reserved for the row, which may be more
 *	  than the tuple is long: an update that shrinks a row keeps the space
 *	  until its transaction has committed, for the rollback to fit.
 *	  Unused bytes at the end are counted there (PADDED): the last byte of
 *	  the item holds their number if below 255; otherwise it is 255 and the
 *	  two bytes before it hold the number.
 *
 * Alignment
 *	  By-value attributes and short varlenas are not aligned, they are copied
 *	  out.  By-reference attributes of a fixed length, and varlenas with a
 *	  four-byte header, are aligned relative to the start of the tuple; a
 *	  tuple that has one is ALIGNED and stands at a MAXALIGNed place of its
 *	  page; other tuples are packed without any gap.  By-reference attributes
 *	  that have the length and the alignment of a by-value type are treated
 *	  as such: a dropped column must not change its place when pg_upgrade
 *	  forgets that it was by value.
 *
 * bpchar
 *	  A bpchar value with at least BPCHAR_TRIM_MIN trailing blanks is stored
 *	  without them: bytes 0x01, VARTAG_INPLACE_TRIMMED, then two uint16: length
 *	  without blanks, number of blanks; then the bytes.  Deforming puts them
 *	  back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_TUPLE_H
#define INPLACE_TUPLE_H

#include "inplace.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "utils/snapmgr.h"

typedef uint64 UndoPtr;			/* block number << 16 | byte offset in page */

#define InvalidUndoPtr			((UndoPtr) 0)
#define UndoPtrIsValid(p)		((p) != InvalidUndoPtr)
#define UndoPtrMake(blk, off)	(((UndoPtr) (blk) << 16) | (uint16) (off))
#define UndoPtrBlock(p)			((BlockNumber) ((p) >> 16))
#define UndoPtrOffset(p)		((uint16) ((p) & 0xFFFF))

/*
 * The number of a version at its row's TID, which comes round again.  It is a
 * struct for the compiler to refuse "==": see SameVersion().
 */
typedef struct VersionTag
{
	uint8		version_number; /* 0 .. INPLACE_MAX_TAG */
} VersionTag;

typedef struct InplaceTupleHeaderData
{
	TransactionId t_xid;
	uint8		t_undo[6];
	uint16		t_infomask;
	uint16		t_natts;		/* number of attributes, and flags */
	VersionTag	t_tag;
}			pg_attribute_packed()
InplaceTupleHeaderData;

typedef InplaceTupleHeaderData *InplaceTupleHeader;

#define SizeOfInplaceTupleHeader	15
StaticAssertDecl(sizeof(InplaceTupleHeaderData) == SizeOfInplaceTupleHeader,
				 "tuple header must have no padding");

/* t_infomask */
#define IP_FRESH				0x0001	/* t_undo is the inserting cid */
#define IP_DELETED				0x0002	/* the row is gone from this TID */
#define IP_MOVED				0x0004	/* ... to a new TID, see undo */
#define IP_MOVED_PARTITION		0x0008	/* ... to another partition */
#define IP_COMMITTED			0x0010	/* hint: t_xid committed */
#define IP_ABORTED				0x0020	/* hint: t_xid aborted */
#define IP_FROZEN				0x0040	/* t_xid is visible to everybody */
#define IP_KEYS_UPDATED			0x0080	/* change conflicts with KEY SHARE */
#define IP_LOCK_DIRECT			0x0100	/* t_undo is the locker */
#define IP_LOCK_INDIRECT		0x0200	/* t_undo is a lock's undo record */
#define IP_LOCK_MULTI			0x0400	/* the locker is a multixact */
#define IP_LOCK_MODE_MASK		0x1800	/* strongest LockTupleMode of lockers */
#define IP_LOCK_MODE_SHIFT		11
#define IP_SPECULATIVE			0x2000	/* t_undo is a speculative token */
#define IP_STALE				0x4000	/* stale index entries may exist */
#define IP_PADDED				0x8000	/* item ends in unused bytes */

#define IP_HINT_BITS			(IP_COMMITTED | IP_ABORTED)
#define IP_LOCK_BITS			(IP_LOCK_DIRECT | IP_LOCK_INDIRECT | \
								 IP_LOCK_MULTI | IP_LOCK_MODE_MASK)
#define IP_DELETE_BITS			(IP_DELETED | IP_MOVED | IP_MOVED_PARTITION)

/* t_natts */
#define IP_NATTS_MASK			0x07FF
#define IP_NATTS_EVICTED		0x07FF	/* not a number: see HdrIsEvicted */
#define IP_HASNULL				0x0800
#define IP_HASEXTERNAL			0x1000	/* has a TOAST pointer */
#define IP_ALIGNED				0x2000	/* must stand MAXALIGNed on its page */
#define IP_HASTRIMMED			0x4000	/* has a trimmed bpchar */
#define IP_UNCHANGED			0x8000	/* since VACUUM saw it IP_STALE, see
										 * vacuum/stale.c */

/*
 * Version tags.  0 is a row's first version at its TID; in-place updates go
 * 1 .. INPLACE_MAX_TAG and around to 1 again.  A TID handed to the executor
 * may carry the tag in the high bits of its offset number: 0 there says
 * "the version the context asks for", INPLACE_TAG_FIRST says the version
 * tagged 0.  Indexes only ever see TIDs without one.
 *
 * A tag alone does not name a version: after 125 updates another one has it.
 * Two things do.
 *	- The tag together with the xid that made the version: SameVersion().  A
 *	  transaction never makes two versions of a row with one tag.
 *	- The tag alone, of versions that our own transaction has made, locked, or
 *	  replaced: SameTagInXact().  Nobody else can have changed the row since, and
 *	  before a tag comes round in one transaction the row is moved
 *	  (TagEndsHalf()).  The tag that a TID carries is always of that kind.
 * Where a snapshot says which version is meant no tag is asked for at all.
 */
#define INPLACE_OFFSET_BITS		9
#define INPLACE_OFFSET_MASK		0x01FF
#define INPLACE_MAX_TAG			125
#define INPLACE_TAG_FIRST		126
#define INPLACE_TAG_GATE		127 /* of no version, see TidSetGate */

#define MakeVersionTag(number)	((VersionTag) {number})
#define FirstVersionTag			MakeVersionTag(0)

static inline bool
TagIsFirst(VersionTag tag)
{
	return tag.version_number == 0;
}

/* to be shown, or for arithmetic; not for comparing versions */
static inline int
TagNumber(VersionTag tag)
{
	return tag.version_number;
}

/* (of a damaged row) */
static inline bool
TagIsValid(VersionTag tag)
{
	return tag.version_number <= INPLACE_MAX_TAG;
}

static inline VersionTag
NextTag(VersionTag tag)
{
	return MakeVersionTag(tag.version_number >= INPLACE_MAX_TAG ? 1 : tag.version_number + 1);
}

/*
 * Is this where a transaction is about to leave a half of the circle?  It goes on in the
 * other half only if all versions of the row that it has made are in this one.  So it goes
 * over one border between the halves, and stops before the second, where the tag of a
 * version that it has made might come again, or that of the one which it has replaced
 * first.  (That may be the last tag before the second border, which is therefore not used
 * either.  A rewritten row may begin at the very last tag.)
 */
static inline bool
TagEndsHalf(VersionTag tag)
{
	return tag.version_number >= INPLACE_MAX_TAG - 1 ||
		tag.version_number == INPLACE_MAX_TAG / 2 - 1;
}

static inline bool
TagsInOneHalf(VersionTag a, VersionTag b)
{
	return (a.version_number <= INPLACE_MAX_TAG / 2) ==
		(b.version_number <= INPLACE_MAX_TAG / 2);
}

/*
 * Has the row been updated so often since it came to its TID?  After 125 times the tags begin
 * again, so that is to be taken for a guess.
 */
static inline bool
TagIsPast(VersionTag tag, int updates)
{
	return tag.version_number >= updates;
}

/*
 * The tag of the oldest version where a row's versions get new tags, "steps" updates
 * after it.  The newest of a long chain gets the last tag, so that tags do not go round
 * within the versions of a transaction that has made several of them.
 */
static inline VersionTag
TagBeforeAll(int steps)
{
	if (steps <= INPLACE_MAX_TAG)
		return FirstVersionTag;
	return MakeVersionTag(INPLACE_MAX_TAG - steps % INPLACE_MAX_TAG);
}

/* are the two, of one row, the same version? */
static inline bool
SameVersion(VersionTag a, TransactionId a_xid,
			VersionTag b, TransactionId b_xid)
{
	return a.version_number == b.version_number && TransactionIdEquals(a_xid, b_xid);
}

/* ... if both are of those that our own transaction has to do with? */
static inline bool
SameTagInXact(VersionTag a, VersionTag b)
{
	return a.version_number == b.version_number;
}

static inline bool
HdrSameVersion(const InplaceTupleHeaderData *a,
			   const InplaceTupleHeaderData *b)
{
	return SameVersion(a->t_tag, a->t_xid, b->t_tag, b->t_xid);
}

/*
 * How the tag of a change's new header follows from that of the old one, and
 * back: for records that have the new one alone.
 */
typedef enum TagStep
{
	TAG_SAME,					/* a delete */
	TAG_FROM_FIRST,
	TAG_FROM_LAST,				/* 125, and round */
	TAG_FROM_BEFORE,			/* one more */
	TAG_NO_STEP					/* it does not follow from it */
} TagStep;

static inline TagStep
TagStepBetween(VersionTag old, VersionTag newer)
{
	if (newer.version_number == old.version_number)
		return TAG_SAME;
	if (newer.version_number != NextTag(old).version_number)
		return TAG_NO_STEP;
	return old.version_number == 0 ? TAG_FROM_FIRST :
		old.version_number == INPLACE_MAX_TAG ? TAG_FROM_LAST : TAG_FROM_BEFORE;
}

/* of an old header that has such a step to "newer" */
static inline VersionTag
TagBeforeStep(VersionTag newer, TagStep step)
{
	switch (step)
	{
		case TAG_FROM_FIRST:
			return FirstVersionTag;
		case TAG_FROM_LAST:
			return MakeVersionTag(INPLACE_MAX_TAG);
		case TAG_FROM_BEFORE:
			return MakeVersionTag(newer.version_number - 1);
		case TAG_SAME:
		case TAG_NO_STEP:
			break;
	}
	return newer;
}

#define TidOffset(tid) \
	((OffsetNumber) ((tid)->ip_posid & INPLACE_OFFSET_MASK))
#define TidHasTag(tid)			(((tid)->ip_posid >> INPLACE_OFFSET_BITS) != 0)

/* the tag of a TID that has one */
static inline VersionTag
TidTag(const ItemPointerData *tid)
{
	uint8		number = tid->ip_posid >> INPLACE_OFFSET_BITS;

	return MakeVersionTag(number == INPLACE_TAG_FIRST ? 0 : number);
}

static inline void
TidSet(ItemPointer tid, BlockNumber blk, OffsetNumber off)
{
	ItemPointerSet(tid, blk, off);
}

/* a TID that names exactly the version tagged "tag" */
static inline void
TidSetTagged(ItemPointer tid, BlockNumber blk, OffsetNumber off,
			 VersionTag tag)
{
	ItemPointerSet(tid, blk,
				   off | ((tag.version_number == 0 ? INPLACE_TAG_FIRST : tag.version_number)
						  << INPLACE_OFFSET_BITS));
}

/*
 * What a predicate lock, and the queue for a row, names: a version of the row, not
 * the row.  A transaction that replaces a newer version than the one read
 * conflicts with the reader only through the transaction that made that one.  For
 * queues see lock_queue.c.  The row's first version has the plain TID.
 *
 * Two versions may share a name, 125 updates apart.  Then a writer of the later
 * one counts as in conflict with a reader of the earlier one, and the reader had to
 * come before the writer anyway.
 */
static inline void
TidSetVersion(ItemPointer tid, BlockNumber blk, OffsetNumber off,
			  VersionTag tag)
{
	ItemPointerSet(tid, blk, off | (tag.version_number << INPLACE_OFFSET_BITS));
}

/*
 * What the lock at the gate to a row names (lock_queue.c): the row at this TID, by
 * a name that no version of it has.
 */
static inline void
TidSetGate(ItemPointer tid, BlockNumber blk, OffsetNumber off)
{
	ItemPointerSet(tid, blk, off | (INPLACE_TAG_GATE << INPLACE_OFFSET_BITS));
}

static inline void
TidClean(ItemPointer dst, const ItemPointerData *src)
{
	ItemPointerData t = *src;

	t.ip_posid &= INPLACE_OFFSET_MASK;
	*dst = t;
}

/*
 * A deleted row that is a header only: its values have gone to undo for the sake of
 * space (row/evict.c).  In place of the number of attributes it has one that no table
 * can have.  So nobody finds attributes in it by mistake: who takes it for a row is
 * told so here, or finds that it is damaged.
 */
static inline bool
HdrIsEvicted(const InplaceTupleHeaderData *h)
{
	return (h->t_natts & IP_NATTS_MASK) == IP_NATTS_EVICTED;
}

StaticAssertDecl(MaxTupleAttributeNumber < IP_NATTS_EVICTED,
				 "a row must not look like an evicted one");

/* of a row that may be damaged, or evicted */
#define HdrNattsAsStored(h)		((h)->t_natts & IP_NATTS_MASK)

static inline int
HdrNatts(const InplaceTupleHeaderData *h)
{
	Assert(!HdrIsEvicted(h));
	return HdrNattsAsStored(h);
}

#define HdrHasNull(h)			(((h)->t_natts & IP_HASNULL) != 0)
#define HdrBits(h)				((bits8 *) (h) + SizeOfInplaceTupleHeader)
#define HdrSize(h) \
	(SizeOfInplaceTupleHeader + (HdrHasNull(h) ? BITMAPLEN(HdrNattsAsStored(h)) : 0))
#define HdrLockMode(h) \
	((LockTupleMode) (((h)->t_infomask & IP_LOCK_MODE_MASK) >> IP_LOCK_MODE_SHIFT))
#define HdrIsLocked(h) \
	(((h)->t_infomask & (IP_LOCK_DIRECT | IP_LOCK_INDIRECT)) != 0)

/*
 * ---- What t_undo holds.  The first case that applies: ----
 *
 *	HdrHasDirectLocker	a locker, and what was rolled back beside it
 *	HdrIsSpeculative	a speculative insertion's token and command id
 *	HdrIsSwept			the xid of a sweep
 *	HdrHasCid			the command id of an insert
 *	HdrHasUndo			a pointer to undo, or in its form a bare delete
 */
#define HdrHasDirectLocker(h)	(((h)->t_infomask & IP_LOCK_DIRECT) != 0)
#define HdrIsSpeculative(h) \
	(((h)->t_infomask & (IP_SPECULATIVE | IP_LOCK_BITS)) == IP_SPECULATIVE)

/* does t_undo lead to an older version (through a lock record or not)? */
#define HdrHasUndo(h) \
	(((h)->t_infomask & (IP_FRESH | IP_SPECULATIVE | IP_LOCK_DIRECT)) == 0)

/*
 * The xid by which a version is older or newer than others.  That of a frozen version may be of an
 * earlier age, and say nothing; so nobody compares t_xid itself (scripts/check-accessors).
 */
static inline TransactionId
HdrXid(const InplaceTupleHeaderData *h)
{
	return (h->t_infomask & IP_FROZEN) ? FrozenTransactionId : h->t_xid;
}

/*
 * Does everybody see what the transaction did, which has committed?  Nobody is known to see the work
 * of one that a damaged page names.
 */
static inline bool
XidIsRemovable(GlobalVisState *vistest, TransactionId xid)
{
	return TransactionIdIsNormal(xid) && GlobalVisTestIsRemovableXid(vistest, xid);
}

/* ... and the version, which is that of a committed transaction? */
static inline bool
HdrIsSeenByAll(GlobalVisState *vistest, const InplaceTupleHeaderData *h)
{
	return (h->t_infomask & IP_FROZEN) != 0 || XidIsRemovable(vistest, h->t_xid);
}

/*
 * A row without stale entries since before the xid in its t_undo was assigned
 * (vacuum/stale.c): IP_UNCHANGED and IP_FRESH, and this in the fifth byte.
 */
#define SWEPT_MARK				1
#define HdrIsSwept(h) \
	(((h)->t_natts & IP_UNCHANGED) != 0 && \
	 ((h)->t_infomask & (IP_FRESH | IP_SPECULATIVE | IP_LOCK_BITS)) == IP_FRESH && \
	 (h)->t_undo[4] == SWEPT_MARK)

static inline bool
HdrHasCid(const InplaceTupleHeaderData *h)
{
	return (h->t_infomask & (IP_FRESH | IP_SPECULATIVE | IP_LOCK_BITS)) == IP_FRESH &&
		!HdrIsSwept(h);
}

/* the bytes as they are: for the functions that follow */
static inline uint32
HdrRawWord(const InplaceTupleHeaderData *h)
{
	uint32		v;

	memcpy(&v, h->t_undo, sizeof(v));
	return v;
}

static inline void
HdrSetRawWord(InplaceTupleHeader h, uint32 v)
{
	memset(h->t_undo, 0, sizeof(h->t_undo));
	memcpy(h->t_undo, &v, sizeof(v));
}

static inline UndoPtr
HdrRawPtr(const InplaceTupleHeaderData *h)
{
	UndoPtr		p = 0;

	memcpy(&p, h->t_undo, sizeof(h->t_undo));
	return p;
}

static inline void
HdrSetRawPtr(InplaceTupleHeader h, UndoPtr p)
{
	memcpy(h->t_undo, &p, sizeof(h->t_undo));
}

/* the command of the insert, or InvalidCommandId if the header does not say */
static inline CommandId
HdrInsertCid(const InplaceTupleHeaderData *h)
{
	return HdrHasCid(h) ? HdrRawWord(h) : InvalidCommandId;
}

static inline CommandId
HdrFreshCid(const InplaceTupleHeaderData *h)
{
	Assert(HdrHasCid(h));
	return HdrRawWord(h);
}

/* the header is FRESH, or is to be that besides its other flags */
static inline void
HdrSetFreshCid(InplaceTupleHeader h, CommandId cid)
{
	Assert((h->t_infomask & (IP_FRESH | IP_SPECULATIVE | IP_LOCK_BITS)) == IP_FRESH);
	HdrSetRawWord(h, cid);
}

/*
 * Speculative insertions.  For the command id there are two bytes; a later command
 * than they can tell is "not known", and its row seen by none of its own transaction
 * before it is certain.
 */
#define SPEC_UNKNOWN_CID		0xFFFF

static inline uint32
HdrSpecToken(const InplaceTupleHeaderData *h)
{
	Assert(HdrIsSpeculative(h));
	return HdrRawWord(h);
}

static inline CommandId
HdrSpecCid(const InplaceTupleHeaderData *h)
{
	uint16		cid;

	Assert(HdrIsSpeculative(h));
	memcpy(&cid, h->t_undo + 4, sizeof(cid));
	return cid == SPEC_UNKNOWN_CID ? InvalidCommandId : cid;
}

/* make a new row's header, which is FRESH, that of a speculative one */
static inline void
HdrSetSpeculative(InplaceTupleHeader h, uint32 token)
{
	uint16		cid = Min(HdrFreshCid(h), SPEC_UNKNOWN_CID);

	h->t_infomask |= IP_SPECULATIVE;
	HdrSetRawWord(h, token);
	memcpy(h->t_undo + 4, &cid, sizeof(cid));
}

/* it is an ordinary row */
static inline void
HdrEndSpeculation(InplaceTupleHeader h, CommandId cid)
{
	Assert(HdrIsSpeculative(h));
	h->t_infomask &= ~IP_SPECULATIVE;
	HdrSetFreshCid(h, cid);
}

/* Lockers: an xid or multixact; 1 + mode of a change rolled back beside them, or 0 */
static inline TransactionId
HdrDirectLocker(const InplaceTupleHeaderData *h)
{
	Assert(HdrHasDirectLocker(h));
	return HdrRawWord(h);
}

static inline uint8
HdrDirectUndone(const InplaceTupleHeaderData *h)
{
	Assert(HdrHasDirectLocker(h));
	return h->t_undo[4];
}

static inline void
HdrSetDirectLocker(InplaceTupleHeader h, TransactionId locker, uint8 undone)
{
	Assert(HdrHasDirectLocker(h) &&
		   !(h->t_infomask & (IP_FRESH | IP_SPECULATIVE | IP_LOCK_INDIRECT)));
	HdrSetRawWord(h, locker);
	h->t_undo[4] = undone;
}

/*
 * The record of the change, or of the lock; or what UndoFetch makes the record of a
 * bare delete from.  A damaged row may come here with any combination of flags.
 */
static inline UndoPtr
HdrUndoPtr(const InplaceTupleHeaderData *h)
{
	Assert(HdrHasUndo(h) || (h->t_infomask & IP_LOCK_INDIRECT));
	return HdrRawPtr(h);
}

static inline void
HdrSetUndoPtr(InplaceTupleHeader h, UndoPtr p)
{
	Assert(HdrHasUndo(h));
	HdrSetRawPtr(h, p);
}

/* what it holds is as "from" has it, and the caller's flags say so, too */
static inline void
HdrCopyUndo(InplaceTupleHeader h, const InplaceTupleHeaderData *from)
{
	memcpy(h->t_undo, from->t_undo, sizeof(h->t_undo));
}

/* to be asked of headers with the same flags only */
static inline bool
HdrSameUndo(const InplaceTupleHeaderData *a, const InplaceTupleHeaderData *b)
{
	return memcmp(a->t_undo, b->t_undo, sizeof(a->t_undo)) == 0;
}

/*
 * A bare delete: one without an undo record, of a row that nobody needs an
 * older version of and that has no lock.  All that such a record would have
 * to say is the old xid, whether it was frozen, and the command; t_undo has
 * them: an undo pointer that looks like one to block "xid", at an offset
 * where no record can be.
 */
#define BARE_MAX_CID			10
#define BARE_CODES				(2 * (BARE_MAX_CID + 1))
#define UndoPtrIsBare(p) \
	(UndoPtrOffset(p) >= 1 && UndoPtrOffset(p) <= BARE_CODES)
#define BarePtrXid(p)			((TransactionId) UndoPtrBlock(p))
#define BarePtrCid(p) \
	((CommandId) ((UndoPtrOffset(p) - 1) % (BARE_MAX_CID + 1)))
#define BarePtrFrozen(p)		(UndoPtrOffset(p) > BARE_MAX_CID + 1)
#define HdrIsBareDelete(h) \
	(((h)->t_infomask & (IP_DELETED | IP_MOVED | IP_FRESH | IP_SPECULATIVE | \
						 IP_LOCK_BITS)) == IP_DELETED && \
	 UndoPtrIsBare(HdrRawPtr(h)))

StaticAssertDecl(BARE_CODES < SizeOfPageHeaderData,
				 "bare deletes must not look like undo records");

static inline TransactionId
HdrSweptXid(const InplaceTupleHeaderData *h)
{
	Assert(HdrIsSwept(h));
	return HdrRawWord(h);
}

/* all lockers of the row have ended */
static inline void
HdrSetSwept(InplaceTupleHeader h, TransactionId xid)
{
	HdrSetRawWord(h, xid);
	h->t_undo[4] = SWEPT_MARK;
	h->t_infomask &= ~(IP_LOCK_BITS | IP_SPECULATIVE);
	h->t_infomask |= IP_FRESH;
	h->t_natts |= IP_UNCHANGED;
}

/* the row is going to be changed */
static inline void
HdrForgetSweep(InplaceTupleHeader h)
{
	if (likely((h->t_natts & IP_UNCHANGED) == 0))
		return;
	if (HdrIsSwept(h))
		HdrSetFreshCid(h, 0);
	h->t_natts &= ~IP_UNCHANGED;
}

/* make the header of a row without lock that of its bare delete */
static inline void
HdrSetBareDelete(InplaceTupleHeader h, TransactionId xid, CommandId cid,
				 bool to_partition)
{
	uint16		code = 1 + cid +
		((h->t_infomask & IP_FROZEN) ? BARE_MAX_CID + 1 : 0);
	UndoPtr		old = UndoPtrMake(h->t_xid, code);

	HdrForgetSweep(h);
	h->t_infomask = (h->t_infomask & (IP_STALE | IP_PADDED)) |
		IP_DELETED | IP_KEYS_UPDATED |
		(to_partition ? IP_MOVED_PARTITION : 0);
	h->t_xid = xid;
	HdrSetUndoPtr(h, old);
}

/* ... and back, for a rollback */
static inline void
HdrUndoBareDelete(InplaceTupleHeader h)
{
	UndoPtr		old = HdrUndoPtr(h);

	Assert(UndoPtrIsBare(old));
	h->t_xid = BarePtrXid(old);
	h->t_infomask = (h->t_infomask & (IP_STALE | IP_PADDED)) |
		IP_FRESH | IP_COMMITTED | (BarePtrFrozen(old) ? IP_FROZEN : 0);
	h->t_natts &= ~IP_UNCHANGED;
	HdrSetFreshCid(h, 0);
}

/*
 * Make the header of a deleted row, without lock, that of the evicted one, whose undo
 * record is there.  It keeps what the delete says.
 */
static inline void
HdrSetEvicted(InplaceTupleHeader h, UndoPtr record)
{
	h->t_infomask &= IP_DELETE_BITS | IP_KEYS_UPDATED | IP_STALE | IP_HINT_BITS;
	h->t_natts = IP_NATTS_EVICTED;
	HdrSetUndoPtr(h, record);
}

/* our own varlena tag, never seen outside a stored tuple */
#define VARTAG_INPLACE_TRIMMED	0x7B
#define SizeOfTrimmedHeader		6
#define BPCHAR_TRIM_MIN			8

/*
 * The largest tuple is what fits a page with one line pointer, as on heap.  A page
 * has at most as many tuples as on heap, for RelationGetBufferForTuple, which looks
 * for room, stops at that number.  Offsets must leave bits for tags and flags, so
 * blocks of more than 8 kB are not possible.
 */
#define InplaceMaxTupleSize		MaxHeapTupleSize
#define InplaceMaxTuplesPerPage MaxHeapTuplesPerPage

StaticAssertDecl(MaxHeapTuplesPerPage <= INPLACE_OFFSET_MASK,
				 "block size must not be larger than 8 kB");

/*
 * Bytes to ask for when a page for the tuple is looked for: the free space of
 * a page may end at any byte, so a tuple that has to be aligned needs a few more
 * than its length.  A row of the largest size gets an empty page, where the space
 * is aligned.
 */
static inline Size
PageSpaceFor(const InplaceTupleHeaderData *tup, Size len)
{
	if (!(tup->t_natts & IP_ALIGNED) || len >= InplaceMaxTupleSize)
		return len;
	return Min(len + MAXIMUM_ALIGNOF - 1, InplaceMaxTupleSize);
}

/* tuple.c */
extern Size inplace_compute_size(TupleDesc desc, const Datum *values,
								 const bool *isnull, uint16 *nattsflags);
extern void inplace_fill_tuple(TupleDesc desc, const Datum *values,
							   const bool *isnull, uint16 nattsflags,
							   InplaceTupleHeader tup, Size len);
extern InplaceTupleHeader inplace_form_tuple(TupleDesc desc,
											 const Datum *values,
											 const bool *isnull, Size *len);
extern Size inplace_row_from_heap_bound(TupleDesc desc, HeapTuple heap);
extern Size inplace_row_from_heap(TupleDesc desc, HeapTuple heap,
								  InplaceTupleHeader tup);

/* what people are shown: names of the bits that are set; how many there are */
#define INPLACE_MAX_FLAGS		20
extern int	inplace_flag_names(const InplaceTupleHeaderData *hdr,
							   const char **names);
extern const char *inplace_lock_mode_name(LockTupleMode mode);

/*
 * Deform attributes up to natts into values/isnull, continuing at attribute
 * "attnum" and offset *off (0 and HdrSize at the start).  Values of
 * by-reference types point into the tuple (which must be MAXALIGNed if it is
 * IP_ALIGNED), except trimmed bpchars, and values that are by reference and not
 * aligned, which are put together in "cxt".  Returns -1 if the attributes do not
 * fit the tuple's length "len" (BLCKSZ if the caller does not know it), which
 * means that the tuple is damaged.
 */
extern int	inplace_deform(TupleDesc desc, InplaceTupleHeader tup, Size len,
						   int attnum, uint32 *off, int natts, Datum *values,
						   bool *isnull, MemoryContext cxt);
extern int	inplace_deform_first(TupleDesc desc, InplaceTupleHeader tup,
								 int natts, Datum *values, bool *isnull,
								 MemoryContext cxt,
								 const ItemPointerData *tid);
extern void inplace_damaged_row(Oid relid, const ItemPointerData *tid);

/*
 * End offsets of each attribute, without looking at anything but lengths.
 * ends[i] is the offset just past attribute i (equal to the previous one for
 * a null); returns the offset past the last, i.e. the length of the tuple.
 */
extern Size inplace_attr_ends(TupleDesc desc, InplaceTupleHeader tup,
							  uint16 *ends, Size limit);

/* the end of one attribute that is not null, o being that of the one before */
extern Size inplace_attr_end(Form_pg_attribute att, InplaceTupleHeader tup,
							 Size o, Size limit);

/* length of the tuple in an item of itemlen bytes, without its padding */
extern Size inplace_tuple_len(const InplaceTupleHeaderData *tup, Size itemlen);

/* mark (and zero) the bytes from len to itemlen as unused */
extern void inplace_set_padding(InplaceTupleHeader tup, Size len, Size itemlen);

/* one attribute; missing attributes come from the catalog's defaults */
extern Datum inplace_getattr(TupleDesc desc, InplaceTupleHeader tup, int attnum,
							 bool *isnull, MemoryContext cxt,
							 const ItemPointerData *tid);

#endif							/* INPLACE_TUPLE_H */
