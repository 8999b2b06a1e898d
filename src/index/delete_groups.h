/*-------------------------------------------------------------------------
 *
 * delete_groups.h
 *	  The blocks that an index deletion visits; see delete_groups.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DELETE_GROUPS_H
#define INPLACE_DELETE_GROUPS_H

#include "inplace.h"

#include "access/tableam.h"
#include "storage/buf.h"

/*
 * The TIDs of one block, in deltids from "first" on.
 */
typedef struct BlockGroup
{
	BlockNumber blk;
	int			first;
	int			ntids;
	int			promising;		/* rounded up to a power of two */
	bool		doubled;		/* a TID is there twice */
	Buffer		recent;			/* a guess where it is, if it was prefetched */
	bool		left_alone;		/* it would have to be read, and enough have
								 * been */
} BlockGroup;

extern BlockGroup *delete_groups_make(TM_IndexDeleteOp *delstate,
									  bool find_doubled, int *ngroups);
extern int	delete_groups_rank(TM_IndexDeleteOp *delstate, BlockGroup *groups,
							   int *ngroups, int max_groups,
							   const uint32 *begin_anywhere);

#endif							/* INPLACE_DELETE_GROUPS_H */
