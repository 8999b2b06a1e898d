/*-------------------------------------------------------------------------
 *
 * recent.h
 *	  ReadBuffer for commands that come to a row by its TID.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_RECENT_H
#define INPLACE_RECENT_H

#include "inplace.h"

extern Size PageGuessShmemSize(void);
extern void PageGuessShmemInit(void);

extern Buffer inplace_read_row_page(Relation rel, BlockNumber blk);
extern Buffer inplace_pin_row_page(Relation rel, BlockNumber blk,
								   OffsetNumber off);
extern void inplace_expect_row(Relation rel, const ItemPointerData *tid);
extern void inplace_foresee_page(Relation rel, BlockNumber blk);
extern void inplace_expect_page(Relation rel, BlockNumber blk);
extern Buffer inplace_expected_row_page(Relation rel, BlockNumber blk,
										OffsetNumber off);
extern Buffer inplace_prefetch_row_page(Relation rel, BlockNumber blk,
										OffsetNumber off);
extern void inplace_prefetch_row(Buffer recent, OffsetNumber off);
extern Buffer inplace_pin_prefetched(Relation rel, BlockNumber blk,
									 Buffer recent);
extern Buffer inplace_borrow_row_page(Relation rel, BlockNumber blk,
									  bool *borrowed);
extern void inplace_return_row_page(Buffer buffer, bool borrowed);
extern void inplace_own_row_page(Buffer buffer, bool *borrowed);
extern void inplace_register_row_page_callbacks(void);

/*
 * The page that a scan has pinned, whose pin commands may borrow.  Nothing but
 * these functions changes it.
 */
typedef struct ScanPin
{
	Buffer		buffer;			/* or InvalidBuffer */
} ScanPin;

extern void ScanPinTake(ScanPin *pin, Relation rel, BlockNumber blk,
						Buffer buffer);
extern void ScanPinDrop(ScanPin *pin);
extern void ScanPinEnd(ScanPin *pin);

static inline void
ScanPinInit(ScanPin *pin)
{
	pin->buffer = InvalidBuffer;
}

#endif							/* INPLACE_RECENT_H */
