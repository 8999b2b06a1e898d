/*-------------------------------------------------------------------------
 *
 * whose_file.c
 *	  Is a table's file of its access method?  See ddl/whose_page.c and
 *	  ddl/after_upgrade.c.
 *
 * That is looked for once for each file and method in a session, for a file changes
 * hands only with a new entry in the catalog, or while the server is down.
 *
 * A TOAST table that pg_upgrade has made is ours at first, whatever file it gets.  Until
 * it has been found out whose that is (ddl/after_upgrade.c) it has a mark, a comment,
 * and no value is fetched from it, put there or taken away, nor does VACUUM do anything.
 * So no row of ours comes into a file of heap's.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/relation.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "commands/comment.h"
#include "page/page.h"
#include "page/whose_file.h"
#include "storage/bufmgr.h"
#include "storage/checksum.h"
#include "storage/smgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* a file under a method; without padding, for it is hashed as bytes */
typedef struct SeenFile
{
	Oid			spc;
	Oid			db;
	Oid			rel;
	Oid			relam;
	Oid			toast;			/* its TOAST table, looked at as well; of a
								 * TOAST table itself: values may be put there */
	uint32		temporary;
} SeenFile;

/* after that many the table of them is emptied */
#define MAX_SEEN_FILES	10000

/* how far to look for a page with rows: what is behind tells when it is read */
#define MAX_BLANK_PAGES	16

/* so many pages with rows are asked whose they are */
#define MAX_PAGES_ASKED	16

static HTAB *seen_files = NULL;

/*
 * A copy of a page as it is in shared buffers, or else on disk: a page that is
 * damaged must not fail those who do not need it, nor stay in a buffer.  Is it from disk,
 * and has a checksum, therefore?
 */
static bool
copy_page(Relation rel, BlockNumber blk, Page copy)
{
	Buffer		recent = PrefetchBuffer(rel, MAIN_FORKNUM, blk).recent_buffer;

	if (BufferIsValid(recent) &&
		ReadRecentBuffer(RelLocator(rel), MAIN_FORKNUM, blk, recent))
	{
		LockBuffer(recent, BUFFER_LOCK_SHARE);
		memcpy(copy, BufferGetPage(recent), BLCKSZ);
		UnlockReleaseBuffer(recent);
		return false;
	}
	smgrread(RelationGetSmgr(rel), MAIN_FORKNUM, blk, copy);
	return true;
}

static bool
has_sane_bounds(Page page)
{
	PageHeader	phdr = (PageHeader) page;

	return phdr->pd_lower >= SizeOfPageHeaderData &&
		phdr->pd_lower <= phdr->pd_upper &&
		phdr->pd_upper <= phdr->pd_special && phdr->pd_special == BLCKSZ;
}

/*
 * Can the page be one of ours or of heap's, undamaged?
 */
static bool
is_sane(Page page, BlockNumber blk, bool from_disk)
{
	PageHeader	phdr = (PageHeader) page;

	return has_sane_bounds(page) &&
		(RowPageIsMarked(page) || phdr->pd_lower == RowPageLinesEnd(page)) &&
		(phdr->pd_flags & ~PD_VALID_FLAG_BITS) == 0 &&
		PageGetPageSize(page) == BLCKSZ &&
		PageGetPageLayoutVersion(page) == PG_PAGE_LAYOUT_VERSION &&
		(!from_disk || !DataChecksumsEnabled() ||
		 pg_checksum_page((char *) page, blk) == phdr->pd_checksum);
}

/*
 * Whose rows are in the file?  The first pages that have any tell; one alone may be
 * damaged.  A page of ours without rows says that it is ours.
 */
RowsOwner
inplace_whose_rows(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	int			nours = 0;
	int			nheaps = 0;
	bool		ours_without = false;
	bool		damaged = false;

	for (BlockNumber blk = 0; blk < nblocks && nours + nheaps < MAX_PAGES_ASKED; blk++)
	{
		PGIOAlignedBlock copy;
		Page		page = (Page) copy.data;
		bool		from_disk;

		CHECK_FOR_INTERRUPTS();
		from_disk = copy_page(rel, blk, page);
		if (PageIsNew(page))
			continue;
		if (!is_sane(page, blk, from_disk))
			damaged = true;
		else if (inplace_page_is_blank(page))
			continue;
		else if (PageGetMaxOffsetNumber(page) == 0)
			ours_without |= RowPageIsMarked(page);
		else if (RowPageIsMarked(page))
			nours++;
		else
			nheaps++;
	}
	if (nheaps > 0)
		return nours > 0 || ours_without ? ROWS_UNSURE : ROWS_HEAPS;
	if (nours > 0 || ours_without)
		return ROWS_OURS;
	return damaged ? ROWS_UNSURE : ROWS_NOBODYS;
}

/* ---------------- made by pg_upgrade ---------------- */

#define MARK_OF_UPGRADE	"inplace: inplace.after_upgrade() is to find out whose file this is"

void
inplace_mark_of_upgrade(Oid toastrelid, bool set)
{
	if (set)
		CreateComments(toastrelid, RelationRelationId, 0, MARK_OF_UPGRADE);
	else
		DeleteComments(toastrelid, RelationRelationId, 0);
}

