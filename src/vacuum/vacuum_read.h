/*-------------------------------------------------------------------------
 *
 * vacuum_read.h
 *	  The pages that a VACUUM reads, from 17 on ahead of time; see vacuum_read.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_VACUUM_READ_H
#define INPLACE_VACUUM_READ_H

#include "inplace.h"

#include "vacuum/dead_items.h"
#include "vacuum/skip.h"
#include "vacuum/vacuum.h"

typedef struct PageReader
{
	InplaceVacuum *vac;
	PageChooser chooser;
	void	   *stream;			/* from 17 on */
} PageReader;

extern void page_reader_begin(InplaceVacuum *vac, PageReader *reader);
extern Buffer page_reader_next(PageReader *reader, bool *revisit);
extern void page_reader_end(PageReader *reader);

typedef struct DeadPage
{
	int			noffsets;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
} DeadPage;

typedef struct DeadReader
{
	InplaceVacuum *vac;
	DeadItemsIter it;
	void	   *stream;			/* from 17 on */
	DeadPage	dead;			/* up to 16 */
} DeadReader;

extern void dead_reader_begin(InplaceVacuum *vac, DeadReader *reader);
extern Buffer dead_reader_next(DeadReader *reader, DeadPage **dead);
extern void dead_reader_end(DeadReader *reader);

#endif							/* INPLACE_VACUUM_READ_H */
