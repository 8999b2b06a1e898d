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
