/*-------------------------------------------------------------------------
 *
 * other_mark.h
 *	  Under which indexes of other methods rows have been updated in place; see
 *	  other_mark.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OTHER_MARK_H
#define INPLACE_OTHER_MARK_H

#include "inplace.h"

#include "index/unmarked_scan.h"
#include "utils/snapshot.h"

extern bool inplace_other_marked(char persistence, Oid indexid);
extern bool inplace_other_marked_for_scan(char persistence, Oid indexid,
										  UnmarkedScan *scan);
extern bool inplace_other_may_take(Oid indexid, Snapshot snapshot);
extern bool inplace_other_has_own_mark(Oid indexid);
extern bool inplace_other_known_taking(Relation table, Oid indexid);
extern bool inplace_other_start_taking(Relation table, Oid indexid, bool waits);

#endif							/* INPLACE_OTHER_MARK_H */
