/*-------------------------------------------------------------------------
 *
 * page.c
 *	  Items on a data page: adding, replacing, growing, moving together.
 *
 * Layout
 *	  A data page is a standard page without special space.  Items lie between
 *	  pd_upper and the end of the page, in any order.  An item that is
 *	  IP_ALIGNED starts at a MAXALIGNed offset, any other stands wherever it
 *	  was put, so pd_upper is any number.  Line pointers are LP_NORMAL,
 *	  LP_DEAD (a stub without storage that index entries still point to) or
 *	  LP_UNUSED, never LP_REDIRECT, and there are at most
 *	  InplaceMaxTuplesPerPage of them.  pd_lower is one more than their end,
 *	  the mark of our pages (page.h).
 *
 * Invariants
 *	  1. Everything here runs under the page's exclusive content lock and
 *		 nothing else (readers copy rows out under the share lock), allocates
 *		 nothing and is fit for critical sections.  The only errors are
 *		 reports of corruption.
 *	  2. Each function is a function of the line pointers and of the items'
 *		 IP_ALIGNED bits alone, so that redo comes to the same layout.  What the
 *		 bytes outside of items contain is left undefined, see
 *		 inplace_page_blank_gaps.
 *	  3. Compacting never needs more room than the items have: it keeps the
 *		 items' order on the page where aligned and unaligned items are
 *		 mixed, so each one can only move up.  (With one kind only, the order
 *		 makes no difference to the space that is needed.)
 *	  4. A rollback always fits: an item replaced with keep_space keeps at least
 *		 the space it had, and once it had to be aligned it stays so, until
 *		 someone replaces it without keep_space or trims it.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "page/page.h"
#include "page/tuple.h"
#include "storage/buf_internals.h"
#include "storage/itemid.h"
#include "storage/lwlock.h"

/* the largest row fits a page all the same */
StaticAssertDecl(RowPageLower(1) + InplaceMaxTupleSize <= BLCKSZ,
				 "no room for the mark of a page");

#define ST_SORT sort_page_items
#define ST_ELEMENT_TYPE PageItem
#define ST_COMPARE(a, b) ((int) (b)->off - (int) (a)->off)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* the start of an item of len bytes that ends at or just before "end" */
static inline int
item_start(int end, Size len, bool aligned)
{
	int			start = end - (int) len;

	if (aligned && start > 0)
		start &= ~(MAXIMUM_ALIGNOF - 1);
	return start;
}

/*
 * Before a page is reported: a client that does not read must not keep it locked.
 * In a critical section the locks stay, and the error becomes a PANIC.
 */
static void
let_go_of_pages(void)
{
	if (CritSectionCount == 0)
		LWLockReleaseAll();
}

/*
 * The caller has no relation, but a page in shared buffers has a tag.
 */
static void
bad_line_pointer(Page page, OffsetNumber off)
{
	ItemIdData	copy = *PageGetItemId(page, off);
	ItemId		lp = &copy;
	Size		n = ((char *) page - BufferBlocks) / BLCKSZ;

	let_go_of_pages();

	if ((char *) page >= BufferBlocks && n < (Size) NBuffers)
	{
		RelFileLocator loc;
		ForkNumber	fork;
		BlockNumber blk;

		BufferGetTag((Buffer) n + 1, &loc, &fork, &blk);
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid line pointer %u in block %u of relation with file number %u",
						off, blk, LocatorRel(loc)),
				 errdetail("Flags %u, offset %u, length %u.",
						   ItemIdGetFlags(lp), ItemIdGetOffset(lp),
						   ItemIdGetLength(lp))));
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid line pointer %u in a page of an inplace table",
					off),
			 errdetail("Flags %u, offset %u, length %u.",
					   ItemIdGetFlags(lp), ItemIdGetOffset(lp),
					   ItemIdGetLength(lp))));
}

/*
 * Of one that is LP_NORMAL.  Items are between "upper" and "special".
 */
