/*-------------------------------------------------------------------------
 *
 * other_method.c
 *	  Updates in place of columns under stock GIN, hash and GiST indexes, as CREATE
 *	  INDEX makes them.
 *
 * Such an index takes an update as an inplace_btree does (index.h): it gets entries
 * for the new value at the row's TID, and those of the former value stay.  The row is
 * IP_STALE from then on.  The index itself knows nothing of it.
 *
 * Reading.  In bitmap scans, the only ones that GIN has, the table has the rows of a page
 * rechecked if there is one among them that is IP_STALE (scan/bitmap.c).  A bitmap has a
 * TID once, and the recheck is of the version that the snapshot sees.  For other scans
 * see other_fetch.c.
 *
 * Inserting.  The method's own aminsert does it, but for GIN, where all keys go straight into
 * the tree, if they are not there (gin_entry.c).
 * For a hash or GiST index it is looked whether the entry is there (gist_entry.c,
 * hash_entry.c).  Equal values need not be identical, nor are they compared.  Where that takes
 * too long the row moves instead.
 *
 * Removing.  VACUUM sweeps these indexes as it sweeps inplace_btree ones: sweep_gin.c,
 * sweep_bulk.c.  That is so whatever the setting says, if the index is marked (other_mark.c).
 *
 * What VACUUM deletes is bounded by how often rows change: entries of a row that is changed
 * while it is at work stay.  So a row with former keys moves by chance, when it has been
 * updated as often as the setting former_keys_limit says.  Its old TID goes with all of its entries.
 *
 * Rebuilding.  An index of these methods gets the keys of newest versions only.  So it is
 * kept from snapshots that may need others (young_index.c).
 *
 * Which indexes.  Those that are valid, and whose expressions and predicate are
 * known to come out the same in every session (key.c).  The code of an operator class
 * may be anybody's: it runs where the server runs it, and in VACUUM with no page
 * locked.  Those of exclusion constraints are left to the executor.  GiST indexes have
 * to be of classes in which an entry is found again (gist_takes).
 *
 * In SP-GiST an entry has only that part of its key which its place in the tree does not tell.  So
 * VACUUM, which is shown the entry, could not see whether it is stale.
 *
 * GIN puts together what a row has from all entries of its TID, those of former keys among
 * them.  It must not take the row for one that does not fit because of a key too many.
 * So it has to be known in which queries of the operator class that may be (gin_query.c).  It
 * is known of those for arrays, jsonb and text search, and of those of btree_gin, hstore,
 * intarray and pg_trgm.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include "access/genam.h"
#include "access/gin.h"
#include "access/hash.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/dependency.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "index/gin_entry.h"
#include "index/gin_query.h"
#include "index/insert_info.h"
#include "index/key.h"
#include "index/other_entry.h"
#include "index/other_method.h"
#include "page/compare.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

bool		inplace_update_under_others = true;
int			inplace_former_keys_limit = 24;

bool
inplace_is_other_method(Oid relam)
{
	return relam == GIN_AM_OID || relam == HASH_AM_OID || relam == GIST_AM_OID;
}

/*
 * May it have taken some, when it was valid?  (Another version of this library may have known of
 * functions what this one does not.)
 */
bool
inplace_other_took(Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!inplace_is_other_method(index->rd_rel->relam) || form->indisexclusion)
		return false;
	return !inplace_key_is_computed(index) || inplace_index_key(index)->readable;
}

/*
 * Does the index's key come out as it did when it was inserted?  If not, nothing is deleted
 * from it.
 */
bool
inplace_other_keys_are_known(Relation index)
{
	return !inplace_key_is_computed(index) || inplace_index_key(index)->known;
}

