/*-------------------------------------------------------------------------
 *
 * temp.c
 *	  Undo of temporary tables: a temporary file of the session, read and
 *	  written through local buffers, never logged.
 *
 * Only the session itself has snapshots that want old versions of its
 * temporary tables, and it has none between transactions.  (One that it imports
 * from another session is refused if it would need more: record.c.)  So when a
 * transaction ends the whole file can be used again from its start, unless
 * aborted changes are still on the pages of the tables.  These are restored
 * at the next commit, in the pre-commit callback: there all portals are
 * closed, so nobody is in the middle of a page or has a copy of one that
 * leads to the undo that is about to be reused.  Tables that the transaction
 * has dropped are passed over; if it then fails to commit they are back, so all
 * is looked through again.
 *
 * The file does not belong to the transaction that made it: it is created
 * without a pending delete, and removed when the session ends.  (After a
 * crash the server removes all temporary files.)  Block 0 is not used.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "page/tuple.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "undo/append.h"
#include "undo/scan_page.h"
#include "undo/temp.h"
#include "undo/undo.h"
#include "undo/undo_rows.h"
#include "undo/undorel.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* the file is replaced by a new one when it is idle and longer than this */
#define TEMP_KEEP_BLOCKS	(16 * UNDO_EXTENT_BLOCKS)

static bool temp_created = false;
static bool temp_exit_registered = false;
static RelationData temp_rd;
static FormData_pg_class temp_form;

static BlockNumber temp_nblocks = 0;	/* length of the file */
static BlockNumber temp_fill = 1;	/* blocks begun, counting block 0 */
static bool temp_aborted = false;	/* changes wait for being restored */
static bool temp_restored = false;	/* ... no more, if this transaction does
									 * commit: it may have dropped a table */
static int	temp_written_level = 0; /* as written_level in append.c */

/* the tables that have had undo here, for the way back from a record */
typedef struct TempTableKey
{
	Oid			spc;
	Oid			rel;
} TempTableKey;

typedef struct TempTable
{
	TempTableKey key;
	Oid			relid;
} TempTable;

static HTAB *temp_tables = NULL;
static TempTableKey last_table = {InvalidOid, InvalidOid};
static Oid	last_relid = InvalidOid;

static void
UndoTempRemoveFile(void)
{
	SMgrRelation reln = RelationGetSmgr(&temp_rd);

	smgrdounlinkall(&reln, 1, false);
	RelationCloseSmgr(&temp_rd);
	temp_created = false;
	temp_nblocks = 0;
	temp_fill = 1;
}

/*
 * Before the session ends.  An open transaction has pins on local buffers, so
 * it has to go first.
 */
static void
UndoTempAtExit(int code, Datum arg)
{
	AbortOutOfAnyTransaction();
	if (temp_created)
		UndoTempRemoveFile();
}

static void
UndoTempCreateFile(void)
{
	RelFileLocator locator;

	if (!temp_exit_registered)
	{
		before_shmem_exit(UndoTempAtExit, (Datum) 0);
		temp_exit_registered = true;
	}

	LocatorSpc(locator) = MyDatabaseTableSpace;
	LocatorDb(locator) = MyDatabaseId;
	LocatorRel(locator) = GetNewRelFileNumber(MyDatabaseTableSpace, NULL,
											  RELPERSISTENCE_TEMP);
	UndoRelInit(&temp_rd, &temp_form, &locator, RELPERSISTENCE_TEMP);
	smgrcreate(RelationGetSmgr(&temp_rd), MAIN_FORKNUM, false);
	temp_created = true;
	temp_nblocks = 0;
	temp_fill = 1;
}