static inline bool
line_pointer_ok(Page page, ItemId lp, uint32 upper, uint32 special)
{
	uint32		start = ItemIdGetOffset(lp);
	uint32		len = ItemIdGetLength(lp);

	if (start < upper || start + len > special || len < SizeOfInplaceTupleHeader)
		return false;
	return start == MAXALIGN(start) ||
		(((InplaceTupleHeader) (page + start))->t_natts & IP_ALIGNED) == 0;
}

static inline bool
other_line_pointer_ok(ItemId lp)
{
	return !ItemIdIsRedirected(lp) && !ItemIdHasStorage(lp);
}

/*
 * Collect the page's items, except the one at "skip".  Returns a line pointer
 * that cannot be right, or InvalidOffsetNumber: items that overlap would be
 * moved over each other, or off the page.
 *
 * Done for each prune, and for all items.  What is stored into "pi" might be the page for
 * all the compiler knows, so nothing of the page is read twice.
 */
static OffsetNumber
try_gather_items(Page page, OffsetNumber skip, PageItems *pi)
{
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	PageItem   *item = pi->item;
	const uint32 upper = ((PageHeader) page)->pd_upper;
	const uint32 special = ((PageHeader) page)->pd_special;
	uint32		last = special;
	uint32		raw_sum = 0;
	uint32		sum = 0;
	uint32		unsorted = 0;	/* not zero: some item is not below the last */
	uint16		any = 0;		/* OR and AND of the items' t_natts */
	uint16		all = IP_ALIGNED;

	if (maxoff > InplaceMaxTuplesPerPage || special > BLCKSZ)
	{
		uint32		lower = ((PageHeader) page)->pd_lower;

		let_go_of_pages();
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("corrupted page header: pd_lower %u, pd_special %u",
						lower, special)));
	}

	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		ItemIdData	lp = *PageGetItemId(page, off);
		uint32		start = ItemIdGetOffset(&lp);
		uint32		len = ItemIdGetLength(&lp);
		uint16		natts;

		if (!ItemIdIsNormal(&lp))
		{
			if (unlikely(!other_line_pointer_ok(&lp)))
				return off;
			continue;
		}
		if (unlikely(start < upper || start + len > special ||
					 len < SizeOfInplaceTupleHeader))
			return off;
		natts = ((InplaceTupleHeader) (page + start))->t_natts & IP_ALIGNED;
		if (unlikely(natts != 0 && start != MAXALIGN(start)))
			return off;
		if (off == skip)
			continue;

		item->off = start;
		item->len = len;
		item->lp = off;
		item->aligned = natts != 0;
		any |= natts;
		all &= natts;
		sum += natts != 0 ? MAXALIGN(len) : len;
		raw_sum += len;
		if (start >= last)
			unsorted = 1;
		else if (unlikely(start + len > last))
			return off;			/* overlaps the one before */
		last = start;
		item++;
	}
	pi->n = item - pi->item;
	pi->presorted = unsorted == 0;
	pi->any_aligned = any != 0;
	pi->any_unaligned = pi->n > 0 && all == 0;
	pi->sum = sum;

	if (unlikely(raw_sum + upper > special))
		return maxoff;
	return InvalidOffsetNumber;
}

static void
gather_items(Page page, OffsetNumber skip, PageItems *pi)
{
	OffsetNumber bad = try_gather_items(page, skip, pi);

	if (unlikely(bad != InvalidOffsetNumber))
		bad_line_pointer(page, bad);
}

static OffsetNumber
try_sort_items(PageItems *pi)
{
	if (pi->presorted)
		return InvalidOffsetNumber;
	sort_page_items(pi->item, pi->n);
	pi->presorted = true;
	for (int i = 1; i < pi->n; i++)
	{
		if (unlikely(pi->item[i].off + pi->item[i].len > pi->item[i - 1].off))
			return pi->item[i].lp;
	}
	return InvalidOffsetNumber;
}

static void
sort_items(Page page, PageItems *pi)
{
	OffsetNumber bad = try_sort_items(pi);

	if (unlikely(bad != InvalidOffsetNumber))
		bad_line_pointer(page, bad);
}

/*
 * What pd_upper will be once the items are moved together.
 */
