/*-------------------------------------------------------------------------
 *
 * own.h
 *	  What belongs to the extension in this database: see own.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_OWN_H
#define INPLACE_OWN_H

#include "inplace.h"

typedef enum OwnState
{
	OWN_UNKNOWN,				/* look again */
	OWN_ABSENT,
	OWN_PRESENT
} OwnState;

extern OwnState inplace_own_state;

extern bool InplaceLookHere(void);

/*
 * Is the extension installed in this database?  Each of the server's hooks that we
 * take asks this, and if not does nothing else.  A hook asks first whether it is
 * called for something of ours at all: to look this up may take catalogs, and
 * some hooks are called while a name is being looked up.
 */
static inline bool
InplaceInstalledHere(void)
{
	if (likely(inplace_own_state != OWN_UNKNOWN))
		return inplace_own_state == OWN_PRESENT;
	return InplaceLookHere();
}

extern bool InplaceInstalledNow(void);

/* each InvalidOid where the extension is not installed */
extern Oid	InplaceExtension(void);
extern Oid	InplaceSchema(void);
extern Oid	InplaceTableAm(void);
extern Oid	InplaceUndoAm(void);
extern Oid	InplaceBtreeAm(void);

/* ... likewise, of another extension */
extern Oid	InplacePgRepack(void);

extern Oid	InplaceUndoRelation(char relpersistence);
extern bool InplaceStillUndoRelation(Oid relid, char relpersistence);
extern bool InplaceIsUndoRelation(Oid relid);
extern bool InplaceOwns(Oid classid, Oid objectid);

/* the method of any table or index */
extern Oid	inplace_relation_am(Oid relid);

/* AlterExtensionContentsStmt, which this header need not know */
struct AlterExtensionContentsStmt;
extern void InplaceKeepMembers(struct AlterExtensionContentsStmt *stmt);

#endif							/* INPLACE_OWN_H */
