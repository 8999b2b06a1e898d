/*-------------------------------------------------------------------------
 *
 * inplace.h
 *	  What every file of the extension includes: the server's headers, the
 *	  version differences, and the few global settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_H
#define INPLACE_H

#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/multixact.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/buf.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "no_lock.h"

#define INPLACE_FORMAT_VERSION	3
/*
 * The version of undo's meta page is that and the sum of these: what libraries that do not know
 * of it must refuse.
 */
#define UNDO_HAS_EVICTED		1	/* UndoNoteEvictions() */
#define UNDO_HAS_OTHER_KEYS		2	/* index/other_mark.c */
#define UNDO_HAS_LARGE_VALUES	4	/* UndoNoteLargeValues() */
#define UNDO_VERSION_BITS		(UNDO_HAS_EVICTED | UNDO_HAS_OTHER_KEYS | \
								 UNDO_HAS_LARGE_VALUES)

#ifdef WORDS_BIGENDIAN
#error "inplace reads and writes its pages in little-endian order only"
#endif

/* inplace.c */
extern bool inplace_preloaded;	/* shared memory and rmgr are there */

/* number of ExecutorRun/ExecutorFinish calls we are inside of */
extern int	inplace_executor_depth;

/* state of the innermost query in ExecutorRun or ExecutorFinish, else NULL */
extern struct EState *inplace_executor_estate;

/*
 * Every entry point that touches storage calls this first: without the
 * preload there is no resource manager and no shared memory, and nothing may
 * be written.
 */
extern void InplaceRequirePreload(void);

/* relation_open() of an argument of a function: undefined_table if it is gone */
extern Relation InplaceOpenArgument(Oid relid, LOCKMODE lockmode);

/*
 * Does the server warn that it is running out of xids?  From then on whatever can
 * do without a new xid does.  In the end the server refuses new xids, and VACUUM,
 * which is the way out of that, must not fail then.  Between the first warning and
 * that there are millions of xids.
 */
extern bool InplaceXidsRunShort(void);

/* the table access method's routine; its address tells that a table is ours */
extern TableAmRoutine inplace_table_am;

#define RelationIsInplace(rel) \
	((rel)->rd_tableam == &inplace_table_am)

#endif							/* INPLACE_H */