static int
compacted_upper(Page page, PageItems *pi)
{
	int			upper = ((PageHeader) page)->pd_special;

	/* the end of the page is MAXALIGNed: one kind of item is a mere sum */
	if (!pi->any_aligned || !pi->any_unaligned)
		return upper - (int) pi->sum;

	sort_items(page, pi);
	for (int i = 0; i < pi->n; i++)
		upper = item_start(upper, pi->item[i].len, pi->item[i].aligned);
	return upper;
}

/*
 * Move the items together at the end of the page.
 */
static void
compact_items(Page page, PageItems *pi)
{
	PageHeader	phdr = (PageHeader) page;
	int			upper = phdr->pd_special;

	if (pi->any_aligned && pi->any_unaligned)
		sort_items(page, pi);

	if (pi->presorted)
	{
		/*
		 * Each item moves up, over space that nothing uses any more. Move
		 * neighbours that go by the same distance in one piece.
		 */
		int			i = 0;

		while (i < pi->n)
		{
			PageItem   *first = &pi->item[i];
			int			to = item_start(upper, first->len, first->aligned);
			int			shift = to - first->off;
			int			low = first->off;
			int			j = i + 1;

			Assert(shift >= 0);
			upper = to;
			if (shift != 0)
				PageGetItemId(page, first->lp)->lp_off = to;

			/* following items without a gap between, shifted likewise */
			while (j < pi->n)
			{
				PageItem   *next = &pi->item[j];

				if (next->off + next->len != low)
					break;
				to = item_start(upper, next->len, next->aligned);
				if (to - next->off != shift)
					break;
				low = next->off;
				upper = to;
				if (shift != 0)
					PageGetItemId(page, next->lp)->lp_off = to;
				j++;
			}
			if (shift != 0)
				memmove(page + upper, page + low,
						first->off + first->len - low);
			i = j;
		}
	}
	else
	{
		/*
		 * One kind of item only, in disorder: put them in line pointer order,
		 * which sequential scans like best, from a copy.
		 */
		PGAlignedBlock copy;

		memcpy(copy.data + phdr->pd_upper, page + phdr->pd_upper,
			   phdr->pd_special - phdr->pd_upper);
		for (int i = 0; i < pi->n; i++)
		{
			PageItem   *item = &pi->item[i];

			upper = item_start(upper, item->len, item->aligned);
			memcpy(page + upper, copy.data + item->off, item->len);
			PageGetItemId(page, item->lp)->lp_off = upper;
		}
	}

	Assert(upper >= phdr->pd_upper);
	phdr->pd_upper = upper;
}

static void
compact_gathered(Page page, PageItems *pi)
{
	/*
	 * Nothing to do if the items fill their space. (There may be gaps of
	 * alignment; then the comparison fails, and the pass below moves
	 * nothing.)
	 */
	if (((PageHeader) page)->pd_special - ((PageHeader) page)->pd_upper == pi->sum &&
		!pi->any_aligned)
		return;
	compact_items(page, pi);
}

void
inplace_page_compact(Page page)
{
	PageItems	pi;

	gather_items(page, InvalidOffsetNumber, &pi);
	compact_gathered(page, &pi);
}

/*
 * What is left of the items that were gathered from the page before: some have gone, some
 * have been cut short.  The same as to gather them anew, for a fraction of the work.
 */
static void
keep_items(Page page, PageItems *pi)
{
	PageItem   *to = pi->item;
	uint32		last = ((PageHeader) page)->pd_special;
	uint32		sum = 0;

	pi->presorted = true;
	pi->any_aligned = pi->any_unaligned = false;
	for (int i = 0; i < pi->n; i++)
	{
		PageItem	item = pi->item[i];
		ItemId		lp = PageGetItemId(page, item.lp);

		if (!ItemIdIsNormal(lp))
			continue;
		Assert(ItemIdGetOffset(lp) == item.off && ItemIdGetLength(lp) <= item.len);
		item.len = ItemIdGetLength(lp);
		if (item.aligned)
			pi->any_aligned = true;
		else
			pi->any_unaligned = true;
		sum += item.aligned ? MAXALIGN(item.len) : item.len;
		if (item.off >= last)
			pi->presorted = false;
		last = item.off;
		*to++ = item;
	}
	pi->n = to - pi->item;
	pi->sum = sum;
}