static bool
is_of_extension(Oid class, Oid object, const char *const *names, int n)
{
	Oid			extension = getExtensionOfObject(class, object);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	for (int i = 0; name != NULL && i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * Does it come with the server, or with an extension whose code changes no tables?
 */
static bool
is_known_object(Oid class, Oid object)
{
	static const char *const extensions[] = {
		"btree_gin", "btree_gist", "hstore", "intarray", "ltree", "pg_trgm", "postgis"
	};

	return object < FirstNormalObjectId ||
		is_of_extension(class, object, extensions, lengthof(extensions));
}

/*
 * The search for an entry (gist_entry.c) relies on it that what is in a downlink already does
 * not change it, byte for byte or as the class compares.  That is known of these classes, and not
 * of others: seg's takes one or the other of two ends that are equal, and yet tells them apart.
 */
static bool
gist_takes(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (!is_known_object(OperatorFamilyRelationId, index->rd_opfamily[i]))
			return false;
	return true;
}

static bool
gin_takes(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (inplace_gin_class(index, i + 1) == GIN_UNKNOWN)
			return false;
	return true;
}

bool
inplace_other_takes(Relation index)
{
	Form_pg_index form = index->rd_index;

	return inplace_update_under_others &&
		form->indisready && form->indisvalid && form->indislive &&
		inplace_other_took(index) &&
		inplace_other_keys_are_known(index) &&
		(index->rd_rel->relam != GIST_AM_OID || gist_takes(index)) &&
		(index->rd_rel->relam != GIN_AM_OID || gin_takes(index));
}

/*
 * Is the type one of those?  Classes of arrays and ranges run code of what these are made
 * of.
 */
static bool
is_own_type(Oid type)
{
	Oid			element;

	type = getBaseType(type);
	if (!is_known_object(TypeRelationId, type))
		return false;
	element = get_element_type(type);
	return !OidIsValid(element) || is_own_type(element);
}

/* is what an insertion runs known to change no tables? */
bool
inplace_other_has_own_code(Relation index)
{
	TupleDesc	desc = RelationGetDescr(index);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		AttrNumber	column = index->rd_index->indkey.values[i];
		Oid			type = att->atttypid;

		if (!is_known_object(OperatorFamilyRelationId, index->rd_opfamily[i]) ||
			!is_known_object(TypeRelationId, index->rd_opcintype[i]) ||
			!is_own_type(type) || (column != 0 && !is_own_type(get_atttype(index->rd_index->indrelid, column))))
			return false;
	}
	return true;
}

/* tags begin again after 125 */
#define TAGS_COUNTED	100

/*
 * Is a row that is about to get one more key in such an index to be moved instead?  "base" is
 * the header of the version that is replaced.  The answer stays the same for the
 * transaction.  The number of keys is known to nobody.  The tag tells how often the row has been
 * updated where it is, up to 125 times; one that has not been so often enough stays.  Of the others
 * VACUUM may have swept some, so it is left to chance.
 */
bool
inplace_other_leaves_place(const InplaceTupleHeaderData *base, TransactionId xid,
						   const ItemPointerData *tid)
{
	uint32		hash;

	if (!(base->t_infomask & IP_STALE) || HdrIsSwept(base) ||
		inplace_former_keys_limit == 0 ||
		!TagIsPast(base->t_tag, Min(inplace_former_keys_limit, TAGS_COUNTED)))
		return false;
	hash = hash_combine(murmurhash32(xid), murmurhash32(ItemPointerGetBlockNumberNoCheck(tid)));
	hash = hash_combine(hash, murmurhash32(ItemPointerGetOffsetNumberNoCheck(tid)));
	return murmurhash32(hash) % inplace_former_keys_limit == 0;
}

/*
 * What does the update of a row from the version "old" to the one in the slot mean
 * to an index with expressions or a predicate?  "payload": it changes INCLUDE columns.  No page is
 * locked.
 */
KeyChange
inplace_other_key_change(Relation table, Relation index, InplaceTupleHeader old,
						 TupleTableSlot *slot, ItemPointer tid, bool payload)
{
	const IndexKey *key = inplace_index_key(index);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Datum		old_values[INDEX_MAX_KEYS];
	bool		old_isnull[INDEX_MAX_KEYS];
	KeyOf		had = inplace_key_of_tuple(table, index, old, tid, old_values, old_isnull);
	KeyOf		has = inplace_key_of_slot(index, slot, values, isnull);

	if (had == KEY_UNKNOWN || has == KEY_UNKNOWN)
		elog(ERROR, "index \"%s\" does not take in-place updates",
			 RelationGetRelationName(index));
	if (has == KEY_NONE)
		return had == KEY_NONE ? KEY_SAME : KEY_LEFT;
	if (had == KEY_NONE || payload)
		return KEY_NEW;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		if (isnull[i] != old_isnull[i] ||
			(!isnull[i] && !inplace_same_value(values[i], old_values[i],
											   key->byval[i], key->len[i])))
			return KEY_NEW;
	return KEY_SAME;
}

/* INCLUDE columns of a version that is no slot's */
static void
get_payload(Relation table, Relation index, InplaceTupleHeader tup,
			const ItemPointerData *tid, EntryValues *v)
{
	for (int i = IndexRelationGetNumberOfKeyAttributes(index);
		 i < IndexRelationGetNumberOfAttributes(index); i++)
		v->values[i] = inplace_getattr(RelationGetDescr(table), tup,
									   index->rd_index->indkey.values[i],
									   &v->isnull[i], CurrentMemoryContext, tid);
}

/*
 * Is the entry that of the version "old", which has all that the row has in a hash or GiST
 * index?  ENTRY_NOT_SEEN: that cannot be told.
 */
static EntrySought
compare_entry(Relation table, Relation index, ItemPointer tid, InplaceTupleHeader old,
			  EntryValues *v)
{
	EntryValues had;
	bool		same;

	switch (inplace_key_of_tuple(table, index, old, tid, had.values, had.isnull))
	{
		case KEY_NONE:
			return ENTRY_MISSING;
		case KEY_FOUND:
			if (index->rd_rel->relam == HASH_AM_OID)
				same = !had.isnull[0] &&
					_hash_datum2hashkey(index, had.values[0]) ==
					_hash_datum2hashkey(index, v->values[0]);
			else
			{
				get_payload(table, index, old, tid, &had);
				same = inplace_gist_same_entry(index, v, &had);
			}
			return same ? ENTRY_THERE : ENTRY_MISSING;
		case KEY_UNKNOWN:
			break;
	}
	return ENTRY_NOT_SEEN;
}

/*
 * An update is about to give the row, which may have several entries, the version in the slot.
 * Has it that entry already?  If that is not found out in time (ENTRY_NOT_SEEN), the row is to
 * move.  ENTRY_THERE may mean that it is to have none.  "place": see gist_entry.c.
 * No page is locked; memory is the caller's to free.
 */
EntrySought
inplace_other_seek_entry(Relation table, Relation index, ItemPointer tid,
						 TupleTableSlot *slot, EntryPlace *place)
{
	EntryValues v;

	place->blk = InvalidBlockNumber;
	if (inplace_key_of_slot(index, slot, v.values, v.isnull) != KEY_FOUND ||
		(index->rd_rel->relam == HASH_AM_OID && v.isnull[0]))
		return ENTRY_THERE;
	inplace_payload_of_slot(index, slot, v.values, v.isnull);
	if (index->rd_rel->relam == HASH_AM_OID)
		return inplace_hash_find_entry(index, v.values[0], tid, MAX_PAGES_TO_VISIT);
	return inplace_gist_find_entry(index, &v, tid, MAX_PAGES_TO_VISIT, place);
}

/*
 * The entries of the version in the slot, which has replaced "old", or NULL if that is
 * not sure to have entries.  "one_entry": the row has no other in the index; "place": that of
 * the slot is not there, and may be put there; NULL: that is not known.  No page is locked; memory
 * is the caller's to free.
 */
void
inplace_other_insert(Relation table, Relation index, ItemPointer tid,
					 InplaceTupleHeader old, TupleTableSlot *slot, bool one_entry,
					 const EntryPlace *place)
{
	static const EntryPlace no_place = {InvalidBlockNumber, InvalidXLogRecPtr};
	EntryValues v;
	EntryValues had;
	EntrySought sought = place != NULL ? ENTRY_MISSING : ENTRY_NOT_SEEN;

	/* has it left the predicate? */
	if (inplace_key_of_slot(index, slot, v.values, v.isnull) != KEY_FOUND)
		return;
	if (index->rd_rel->relam == GIN_AM_OID)
	{
		bool		found = old != NULL &&
			inplace_key_of_tuple(table, index, old, tid, had.values,
								 had.isnull) == KEY_FOUND;

		inplace_gin_insert(index, &v, found ? &had : NULL, tid);
		return;
	}
	if (index->rd_rel->relam == HASH_AM_OID && v.isnull[0])
		return;
	inplace_payload_of_slot(index, slot, v.values, v.isnull);
	if (one_entry && sought == ENTRY_NOT_SEEN)
		sought = compare_entry(table, index, tid, old, &v);
	if (sought == ENTRY_NOT_SEEN && index->rd_rel->relam == HASH_AM_OID)
		sought = inplace_hash_find_entry(index, v.values[0], tid, ALL_PAGES);
	if (sought == ENTRY_MISSING && place == NULL)
		place = &no_place;
	if (sought == ENTRY_THERE ||
		(index->rd_rel->relam == GIST_AM_OID &&
		 inplace_gist_insert(table, index, &v, tid, place)))
		return;
	index_insert(index, v.values, v.isnull, tid, table, UNIQUE_CHECK_NO, false,
				 inplace_insert_info(index));
}
