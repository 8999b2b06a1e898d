/*-------------------------------------------------------------------------
 *
 * undorel.h
 *	  The relations that undo is in; see undorel.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_UNDOREL_H
#define INPLACE_UNDOREL_H

#include "inplace.h"

#include "undo/space.h"

extern Oid	UndoRelid(UndoKind kind);
extern Relation UndoRelGet(UndoKind kind, bool missing_ok);
extern void UndoRelRenew(void);
extern Relation UndoRelInit(RelationData *rd, FormData_pg_class *form,
							const RelFileLocator *locator, char persistence);
extern void UndoCheckMetaPage(Relation undorel);
extern bool UndoNotesEvictions(UndoKind kind);
extern void UndoNoteEvictions(UndoKind kind);
extern void UndoNoteLargeValues(UndoKind kind);
extern void UndoRenewMetaPage(Relation undorel);
extern void UndoReportRenewed(void);

#endif							/* INPLACE_UNDOREL_H */
