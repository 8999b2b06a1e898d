/*-------------------------------------------------------------------------
 *
 * other_method.h
 *	  In-place updates of columns under stock GIN, hash and GiST indexes; see
 *	  other_method.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OTHER_METHOD_H
#define INPLACE_OTHER_METHOD_H

#include "inplace.h"

#include "index/entry.h"
#include "index/other_entry.h"
#include "page/tuple.h"

/* setting inplace.update_under_other_indexes */
extern bool inplace_update_under_others;

/* setting inplace.former_keys_limit */
extern int	inplace_former_keys_limit;

extern bool inplace_is_other_method(Oid relam);
extern bool inplace_other_took(Relation index);
extern bool inplace_other_keys_are_known(Relation index);
extern bool inplace_other_takes(Relation index);
extern bool inplace_other_leaves_place(const InplaceTupleHeaderData *base,
									   TransactionId xid, const ItemPointerData *tid);
extern bool inplace_other_has_own_code(Relation index);
extern KeyChange inplace_other_key_change(Relation table, Relation index,
										  InplaceTupleHeader old,
										  TupleTableSlot *slot, ItemPointer tid,
										  bool payload);
extern EntrySought inplace_other_seek_entry(Relation table, Relation index,
											ItemPointer tid, TupleTableSlot *slot,
											EntryPlace *place);
extern void inplace_other_insert(Relation table, Relation index,
								 ItemPointer tid, InplaceTupleHeader old,
								 TupleTableSlot *slot, bool one_entry,
								 const EntryPlace *place);

#endif							/* INPLACE_OTHER_METHOD_H */