/*
 * As inplace_page_compact(), of a page whose items inplace_check_items() has gathered.
 * Since then some may have gone or been cut short, and no more: a redo gathers them anew,
 * and has to come to the same.
 */
void
inplace_page_compact_gathered(Page page, PageItems *pi)
{
	keep_items(page, pi);
#ifdef USE_ASSERT_CHECKING
	{
		PageItems	anew;

		gather_items(page, InvalidOffsetNumber, &anew);
		Assert(anew.n == pi->n && anew.sum == pi->sum &&
			   anew.presorted == pi->presorted &&
			   anew.any_aligned == pi->any_aligned &&
			   anew.any_unaligned == pi->any_unaligned);
		for (int i = 0; i < pi->n; i++)
			Assert(anew.item[i].off == pi->item[i].off &&
				   anew.item[i].len == pi->item[i].len &&
				   anew.item[i].lp == pi->item[i].lp &&
				   anew.item[i].aligned == pi->item[i].aligned);
	}
#endif
	compact_gathered(page, pi);
}

/*
 * An unused line pointer, or InvalidOffsetNumber.  PD_HAS_FREE_LINES is only
 * a hint in one direction: if it is not set there is none worth looking for.
 */
static OffsetNumber
find_unused_line_pointer(Page page)
{
	OffsetNumber maxoff;

	if (!PageHasFreeLinePointers(page))
		return InvalidOffsetNumber;

	maxoff = PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
	{
		if (!ItemIdIsUsed(PageGetItemId(page, off)))
			return off;
	}
	return InvalidOffsetNumber;
}

Size
inplace_page_free_space(Page page)
{
	PageItems	pi;
	int			space;

	gather_items(page, InvalidOffsetNumber, &pi);
	space = compacted_upper(page, &pi) - ((PageHeader) page)->pd_lower;

	if (find_unused_line_pointer(page) == InvalidOffsetNumber)
	{
		if (PageGetMaxOffsetNumber(page) >= InplaceMaxTuplesPerPage)
			return 0;
		space -= sizeof(ItemIdData);
	}
	return space > 0 ? space : 0;
}

/*
 * Is inplace_page_free_space() at least "needed"?  Most pages tell that without a look
 * at their rows: those with a hole that is large enough, and those that have no more
 * space than they need, whatever the alignment.
 */
bool
inplace_page_has_space(Page page, Size needed)
{
	PageHeader	phdr = (PageHeader) page;
	OffsetNumber maxoff = PageGetMaxOffsetNumber(page);
	Size		used = phdr->pd_lower;

	Assert(needed > 0);
	/* a damaged header is reported there, before anything goes by it */
	if (unlikely(maxoff > InplaceMaxTuplesPerPage ||
				 phdr->pd_upper > phdr->pd_special || phdr->pd_special > BLCKSZ))
		return inplace_page_free_space(page) >= needed;

	if (maxoff < InplaceMaxTuplesPerPage &&
		phdr->pd_upper >= phdr->pd_lower + needed + sizeof(ItemIdData))
	{
		Assert(inplace_page_free_space(page) >= needed);
		return true;
	}
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		used += ItemIdGetLength(PageGetItemId(page, off));
	if (phdr->pd_special < used + needed)
	{
		Assert(inplace_page_free_space(page) < needed);
		return false;
	}
	return inplace_page_free_space(page) >= needed;
}

/*
 * The line pointer that inplace_page_add is going to use.
 */
OffsetNumber
inplace_page_next_offset(Page page)
{
	OffsetNumber offnum = find_unused_line_pointer(page);

	return offnum != InvalidOffsetNumber ? offnum :
		OffsetNumberNext(PageGetMaxOffsetNumber(page));
}

