/*-------------------------------------------------------------------------
 *
 * vacuum_read.c
 *	  Reading the pages of VACUUM's two passes over the table.
 *
 * From PostgreSQL 17 on they come from the server's read streams, which ask for
 * the next blocks ahead, read neighbours at once, and go by
 * maintenance_io_concurrency.  Before, one is read when it is wanted.
 *
 * So which page comes next is decided some pages ahead.  It was not to be
 * skipped then, and is not now: only VACUUM sets bits of the visibility map, and there is
 * one VACUUM of a table at a time.  Of the all-visible pages that are read in
 * the hope of freezing (skip.c) some more may be read for nothing than skip.c
 * would have.
 *
 * A buffer is handed out pinned, not locked; the caller lets go of it.  A
 * stream has others pinned, and keeps them while the indexes are vacuumed between
 * two pages of the first pass; nobody waits for a pin here (vacuum.c).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#ifdef HAVE_READ_STREAM
#include "storage/read_stream.h"
#endif

#include "vacuum/dead_items.h"
#include "vacuum/skip.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_read.h"

#ifdef HAVE_READ_STREAM

static void *
begin_stream(InplaceVacuum *vac, ReadStreamBlockNumberCB next, void *arg,
			 Size data_size)
{
	/* (the callbacks may read pages of the visibility map: no batches) */
	return read_stream_begin_relation(READ_STREAM_MAINTENANCE,
									  vac->bstrategy, vac->rel, MAIN_FORKNUM,
									  next, arg, data_size);
}

static BlockNumber
next_chosen(ReadStream *stream, void *arg, void *data)
{
	PageReader *reader = arg;
	BlockNumber blk;

	if (!page_chooser_next(reader->vac, &reader->chooser, &blk, (bool *) data))
		return InvalidBlockNumber;
	return blk;
}

static BlockNumber
next_dead(ReadStream *stream, void *arg, void *data)
{
	DeadReader *reader = arg;
	DeadPage   *dead = data;
	BlockNumber blk;

	if (!dead_items_next(reader->vac, &reader->it, &blk, dead->offsets,
						 &dead->noffsets))
		return InvalidBlockNumber;
	return blk;
}

#else

static Buffer
read_now(InplaceVacuum *vac, BlockNumber blk)
{
	return ReadBufferExtended(vac->rel, MAIN_FORKNUM, blk, RBM_NORMAL,
							  vac->bstrategy);
}

#endif

/* ---------------- the first pass ---------------- */

void
page_reader_begin(InplaceVacuum *vac, PageReader *reader)
{
	reader->vac = vac;
	page_chooser_begin(vac, &reader->chooser);
#ifdef HAVE_READ_STREAM
	reader->stream = begin_stream(vac, next_chosen, reader, sizeof(bool));
#endif
}

/*
 * The next page, or InvalidBuffer.  *revisit: tell page_chooser_revisited about
 * it.
 */
Buffer
page_reader_next(PageReader *reader, bool *revisit)
{
#ifdef HAVE_READ_STREAM
	void	   *data;
	Buffer		buffer = read_stream_next_buffer(reader->stream, &data);

	if (BufferIsValid(buffer))
		*revisit = *(bool *) data;
	return buffer;
#else
	BlockNumber blk;

	if (!page_chooser_next(reader->vac, &reader->chooser, &blk, revisit))
		return InvalidBuffer;
	return read_now(reader->vac, blk);
#endif
}

void
page_reader_end(PageReader *reader)
{
#ifdef HAVE_READ_STREAM
	read_stream_end(reader->stream);
#endif
	page_chooser_end(&reader->chooser);
}

/* ---------------- the second pass ---------------- */

void
dead_reader_begin(InplaceVacuum *vac, DeadReader *reader)
{
	reader->vac = vac;
	dead_items_begin(vac, &reader->it);
#ifdef HAVE_READ_STREAM
	reader->stream = begin_stream(vac, next_dead, reader, sizeof(DeadPage));
#endif
}

/*
 * The next page with dead items, and these, valid until the next call.
 */
Buffer
dead_reader_next(DeadReader *reader, DeadPage **dead)
{
#ifdef HAVE_READ_STREAM
	void	   *data;
	Buffer		buffer = read_stream_next_buffer(reader->stream, &data);

	*dead = data;
	return buffer;
#else
	BlockNumber blk;

	*dead = &reader->dead;
	if (!dead_items_next(reader->vac, &reader->it, &blk, reader->dead.offsets,
						 &reader->dead.noffsets))
		return InvalidBuffer;
	return read_now(reader->vac, blk);
#endif
}

void
dead_reader_end(DeadReader *reader)
{
#ifdef HAVE_READ_STREAM
	read_stream_end(reader->stream);
#endif
	dead_items_end(&reader->it);
}
