/*-------------------------------------------------------------------------
 *
 * stale.h
 *	  Taking stale entries out of indexes, and IP_STALE off rows; see stale.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_STALE_H
#define INPLACE_STALE_H

#include "inplace.h"

#include "page/tuple.h"
#include "vacuum/freeze.h"
#include "vacuum/vacuum.h"

/*
 * Do swept rows count as dead, for VACUUM to come for them?  Where they are the only
 * stale ones on their pages, if next to no pages have others beside them.
 */
static inline bool
SweptRowsCount(BlockNumber pages_only_swept, BlockNumber pages_mixed)
{
	return pages_mixed <= pages_only_swept / 10;
}

extern void stale_learn_indexes(InplaceVacuum *vac);
extern bool stale_clear_page(InplaceVacuum *vac, Buffer buffer,
							 bool may_put_off);
extern void stale_survey_row(InplaceVacuum *vac, OffsetNumber off,
							 InplaceTupleHeader tup, PageSurvey *survey);
extern void stale_note_page(InplaceVacuum *vac, Buffer buffer,
							const PageSurvey *survey, bool clear_later);
extern void stale_sweep(InplaceVacuum *vac);
extern void stale_finish(InplaceVacuum *vac);

#endif							/* INPLACE_STALE_H */