bool
inplace_has_mark_of_upgrade(Oid toastrelid)
{
	char	   *comment = GetComment(toastrelid, RelationRelationId, 0);
	bool		result = comment != NULL && strcmp(comment, MARK_OF_UPGRADE) == 0;

	if (comment != NULL)
		pfree(comment);
	return result;
}

/* ---------------- what a session has looked at ---------------- */

static void
make_seen_files(void)
{
	HASHCTL		ctl;

	if (seen_files != NULL)
		hash_destroy(seen_files);
	seen_files = NULL;
	ctl.keysize = sizeof(SeenFile);
	ctl.entrysize = sizeof(SeenFile);
	ctl.hcxt = TopMemoryContext;
	seen_files = hash_create("inplace files seen", 256, &ctl,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
wrong_page(Relation rel, BlockNumber blk, const char *owner, const char *am)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("page in block %u of relation \"%s\" is one of %s table",
					blk, RelationGetRelationName(rel), owner),
			 errdetail("The relation's access method is %s.", am),
			 rel->rd_rel->relkind == RELKIND_TOASTVALUE ?
			 errhint("After pg_upgrade, call inplace.after_upgrade().") :
			 errhint("A program that knows only heap has given it another table's file.")));
}

/*
 * Look at the first page that anything is on.  One that may be nobody's is left
 * to those who read it.
 */
static void
check_first_page(Relation rel)
{
	bool		is_heap = rel->rd_rel->relam == HEAP_TABLE_AM_OID;
	BlockNumber nblocks = Min(RelationGetNumberOfBlocks(rel), MAX_BLANK_PAGES);

	for (BlockNumber blk = 0; blk < nblocks; blk++)
	{
		PGIOAlignedBlock copy;
		Page		page = (Page) copy.data;
		PageHeader	phdr = (PageHeader) page;

		CHECK_FOR_INTERRUPTS();
		(void) copy_page(rel, blk, page);
		if (inplace_page_is_blank(page))
			continue;
		if (!has_sane_bounds(page))
			return;
		if (is_heap && RowPageIsMarked(page))
			wrong_page(rel, blk, "an inplace", "heap");
		if (!is_heap && phdr->pd_lower == RowPageLinesEnd(page))
			wrong_page(rel, blk, "a heap", "inplace");
		return;
	}
}

static bool
is_seen(const SeenFile *key)
{
	return seen_files != NULL && hash_search(seen_files, key, HASH_FIND, NULL) != NULL;
}

static void
note_seen(const SeenFile *key)
{
	if (seen_files == NULL || hash_get_num_entries(seen_files) >= MAX_SEEN_FILES)
		make_seen_files();
	(void) hash_search(seen_files, key, HASH_ENTER, NULL);
}

/*
 * Is it a table of heap's, or of ours, that can be looked at?  A standby
 * has no file of an unlogged one, and the server says what cannot be done there.
 */
static bool
can_be_looked_at(Relation rel, SeenFile *key)
{
	Form_pg_class form = rel->rd_rel;

	if ((form->relkind != RELKIND_RELATION && form->relkind != RELKIND_MATVIEW &&
		 form->relkind != RELKIND_TOASTVALUE) ||
		RelationGetRelid(rel) < FirstNormalObjectId ||
		RELATION_IS_OTHER_TEMP(rel) ||
		(form->relpersistence != RELPERSISTENCE_PERMANENT && RecoveryInProgress()) ||
		(form->relam != HEAP_TABLE_AM_OID && !RelationIsInplace(rel)))
		return false;

	key->spc = LocatorSpc(RelLocator(rel));
	key->db = LocatorDb(RelLocator(rel));
	key->rel = LocatorRel(RelLocator(rel));
	key->relam = form->relam;
	key->toast = form->reltoastrelid;
	key->temporary = form->relpersistence == RELPERSISTENCE_TEMP;
	return true;
}

/*
 * An error if the table's file is not of its access method, or, of one of ours, that of
 * its heap TOAST table.  (One of ours tells by itself.)  The table is locked.  False if it
 * has been looked at before.
 */
bool
inplace_check_whose_file(Relation rel)
{
	SeenFile	key;

	if (!can_be_looked_at(rel, &key) || is_seen(&key))
		return false;
	check_first_page(rel);
	if (OidIsValid(key.toast) && RelationIsInplace(rel))
	{
		Relation	toastrel = try_relation_open(key.toast, AccessShareLock);

		if (toastrel != NULL)
		{
			if (!RelationIsInplace(toastrel))
				(void) inplace_check_whose_file(toastrel);
			relation_close(toastrel, AccessShareLock);
		}
	}
	note_seen(&key);
	return true;
}

/*
 * The same for a TOAST table that values are fetched from, put into or taken from.  (That
 * is asked again and again: an answer that was right is noted.)
 */
void
inplace_check_toast_table(Relation toastrel)
{
	SeenFile	key;

	if (!can_be_looked_at(toastrel, &key))
		return;
	key.toast = RelationGetRelid(toastrel);
	if (is_seen(&key))
		return;
	if (RelationIsInplace(toastrel) &&
		inplace_has_mark_of_upgrade(RelationGetRelid(toastrel)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("TOAST table \"%s\" has not been looked at since pg_upgrade",
						RelationGetRelationName(toastrel)),
				 errhint("Call inplace.after_upgrade().")));
	check_first_page(toastrel);
	note_seen(&key);
}
