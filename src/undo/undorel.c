/*-------------------------------------------------------------------------
 *
 * undorel.c
 *	  Finding the undo relations, and access to them without opening them.
 *
 * An update must not pay for opening a second relation, and it asks for undo
 * while it holds a data page's lock, when no heavyweight lock may be waited
 * for.  So each backend keeps, for each kind, an imitation of a relcache
 * entry that is good enough for the buffer manager, made from the pg_class
 * row.  After a relcache invalidation of that relation it is looked up again,
 * but never with a page locked.
 *
 * No lock on the undo relation protects its users.  What does is that it
 * cannot be dropped but with the extension, which drops the access method
 * and so needs every inplace table's exclusive lock first.  Hence a backend that
 * has a table open may go by what it knew when it opened the table.  After the
 * extension has been dropped and created again there are only new tables, for
 * which the backend has to make relcache entries: then it looks (UndoRelRenew).
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_tablespace.h"
#include "miscadmin.h"
#include "own.h"
#include "undo/record.h"
#include "undo/space.h"
#include "undo/undo.h"
#include "undo/undorel.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct UndoRel
{
	bool		valid;
	Oid			relid;
	RelationData rd;
	FormData_pg_class form;
} UndoRel;

/* static, since smgr may keep pointers into it for the backend's life */
static UndoRel undo_rels[UNDO_SHARED_KINDS];
static bool inval_registered = false;

static void
UndoRelInvalidate(Datum arg, Oid relid)
{
	for (int i = 0; i < UNDO_SHARED_KINDS; i++)
		if (!OidIsValid(relid) || undo_rels[i].relid == relid)
			undo_rels[i].valid = false;
}

static char
persistence_of(UndoKind kind)
{
	Assert(kind < UNDO_SHARED_KINDS);
	return kind == UNDO_LOGGED ? RELPERSISTENCE_PERMANENT :
		RELPERSISTENCE_UNLOGGED;
}

/*
 * OID of the undo relation of a shared kind, or InvalidOid.
 */
Oid
UndoRelid(UndoKind kind)
{
	return InplaceUndoRelation(persistence_of(kind));
}

/*
 * Make *rd an entry that the buffer manager takes for a relation with that
 * storage.  It is never in the relcache, not counted and not locked.
 */
Relation
UndoRelInit(RelationData *rd, FormData_pg_class *form,
			const RelFileLocator *locator, char persistence)
{
	memset(rd, 0, sizeof(RelationData));
	memset(form, 0, sizeof(FormData_pg_class));
	RelLocator(rd) = *locator;
	rd->rd_backend = InvalidBackendId;
	rd->rd_refcnt = 1;
	rd->rd_isvalid = true;
	rd->rd_rel = form;
	form->relkind = RELKIND_RELATION;
	form->relpersistence = persistence;
	form->relfilenode = LocatorRel(*locator);
	if (persistence == RELPERSISTENCE_TEMP)
	{
		rd->rd_backend = MyTempBackend;
		rd->rd_islocaltemp = true;
		namestrcpy(&form->relname, "inplace temporary undo");
	}
	return rd;
}

static bool
UndoRelLookup(UndoRel *ur, UndoKind kind)
{
	HeapTuple	tuple;
	Form_pg_class form;
	RelFileLocator locator;
	Oid			relid;

	if (!inval_registered)
	{
		CacheRegisterRelcacheCallback(UndoRelInvalidate, (Datum) 0);
		inval_registered = true;
	}

	relid = ur->relid;
	if (!InplaceStillUndoRelation(relid, persistence_of(kind)))
		relid = UndoRelid(kind);
	if (!OidIsValid(relid))
		return false;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return false;

	form = (Form_pg_class) GETSTRUCT(tuple);
	LocatorSpc(locator) = OidIsValid(form->reltablespace) ?
		form->reltablespace : MyDatabaseTableSpace;
	LocatorDb(locator) = MyDatabaseId;
	LocatorRel(locator) = form->relfilenode;

	if (ur->relid != relid ||
		!RelFileLocatorEquals(RelLocator(&ur->rd), locator))
	{
		if (ur->rd.rd_smgr != NULL)
			RelationCloseSmgr(&ur->rd);
		UndoRelInit(&ur->rd, &ur->form, &locator, form->relpersistence);
		namestrcpy(&ur->form.relname, NameStr(form->relname));
		ur->rd.rd_id = relid;
		ur->relid = relid;
	}
	ReleaseSysCache(tuple);

	/* last, as the lookups may have taken in an invalidation */
	ur->valid = true;
	return true;
}

/*
 * The undo relation of a shared kind in this database.
 */
Relation
UndoRelGet(UndoKind kind, bool missing_ok)
{
	UndoRel    *ur = &undo_rels[kind];

	Assert(kind < UNDO_SHARED_KINDS);

	/* a locked page holds interrupts off */
	if (unlikely(!ur->valid) &&
		!(InterruptHoldoffCount > 0 && OidIsValid(ur->relid)) &&
		!UndoRelLookup(ur, kind))
	{
		if (missing_ok)
			return NULL;
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s.%s\" does not exist",
						INPLACE_SCHEMA,
						kind == UNDO_LOGGED ?
						UNDO_LOGGED_NAME : UNDO_UNLOGGED_NAME),
				 errhint("It belongs to the extension inplace.")));
	}
	return &ur->rd;
}