static void
UndoTempNoteTable(Relation rel)
{
	TempTableKey key;
	TempTable  *entry;

	MemSet(&key, 0, sizeof(key));
	key.spc = LocatorSpc(RelLocator(rel));
	key.rel = LocatorRel(RelLocator(rel));
	/* (a rewrite writes to the new file by the OID of its transient table) */
	if (key.spc == last_table.spc && key.rel == last_table.rel &&
		RelationGetRelid(rel) == last_relid)
		return;

	if (temp_tables == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(TempTableKey);
		ctl.entrysize = sizeof(TempTable);
		ctl.hcxt = TopMemoryContext;
		temp_tables = hash_create("inplace temporary tables", 32, &ctl,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(temp_tables, &key, HASH_ENTER, NULL);
	entry->relid = RelationGetRelid(rel);
	last_table = key;
	last_relid = RelationGetRelid(rel);
}

static void
UndoTempForgetTables(void)
{
	HASH_SEQ_STATUS status;
	TempTable  *entry;

	if (temp_tables == NULL)
		return;
	hash_seq_init(&status, temp_tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		hash_search(temp_tables, &entry->key, HASH_REMOVE, NULL);
	last_table.spc = last_table.rel = InvalidOid;
}

void
UndoTempPrepare(Relation rel, Size len, UndoInsert *ui)
{
	ui->needs_wal = false;
	temp_written_level = Max(temp_written_level,
							 GetCurrentTransactionNestLevel());

	/* nobody has a page of an idle file pinned */
	if (temp_created && temp_fill == 1 && temp_nblocks > TEMP_KEEP_BLOCKS)
		UndoTempRemoveFile();
	if (!temp_created)
		UndoTempCreateFile();
	UndoTempNoteTable(rel);

	if (temp_fill > 1)
	{
		PageHeader	ph;

		ui->buffer = ReadBuffer(&temp_rd, temp_fill - 1);
		ph = (PageHeader) BufferGetPage(ui->buffer);
		if (ph->pd_special - ph->pd_lower >= len)
		{
			ui->ptr = UndoPtrMake(temp_fill - 1, ph->pd_lower);
			ui->init = false;
			return;
		}
		ReleaseBuffer(ui->buffer);
	}

	if (temp_fill >= temp_nblocks)
	{
		SMgrRelation reln = RelationGetSmgr(&temp_rd);

		/* what an earlier attempt that failed left behind counts */
		temp_nblocks = smgrnblocks(reln, MAIN_FORKNUM);
		if (temp_fill >= temp_nblocks)
		{
			if (temp_nblocks + UNDO_EXTENT_BLOCKS < temp_nblocks)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("undo of temporary tables is full")));
			ZeroExtend(reln, MAIN_FORKNUM, temp_nblocks, UNDO_EXTENT_BLOCKS);
			temp_nblocks += UNDO_EXTENT_BLOCKS;
		}
	}
	/* the page may have older undo on it: it is initialised by UndoAppend */
	ui->buffer = ReadBufferExtended(&temp_rd, MAIN_FORKNUM, temp_fill,
									RBM_ZERO_AND_LOCK, NULL);
	ui->ptr = UndoPtrMake(temp_fill, SizeOfPageHeaderData);
	ui->init = true;
}

void
UndoTempAppended(UndoInsert *ui)
{
	if (ui->init)
		temp_fill++;
}

Buffer
UndoTempReadBuffer(UndoPtr ptr, bool missing_ok)
{
	BlockNumber block = UndoPtrBlock(ptr);

	if (!temp_created || block == 0 || block >= temp_fill)
		return InvalidBuffer;
	return ReadBuffer(&temp_rd, block);
}

/* ---------------- restoring aborted changes ---------------- */

/*
 * One aborted change.  A table that is gone, or has got other storage, needs
 * nothing.
 */
static UndoScanResult
UndoTempRestoreRecord(const UndoRecordHeader *hdr, void *arg)
{
	TempTableKey key;
	TempTable  *entry;
	Relation	rel;

	MemSet(&key, 0, sizeof(key));
	key.spc = hdr->ur_spc;
	key.rel = hdr->ur_rel;
	entry = temp_tables ?
		hash_search(temp_tables, &key, HASH_FIND, NULL) : NULL;
	if (entry == NULL)
		return UNDO_SCAN_DONE;

	if (!ConditionalLockRelationOid(entry->relid, RowExclusiveLock))
		return UNDO_SCAN_LATER;
	rel = try_relation_open(entry->relid, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(entry->relid, RowExclusiveLock);
		return UNDO_SCAN_DONE;
	}
	if (LocatorRel(RelLocator(rel)) == hdr->ur_rel &&
		LocatorSpc(RelLocator(rel)) == hdr->ur_spc &&
		RelationIsInplace(rel) &&
		hdr->ur_block < RelationGetNumberOfBlocks(rel))
		undo_rows->restore(rel, hdr->ur_block, hdr->ur_off);
	relation_close(rel, RowExclusiveLock);
	return UNDO_SCAN_DONE;
}

static bool
UndoTempRestore(void)
{
	PGAlignedBlock copy;
	bool		complete = true;

	for (BlockNumber blk = 1; blk < temp_fill; blk++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(&temp_rd, blk);
		memcpy(copy.data, BufferGetPage(buffer), BLCKSZ);
		ReleaseBuffer(buffer);
		if (UndoScanPage((Page) copy.data, blk, UndoTempRestoreRecord,
						 NULL) == UNDO_SCAN_LATER)
			complete = false;
	}
	return complete;
}

/* ---------------- ends of transactions ---------------- */

void
UndoTempPreCommit(void)
{
	if (temp_aborted && temp_created && UndoTempRestore())
	{
		temp_aborted = false;
		temp_restored = true;
	}
}

void
UndoTempAtCommit(void)
{
	temp_written_level = 0;
	temp_restored = false;
	if (temp_aborted || temp_fill == 1)
		return;
	temp_fill = 1;
	UndoTempForgetTables();
}

void
UndoTempAtAbort(void)
{
	if (temp_written_level > 0 || temp_restored)
		temp_aborted = true;
	temp_written_level = 0;
	temp_restored = false;
}

void
UndoTempSubCommit(int level)
{
	temp_written_level = Min(temp_written_level, level - 1);
}

void
UndoTempSubAbort(int level)
{
	if (temp_written_level >= level)
		temp_aborted = true;
	temp_written_level = Min(temp_written_level, level - 1);
}

int64
UndoTempSizeBytes(void)
{
	return temp_created ? (int64) temp_nblocks * BLCKSZ : 0;
}

int64
UndoTempUsedBytes(void)
{
	return temp_created ? (int64) (temp_fill - 1) * BLCKSZ : 0;
}
