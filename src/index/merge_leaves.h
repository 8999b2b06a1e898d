/*-------------------------------------------------------------------------
 *
 * merge_leaves.h
 *	  Merging the sparse pages of an index; see merge_leaves.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_MERGE_LEAVES_H
#define INPLACE_MERGE_LEAVES_H

#include "inplace.h"

#include "access/genam.h"

extern bool inplace_merge_index_pages;

/* a table grows if its rows have become more by such a part since the VACUUM before */
#define TABLE_GROWS		0.02

/* what VACUUM has removed from an index: by the index, and with the rows */
typedef struct RemovedEntries
{
	Size		bytes;
	double		share;
	double		grown;			/* by what part of its rows has the table
								 * grown? */
	double		inserted;		/* since the VACUUM before, as a part of its
								 * rows, as far as statistics know */
	bool		xids_are_taken; /* while it did so */
	bool		is_alone;		/* its file can be cut off afterwards */
} RemovedEntries;

extern BlockNumber inplace_merge_leaves(IndexVacuumInfo *info, Relation table,
										const RemovedEntries *removed);

#endif							/* INPLACE_MERGE_LEAVES_H */
