/*-------------------------------------------------------------------------
 *
 * page.h
 *	  A table's pages.
 *
 * Rule for readers: no pointer into a data page is kept after its lock has been let
 * go, for an in-place update writes to a page that others have pinned.  Rows are
 * copied out under the share lock.  In return nothing needs a cleanup lock:
 * pruning and compacting a page take the ordinary exclusive lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_PAGE_H
#define INPLACE_PAGE_H

#include "inplace.h"

#include "page/tuple.h"

/*
 * Every page with rows, or with room that rows have left, carries a mark by
 * which it is told from a page of a heap table: pd_lower, which is a multiple
 * of four there, is one more than the end of the line pointers.  What reads a
 * page for its line pointers rounds down, so that all else is as ever.  A page
 * with nothing on it need not have the mark: it is anybody's.
 */
#define ROW_PAGE_MARK			1
#define RowPageLower(nlines) \
	(SizeOfPageHeaderData + (nlines) * sizeof(ItemIdData) + ROW_PAGE_MARK)
#define RowPageIsMarked(page) \
	((((PageHeader) (page))->pd_lower & (sizeof(ItemIdData) - 1)) == ROW_PAGE_MARK)
/* the end of the line pointers */
#define RowPageLinesEnd(page) \
	(((PageHeader) (page))->pd_lower & ~(sizeof(ItemIdData) - 1))

#ifdef USE_ASSERT_CHECKING
extern bool InplacePageLocked(Buffer buffer);
#endif
extern bool inplace_page_is_blank(Page page);
extern void inplace_unmarked_page(Relation rel, Buffer buffer);

/*
 * The page of a table's buffer, which is locked.  All that look at rows get it
 * here: a page that is not ours is an error, with nothing locked any more.
 */
static inline Page
RowPage(Relation rel, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	Assert(InplacePageLocked(buffer));
	if (unlikely(!RowPageIsMarked(page)))
		inplace_unmarked_page(rel, buffer);
	return page;
}

#define PageGetTupleAt(page, off) \
	((InplaceTupleHeader) PageGetItem((page), PageGetItemId((page), (off))))

/* the items of a page, as they are moved together */
typedef struct PageItem
{
	uint16		off;
	uint16		len;
	OffsetNumber lp;
	bool		aligned;
} PageItem;

typedef struct PageItems
{
	int			n;
	bool		presorted;		/* by descending place on the page */
	bool		any_aligned;
	bool		any_unaligned;
	uint32		sum;			/* of len, or of MAXALIGNed len if aligned */
	PageItem	item[InplaceMaxTuplesPerPage];
} PageItems;

/*
 * Free bytes for growth or for a new item on the page, counting what
 * compacting would bring.
 */
extern Size inplace_page_free_space(Page page);

/* are there as many?  Mostly that is plain without a look at each row. */
extern bool inplace_page_has_space(Page page, Size needed);

/* move items together; line pointers keep their numbers */
extern void inplace_page_compact(Page page);

/*
 * ... with what inplace_check_items() has found.  Since then items may have been taken
 * away or cut short, and nothing else.
 */
extern void inplace_page_compact_gathered(Page page, PageItems *pi);

/*
 * Put an item on the page at offnum (InvalidOffsetNumber: a free line pointer
 * or a new one), compacting first if need be.  Returns the offset, or
 * InvalidOffsetNumber if it does not fit.  With overwrite the line pointer
 * offnum must be unused or the next new one (redo).
 */
extern OffsetNumber inplace_page_add(Page page, InplaceTupleHeader tup,
									 Size len, OffsetNumber offnum);

/* the line pointer that inplace_page_add is going to use */
extern OffsetNumber inplace_page_next_offset(Page page);

/*
 * Replace the item at offnum by newlen bytes.  If it fits the old item's
 * space it stays where it is (and, with keep_space, lp_len stays as it is and
 * the end is marked as padding); otherwise it is put elsewhere on the
 * page.  Returns false, with the page unchanged, if there is no room.
 */
extern bool inplace_page_replace(Page page, OffsetNumber offnum,
								 InplaceTupleHeader tup, Size newlen,
								 bool keep_space);

/* would the item at offnum, grown to newlen, fit on the page? */
extern bool inplace_page_can_grow(Page page, OffsetNumber offnum,
								  InplaceTupleHeader tup, Size newlen);

/* zero the bytes that belong to no item (of a copy of a page, for comparing) */
extern void inplace_page_blank_gaps(Page page);

/*
 * Is this page one of ours at all, and in one piece?  These ereport
 * ERRCODE_DATA_CORRUPTED if not, with no page locked any more.
 */
extern void inplace_check_page_mark(Relation rel, Page page, BlockNumber blk);
extern void inplace_check_page_header(Relation rel, Page page, BlockNumber blk);
extern void inplace_check_page(Relation rel, Page page, BlockNumber blk);
extern void inplace_check_rows(Relation rel, Page page, BlockNumber blk,
							   const OffsetNumber *offs, int noffs);

/*
 * ... and may its items be moved about?  To be called before that is done.  "items" (or
 * NULL): what they are, if the page is not new.
 */
extern void inplace_check_items(Relation rel, Page page, BlockNumber blk,
								PageItems *items);

#endif							/* INPLACE_PAGE_H */
