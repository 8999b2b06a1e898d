/*-------------------------------------------------------------------------
 *
 * index.h
 *	  inplace_btree: which indexes take an in-place update, and their entries.
 *	  (For what is otherwise with indexes of other methods see other_method.c.)
 *
 * An index that takes it gets one new entry when the row's key changes; the
 * entry of the old key stays, for the snapshots that see the old version.  The
 * row is marked IP_STALE from then on: a TID from such an index may belong to
 * another version's key.  So a backend that comes to the row by an entry
 * compares the entry with the version that it sees.
 *
 * Invariants
 *	 1. Every version of a row that somebody may see has an entry with its
 *		key in each index.  So an entry goes only when no version that is
 *		still needed has its key (index_delete.c), which is found out with the
 *		index page locked.  Keys that are computed have been so before.
 *	 2. There is one entry at most for a key and a TID.  Before an entry is
 *		made it is looked for, unless there cannot be one (taking.c).  The row
 *		has been changed by then, so an entry that is found is needed again and
 *		cannot go any more.
 *	 3. A row with more than one entry in an index is IP_STALE, its rolled
 *		back versions included.  The mark goes when its other entries have gone
 *		and nobody can come with one of them any more (vacuum/stale.c).
 *	 4. The key of each version is identical to that of its entry, not only
 *		equal: where an operator class does not promise that equal keys are
 *		identical (equalimage), an update to a key that is equal to the old
 *		one, or to that of an entry that is left, moves the row.  So keys are
 *		compared byte by byte, by their lengths (page/compare.h); no code of an
 *		operator class runs under a page lock of the table.
 *
 *	 5. What an entry has of INCLUDE columns (its payload) counts only while
 *		the row is not IP_STALE.  An update leaves it as it is and marks
 *		the row; an index-only scan takes the payload of a marked row from the
 *		version it sees; and the sweep that goes before the mark is cleared
 *		puts the payload right.  So a rolled back payload is never shown.
 *
 *	 6. In an index with expressions or a predicate all of this is about the key
 *		that is computed from a version, which may be none.  It is
 *		computed from old and new version before the row is changed; if it is
 *		the same, the update does not concern the index.  It comes out the same in
 *		every session, or the index takes no such update (safe_functions.c).
 *		It is never computed with a page locked (version_keys.c, insertion.c).
 *		A row that leaves the predicate or enters it is IP_STALE, for its entry
 *		is not of all its versions.
 *
 * An index does not take in-place updates of its columns if it
 * - is not an inplace_btree, is not ready or not valid;
 * - has expressions or a predicate with functions that are not known to come out
 *	 the same in all sessions (key.c), unless they come out as before (kept_key.c);
 * - is unique with an operator class that makes no such promise and is not the
 *	 server's own, for a unique check compares keys with the page locked.
 * Then the row moves.  Rows so long that their payload might not fit an entry move,
 * too; and so do those whose unique keys a worker of logical replication changes
 * (left_to_server in taking.c).
 *
 * Lock order: index page, then table page, then undo page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_INDEX_H
#define INPLACE_INDEX_H

#include "inplace.h"

/* is it a table of ours? (young_index.c) */
extern bool inplace_is_inplace_table(Oid relid);

/* when the extension is loaded */
extern void inplace_late_open_init(void);
extern void inplace_as_btree_init(void);
extern void inplace_planner_init(void);
extern void inplace_young_index_init(void);
extern void inplace_gist_only_init(void);
extern void inplace_plan_start_init(void);

#endif							/* INPLACE_INDEX_H */