OffsetNumber
inplace_page_add(Page page, InplaceTupleHeader tup, Size len,
				 OffsetNumber offnum)
{
	PageHeader	phdr = (PageHeader) page;
	OffsetNumber limit = OffsetNumberNext(PageGetMaxOffsetNumber(page));
	bool		aligned = (tup->t_natts & IP_ALIGNED) != 0;
	int			lower = phdr->pd_lower;
	int			start;

	Assert(len >= SizeOfInplaceTupleHeader);

	if (offnum == InvalidOffsetNumber)
	{
		offnum = find_unused_line_pointer(page);
		if (offnum == InvalidOffsetNumber)
		{
			PageClearHasFreeLinePointers(page);
			offnum = limit;
		}
	}
	else if (offnum > limit ||
			 (offnum < limit && ItemIdIsUsed(PageGetItemId(page, offnum))))
		return InvalidOffsetNumber;

	if (offnum > InplaceMaxTuplesPerPage)
		return InvalidOffsetNumber;
	if (offnum == limit)
		lower = RowPageLower(offnum);
	else if (!RowPageIsMarked(page))
		lower = RowPageLower(limit - 1);	/* a blank page's only one */

	start = item_start(phdr->pd_upper, len, aligned);
	if (start < lower)
	{
		PageItems	pi;

		gather_items(page, InvalidOffsetNumber, &pi);
		start = item_start(compacted_upper(page, &pi), len, aligned);
		if (start < lower)
			return InvalidOffsetNumber;
		compact_items(page, &pi);
	}

	memcpy(page + start, tup, len);
	ItemIdSetNormal(PageGetItemId(page, offnum), start, len);
	phdr->pd_lower = lower;
	phdr->pd_upper = start;
	return offnum;
}

/*
 * Where the replacement of an item goes.
 */
typedef enum ReplaceHow
{
	REPLACE_STAY,				/* into the old item's space */
	REPLACE_HOLE,				/* into the free space as it is */
	REPLACE_COMPACT,			/* ... after compacting without the old item */
	REPLACE_NO_ROOM
} ReplaceHow;

typedef struct ReplacePlan
{
	ReplaceHow	how;
	bool		aligned;
	int			reserve;		/* new lp_len */
	int			start;			/* new lp_off */
} ReplacePlan;

static void
plan_replace(Page page, OffsetNumber offnum, const InplaceTupleHeaderData *tup,
			 Size newlen, bool keep_space, ReplacePlan *plan, PageItems *pi)
{
	PageHeader	phdr = (PageHeader) page;
	ItemId		lp = PageGetItemId(page, offnum);
	int			oldoff = ItemIdGetOffset(lp);
	int			oldlen = ItemIdGetLength(lp);
	int			end = phdr->pd_upper;

	Assert(ItemIdIsNormal(lp));

	plan->aligned = (tup->t_natts & IP_ALIGNED) != 0;
	plan->reserve = newlen;
	if (keep_space)
	{
		/* the old row must fit again if this change is rolled back */
		if (((InplaceTupleHeader) (page + oldoff))->t_natts & IP_ALIGNED)
			plan->aligned = true;
		plan->reserve = Max(oldlen, (int) newlen);
	}

	if (newlen <= oldlen && (!plan->aligned || oldoff == MAXALIGN(oldoff)))
	{
		plan->how = REPLACE_STAY;
		plan->start = oldoff;
		return;
	}

	/* the lowest item grows downward, over its own space */
	if (oldoff == end)
		end += oldlen;
	plan->how = REPLACE_HOLE;
	plan->start = item_start(end, plan->reserve, plan->aligned);
	if (plan->start >= phdr->pd_lower)
		return;

	plan->how = REPLACE_COMPACT;
	gather_items(page, offnum, pi);
	plan->start = item_start(compacted_upper(page, pi), plan->reserve,
							 plan->aligned);
	if (plan->start < phdr->pd_lower)
		plan->how = REPLACE_NO_ROOM;
}

