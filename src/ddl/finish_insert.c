/*-------------------------------------------------------------------------
 *
 * finish_insert.c
 *	  The end of a bulk insert.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "catalog/storage.h"
#include "ddl/cluster.h"
#include "storage/bufmgr.h"

/*
 * The file was extended by many pages at a time (from 16 on): give back those
 * that no row has come to.  Only for a new table that nobody else writes.
 */
void
inplace_drop_empty_tail(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber keep = nblocks;

	while (keep > 0)
	{
		Buffer		buffer = ReadBuffer(rel, keep - 1);
		bool		empty = PageIsNew(BufferGetPage(buffer));

		ReleaseBuffer(buffer);
		if (!empty)
			break;
		keep--;
	}
	if (keep < nblocks)
		RelationTruncate(rel, keep);
}

/*
 * The end of ALTER TABLE's rewrite, of REFRESH MATERIALIZED VIEW, and of bulk
 * inserts, whose other pages stay for the next ones.
 */
void
inplace_finish_bulk_insert(Relation rel, int options)
{
	if (OidIsValid(rel->rd_rel->relrewrite))
		inplace_drop_empty_tail(rel);
}