/*
 * A relcache entry of an inplace table is being made, from the catalog.  So looking at
 * the catalog here adds no wait, even with a page locked: code of an operator class may
 * open a table with an index page locked.  It is not done while WAL is decoded, since
 * what the catalog said then is of no use now.
 */
void
UndoRelRenew(void)
{
	if (!inplace_preloaded || !IsTransactionState() || HistoricSnapshotActive())
		return;
	for (int kind = 0; kind < UNDO_SHARED_KINDS; kind++)
		if (!undo_rels[kind].valid)
			(void) UndoRelLookup(&undo_rels[kind], (UndoKind) kind);
}

/* UndoRenewMetaPage has done something that is not in the log yet */
static bool meta_renewed = false;

/*
 * The undo of unlogged tables after a crash is a copy of its init fork.  In a
 * database made by CREATE DATABASE with wal_level = minimal the server may have lost
 * what was in that.  It had nothing but the meta page, so that is written again.
 *
 * The space is locked, and maybe a page; so the report comes later.
 */
void
UndoRenewMetaPage(Relation undorel)
{
	Buffer		buffer = ReadBuffer(undorel, UNDO_META_BLOCK);

	Assert(undorel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (PageIsNew(BufferGetPage(buffer)))
	{
		UndoPageInit(BufferGetPage(buffer));
		MarkBufferDirty(buffer);
		meta_renewed = true;
	}
	UnlockReleaseBuffer(buffer);
}

void
UndoReportRenewed(void)
{
	if (likely(!meta_renewed))
		return;
	meta_renewed = false;
	ereport(LOG,
			(errmsg("block %u of relation \"%s.%s\" was empty, and has been begun anew",
					UNDO_META_BLOCK, INPLACE_SCHEMA, UNDO_UNLOGGED_NAME),
			 errdetail("It is of use to unlogged tables only, which are empty after a crash.")));
}

/*
 * Is this undo of ours, in a format that we read?
 */
void
UndoCheckMetaPage(Relation undorel)
{
	Buffer		buffer = ReadBuffer(undorel, UNDO_META_BLOCK);
	Page		page;
	uint32		magic = 0;
	uint32		version = 0;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) &&
		PageGetSpecialSize(page) == MAXALIGN(sizeof(UndoPageSpecial)))
	{
		magic = UndoPageGetSpecial(page)->magic;
		version = UndoPageGetSpecial(page)->version;
	}
	UnlockReleaseBuffer(buffer);

	if (magic != UNDO_PAGE_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("block %u of relation \"%s.%s\" is not an undo page of inplace",
						UNDO_META_BLOCK, INPLACE_SCHEMA,
						RelationGetRelationName(undorel))));
	if (version < INPLACE_FORMAT_VERSION ||
		((version - INPLACE_FORMAT_VERSION) & ~UNDO_VERSION_BITS) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("undo of this database has format version %u, this version of inplace reads versions %u to %u",
						version, INPLACE_FORMAT_VERSION,
						INPLACE_FORMAT_VERSION + UNDO_VERSION_BITS),
				 errhint("Dump the database with the build of inplace that wrote it, and restore the dump.")));
}

/* the undo relations of which this process knows that their meta page says so */
static RelFileLocator notes_evictions[UNDO_SHARED_KINDS];
static RelFileLocator notes_large_values[UNDO_SHARED_KINDS];

/*
 * A library that does not know of it is to refuse the database.  It stays so, for one
 * that has had none yet is read by both.  The record is the server's, an image of the page.
 * Nothing is locked.
 */
static void
note_in_meta_page(UndoKind kind, uint32 bit, RelFileLocator *noted)
{
	Relation	undorel = UndoRelGet(kind, false);
	Buffer		buffer;
	Page		page;

	AssertNoPageLock();
	if (RelFileLocatorEquals(*noted, RelLocator(undorel)))
		return;
	buffer = ReadBuffer(undorel, UNDO_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) &&
		!UndoVersionHas(UndoPageGetSpecial(page)->version, bit))
	{
		START_CRIT_SECTION();
		UndoVersionAdd(&UndoPageGetSpecial(page)->version, bit);
		MarkBufferDirty(buffer);
		if (kind == UNDO_LOGGED)
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(buffer);
	*noted = RelLocator(undorel);
}

bool
UndoNotesEvictions(UndoKind kind)
{
	return kind < UNDO_SHARED_KINDS &&
		RelFileLocatorEquals(notes_evictions[kind],
							 RelLocator(UndoRelGet(kind, false)));
}

/*
 * There are going to be evicted rows.
 */
void
UndoNoteEvictions(UndoKind kind)
{
	note_in_meta_page(kind, UNDO_HAS_EVICTED, &notes_evictions[kind]);
}

/*
 * There are going to be values in a TOAST table of ours.
 */
void
UndoNoteLargeValues(UndoKind kind)
{
	note_in_meta_page(kind, UNDO_HAS_LARGE_VALUES, &notes_large_values[kind]);
}