bool
inplace_page_replace(Page page, OffsetNumber offnum, InplaceTupleHeader tup,
					 Size newlen, bool keep_space)
{
	PageHeader	phdr = (PageHeader) page;
	ReplacePlan plan;
	PageItems	pi;
	InplaceTupleHeader dst;

	Assert(newlen >= SizeOfInplaceTupleHeader);
	Assert((char *) tup < (char *) page || (char *) tup >= (char *) page + BLCKSZ);

	plan_replace(page, offnum, tup, newlen, keep_space, &plan, &pi);
	switch (plan.how)
	{
		case REPLACE_NO_ROOM:
			return false;
		case REPLACE_STAY:
			break;
		case REPLACE_COMPACT:
			compact_items(page, &pi);
			/* FALLTHROUGH */
		case REPLACE_HOLE:
			phdr->pd_upper = plan.start;
			break;
	}

	dst = (InplaceTupleHeader) (page + plan.start);
	memcpy(dst, tup, newlen);
	if (plan.aligned)
		dst->t_natts |= IP_ALIGNED;
	dst->t_infomask &= ~IP_PADDED;
	if (newlen < plan.reserve)
		inplace_set_padding(dst, newlen, plan.reserve);
	ItemIdSetNormal(PageGetItemId(page, offnum), plan.start, plan.reserve);
	return true;
}

/*
 * Agrees with inplace_page_replace(..., keep_space = true); without
 * keep_space that one needs no more.
 */
bool
inplace_page_can_grow(Page page, OffsetNumber offnum, InplaceTupleHeader tup,
					  Size newlen)
{
	ReplacePlan plan;
	PageItems	pi;

	plan_replace(page, offnum, tup, newlen, true, &plan, &pi);
	return plan.how != REPLACE_NO_ROOM;
}

/*
 * Zero whatever belongs to no item: the hole, gaps of alignment, space of
 * items that moved away.  For masking a page before it is compared; also used
 * on copies only.
 */
void
inplace_page_blank_gaps(Page page)
{
	PageHeader	phdr = (PageHeader) page;
	PageItems	pi;
	int			end;

	gather_items(page, InvalidOffsetNumber, &pi);
	sort_items(page, &pi);

	end = phdr->pd_special;
	for (int i = 0; i < pi.n; i++)
	{
		int			item_end = pi.item[i].off + pi.item[i].len;

		if (item_end < end)
			memset(page + item_end, 0, end - item_end);
		end = pi.item[i].off;
	}
	if (end > RowPageLinesEnd(page))
		memset(page + RowPageLinesEnd(page), 0, end - RowPageLinesEnd(page));
}

static void
report_bad_line_pointer(Relation rel, Page page, BlockNumber blk,
						OffsetNumber off)
{
	ItemIdData	copy = *PageGetItemId(page, off);
	ItemId		lp = &copy;

	let_go_of_pages();
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid line pointer %u in block %u of relation \"%s\"",
					off, blk, RelationGetRelationName(rel)),
			 errdetail("Flags %u, offset %u, length %u.",
					   ItemIdGetFlags(lp), ItemIdGetOffset(lp),
					   ItemIdGetLength(lp))));
}

#ifdef USE_ASSERT_CHECKING
bool
InplacePageLocked(Buffer buffer)
{
	return BufferIsLocal(buffer) ||
		LWLockHeldByMe(BufferDescriptorGetContentLock(GetBufferDescriptor(buffer - 1)));
}
#endif

/*
 * A page that nothing has been put on, or from which all has gone: new, without
 * line pointers, or with one that is unused (log_vacuum.c).
 */
bool
inplace_page_is_blank(Page page)
{
	PageHeader	phdr = (PageHeader) page;

	if (PageIsNew(page))
		return true;
	return phdr->pd_upper == phdr->pd_special &&
		(phdr->pd_lower == SizeOfPageHeaderData ||
		 (phdr->pd_lower == SizeOfPageHeaderData + sizeof(ItemIdData) &&
		  !ItemIdIsUsed(PageGetItemId(page, FirstOffsetNumber))));
}

