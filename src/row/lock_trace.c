/*-------------------------------------------------------------------------
 *
 * lock_trace.c
 *	  Which versions a row's lockers have locked, and what else heap's
 *	  multixacts would still have of former locks and changes.
 *
 * Locks on an older version
 *	  Heap has lockers with each version.  A backend may want to change or to lock
 *	  a version that a committed transaction has replaced.  It cannot have that
 *	  one.  But others may still hold FOR KEY SHARE on it; no other lock goes
 *	  together with the change.  Then the backend queues for it, and waits for
 *	  those that are in its way, before it fails or goes on to the newest version.
 *	  It does not if it has found already that the version that follows is gone,
 *	  too (lock_chain.c).
 *
 *	  Here all lockers stand with the newest version.  A lock covers the version
 *	  that was meant and those that follow it, so it is enough to know for each
 *	  locker the oldest.  It is told by its replacer, the transaction that
 *	  replaced that version.  A lock is on the version that a backend means if the
 *	  replacers of the two are the same.  It is, too, if the backend sees the
 *	  lock's replacer, which then made the version meant or an older one.
 *	  Replacers stand in the UNDO_LOCK record, as far as there is room; without
 *	  one a locker counts as having locked the newest version only.  All that
 *	  depends on it is when a backend fails.
 *
 * Ended locks and changes
 *	  A multixact keeps members that have ended until a new locker comes.  While
 *	  another one is alive, share locks queue if such a member was in their way
 *	  (rowcheck.c).  A change that was rolled back would be such a member; here
 *	  its strength is noted with the lockers that are put back.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/multixact.h"
#include "page/tuple.h"
#include "row/lock_trace.h"
#include "row/row_lock.h"
#include "row/rowcheck.h"
#include "row/target.h"
#include "undo/undo.h"
#include "utils/snapmgr.h"

/*
 * Take the trace from an UNDO_LOCK record.
 */
void
inplace_trace_parse(const UndoRecord *rec, LockTrace *trace)
{
	Size		len = rec->payload_len - sizeof(uint32);

	trace->before = (rec->hdr.ur_cid & TRACE_BEFORE) != 0;
	trace->undone = (rec->hdr.ur_cid & TRACE_VALID_BITS) >> TRACE_UNDONE_SHIFT;
	trace->nold = Min(len / sizeof(OldLocker), MAX_OLD_LOCKERS);
	memcpy(trace->old, rec->payload + sizeof(uint32),
		   trace->nold * sizeof(OldLocker));
}

/* the xid that replaced the oldest version this locker has locked, if known */
TransactionId
inplace_trace_replacer(const RowLockers *lockers, TransactionId xid)
{
	const LockTrace *trace = &lockers->trace;

	for (int i = 0; i < trace->nold; i++)
		if (TransactionIdEquals(trace->old[i].xid, xid))
			return trace->old[i].replacer;
	return trace->before ? lockers->base.t_xid : InvalidTransactionId;
}

static void
put_old(LockTrace *trace, TransactionId xid, TransactionId replacer)
{
	if (!TransactionIdIsValid(replacer) || trace->nold >= MAX_OLD_LOCKERS)
		return;
	trace->old[trace->nold].xid = xid;
	trace->old[trace->nold].replacer = replacer;
	trace->nold++;
}

/* the lockers, as members of a multixact; free with free_members */
static int
get_members(const RowLockers *lockers, MultiXactMember *single,
			MultiXactMember **members)
{
	if (lockers->multi)
		return GetMultiXactIdMembers(lockers->xid, members, false, true);
	single->xid = lockers->xid;
	*members = single;
	return 1;
}

static void
free_members(MultiXactMember *members, int n, const MultiXactMember *single)
{
	if (n > 0 && members != single)
		pfree(members);
}

/*
 * The lockers that are alive, all but one, with the replacers of the versions that
 * they have locked.
 */
