/*-------------------------------------------------------------------------
 *
 * fetch.h
 *	  Single rows; see fetch.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_FETCH_H
#define INPLACE_FETCH_H

#include "inplace.h"

/* rows put on pages by this process */
extern uint64 inplace_rows_put;

/*
 * Copy what the snapshot sees of the row at (blk, off) of a share-locked
 * page into the slot, with a clean TID; false if it sees nothing or there is no
 * row.
 */
extern bool inplace_fetch_visible(Relation rel, Buffer buffer, BlockNumber blk,
								  OffsetNumber off, Snapshot snapshot,
								  TupleTableSlot *slot);

#endif							/* INPLACE_FETCH_H */