static void
report_unmarked_page(Relation rel, Page page, BlockNumber blk)
{
	uint16		lower = ((PageHeader) page)->pd_lower;
	uint16		upper = ((PageHeader) page)->pd_upper;
	uint16		special = ((PageHeader) page)->pd_special;

	let_go_of_pages();
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("page in block %u of relation \"%s\" is not one of an inplace table",
					blk, RelationGetRelationName(rel)),
			 errdetail("It does not have their mark: pd_lower %u, pd_upper %u, pd_special %u.",
					   lower, upper, special),
			 errhint("Either a program that knows only heap has put another table's file there, or the page is damaged, or it was written by a build of inplace before version %d of the format.",
					 INPLACE_FORMAT_VERSION)));
}

void
inplace_unmarked_page(Relation rel, Buffer buffer)
{
	inplace_check_page_mark(rel, BufferGetPage(buffer),
							BufferGetBlockNumber(buffer));
}

void
inplace_check_page_mark(Relation rel, Page page, BlockNumber blk)
{
	if (!RowPageIsMarked(page) && !inplace_page_is_blank(page))
		report_unmarked_page(rel, page, blk);
}

/*
 * What anything put on the page, or looked for there, goes by.
 */
void
inplace_check_page_header(Relation rel, Page page, BlockNumber blk)
{
	PageHeader	phdr = (PageHeader) page;

	inplace_check_page_mark(rel, page, blk);
	if (phdr->pd_lower < SizeOfPageHeaderData ||
		phdr->pd_lower > phdr->pd_upper ||
		phdr->pd_upper > phdr->pd_special ||
		phdr->pd_special != BLCKSZ ||
		PageGetMaxOffsetNumber(page) > InplaceMaxTuplesPerPage)
	{
		PageHeaderData copy = *phdr;

		let_go_of_pages();
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("invalid page in block %u of relation \"%s\"",
						blk, RelationGetRelationName(rel)),
				 errdetail("pd_lower %u, pd_upper %u, pd_special %u do not make a page of an inplace table.",
						   copy.pd_lower, copy.pd_upper, copy.pd_special)));
	}
}

static inline void
check_line_pointer(Relation rel, Page page, BlockNumber blk, OffsetNumber off)
{
	ItemId		lp = PageGetItemId(page, off);

	if (ItemIdIsNormal(lp) ?
		!line_pointer_ok(page, lp, ((PageHeader) page)->pd_upper,
						 ((PageHeader) page)->pd_special) :
		!other_line_pointer_ok(lp))
		report_bad_line_pointer(rel, page, blk, off);
}

void
inplace_check_page(Relation rel, Page page, BlockNumber blk)
{
	OffsetNumber maxoff;

	if (PageIsNew(page))
		return;

	inplace_check_page_header(rel, page, blk);
	maxoff = PageGetMaxOffsetNumber(page);
	for (OffsetNumber off = FirstOffsetNumber; off <= maxoff; off++)
		check_line_pointer(rel, page, blk, off);
}

/*
 * As much of that as concerns these rows.  Offsets that the page does not have are passed over.
 */
void
inplace_check_rows(Relation rel, Page page, BlockNumber blk, const OffsetNumber *offs,
				   int noffs)
{
	OffsetNumber maxoff;

	inplace_check_page_header(rel, page, blk);
	maxoff = PageGetMaxOffsetNumber(page);
	for (int i = 0; i < noffs; i++)
		if (offs[i] >= FirstOffsetNumber && offs[i] <= maxoff)
			check_line_pointer(rel, page, blk, offs[i]);
}

/*
 * "items", if wanted, has what was found; not sorted, for the order decides how they are
 * moved together.
 */
void
inplace_check_items(Relation rel, Page page, BlockNumber blk, PageItems *items)
{
	PageItems	pi;
	OffsetNumber bad;

	if (items == NULL)
		items = &pi;
	items->n = 0;
	if (PageIsNew(page))
		return;
	inplace_check_page_header(rel, page, blk);
	bad = try_gather_items(page, InvalidOffsetNumber, items);
	if (bad == InvalidOffsetNumber && !items->presorted)
	{
		if (items != &pi)
			pi = *items;
		bad = try_sort_items(&pi);
	}
	if (unlikely(bad != InvalidOffsetNumber))
		report_bad_line_pointer(rel, page, blk, bad);
}