static void
copy_alive(const RowLockers *lockers, TransactionId but, LockTrace *trace)
{
	MultiXactMember single;
	MultiXactMember *members;
	int			n;

	if (lockers->trace.nold == 0 && !lockers->trace.before)
		return;
	n = get_members(lockers, &single, &members);
	for (int i = 0; i < n; i++)
	{
		TransactionId xid = members[i].xid;
		TransactionId replacer = inplace_trace_replacer(lockers, xid);

		if (TransactionIdIsValid(replacer) && replacer != but &&
			(i == 0 || members[i - 1].xid != xid) &&
			TransactionIdIsInProgress(xid))
			put_old(trace, xid, replacer);
	}
	free_members(members, n, &single);
}

/*
 * A locker is added, on a version that "replacer" has replaced if that is
 * valid.
 */
void
inplace_trace_add(const RowCheck *rc, TransactionId locker,
				  TransactionId replacer, LockTrace *trace)
{
	memset(trace, 0, sizeof(*trace));
	if (rc->locked)
		copy_alive(&rc->lockers, InvalidTransactionId, trace);
	for (int i = 0; i < trace->nold; i++)
		if (TransactionIdEquals(trace->old[i].xid, locker))
			return;				/* has locked one as old before */
	put_old(trace, locker, replacer);
}

/*
 * The row is changed, with its lockers kept: they have locked the version
 * before, at least.
 */
void
inplace_trace_keep(const RowCheck *rc, LockTrace *trace)
{
	memset(trace, 0, sizeof(*trace));
	copy_alive(&rc->lockers, InvalidTransactionId, trace);
	trace->before = true;
	trace->undone = rc->lockers.trace.undone;
}

/*
 * A change is taken back; "undone" is its header.  Transactions that have locked
 * the version before it have locked the newest again.
 */
void
inplace_trace_restore(const RowCheck *rc,
					  const InplaceTupleHeaderData *undone, LockTrace *trace)
{
	InplaceTupleHeaderData hdr = *undone;

	memset(trace, 0, sizeof(*trace));
	copy_alive(&rc->lockers, undone->t_xid, trace);
	trace->undone = 1 + inplace_change_mode(&hdr);
}

/*
 * The version meant has been replaced and cannot be had.  Are there any
 * lockers of it left, so that a backend which wants it has to queue, or to wait?
 * Fills rc's old_version, queue_tag and queue_xid, wait_xid and own_lock.  tup is the newest
 * version, whose lockers are known.
 */
bool
inplace_old_version_locked(Relation rel, InplaceTupleHeader tup,
						   const RowTarget *target, LockTupleMode mode,
						   RowCheck *rc)
{
	MultiXactMember single;
	MultiXactMember *members;
	InplaceTupleHeaderData version = *tup;
	TransactionId replacer;
	int			n;
	bool		found = false;

	if (!rc->locked || target->kind == TARGET_NEWEST || target->gone || mode == LockTupleKeyShare ||
		(!rc->lockers.trace.before && rc->lockers.trace.nold == 0))
		return false;
	replacer = inplace_replacer_of(rel, &version, target);
	if (!TransactionIdIsValid(replacer))
		return false;

	n = get_members(&rc->lockers, &single, &members);
	for (int i = 0; i < n; i++)
	{
		TransactionId xid = members[i].xid;
		TransactionId r = inplace_trace_replacer(&rc->lockers, xid);

		if (!TransactionIdIsValid(r) ||
			(r != replacer &&
			 (target->kind != TARGET_SEEN || target->snapshot == InvalidSnapshot ||
			  target->snapshot->snapshot_type != SNAPSHOT_MVCC ||
			  XidInMVCCSnapshot(r, target->snapshot))))
			continue;
		if (TransactionIdIsCurrentTransactionId(xid))
			rc->own_lock = found = true;
		else if (TransactionIdIsInProgress(xid))
		{
			found = true;
			if (mode == LockTupleExclusive &&
				!TransactionIdIsValid(rc->wait_xid))
				rc->wait_xid = xid;
		}
	}
	free_members(members, n, &single);
	if (!found)
		return false;
	rc->old_version = true;
	inplace_queue_for(rc, &version);
	return TransactionIdIsValid(rc->wait_xid) || !target->queued_old;
}
