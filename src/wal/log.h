/*-------------------------------------------------------------------------
 *
 * log.h
 *	  The records of changes of rows; see log.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_LOG_H
#define INPLACE_LOG_H

#include "inplace.h"

#include "page/tuple.h"
#include "undo/append.h"
#include "wal/logical.h"

/*
 * These take the undo that goes with the change (ui NULL: none); they
 * set the LSNs of all pages, the undo page's too.  clear: bits of the visibility
 * map have been cleared (clear_old: of the old row's page, if that is another).
 * lc: for logical decoding, or NULL.
 */
extern void inplace_log_insert(Relation rel, Buffer buffer, OffsetNumber off,
							   bool init_page, bool clear,
							   const LogicalChange *lc);
extern void inplace_log_multi_insert(Relation rel, Buffer buffer,
									 const OffsetNumber *offs, int n,
									 bool init_page, bool clear, char *scratch,
									 const LogicalChange *lc);

/* room for the scratch buffer of the function above */
#define MULTI_INSERT_SCRATCH (2 * BLCKSZ)

/*
 * Put the undo place of a compact record; decides, with the undo page locked,
 * whether the record goes without a reference to it.  At most this long:
 */
#define MAX_UNDO_PLACE	17
#define MAX_NAMED_UNDO_BLOCK	0x7FFFFFFF
extern char *inplace_wal_put_undo_place(char *p, UndoInsert *ui,
										RelFileLocator table);

/* where a compact record's undo goes, when it is replayed */
typedef struct UndoPlace
{
	uint16		offset;
	BlockNumber block;
	RelFileLocator locator;		/* without a block reference only */
} UndoPlace;

/*
 * For log_update.c and log_delete.c, which make the data.  undo: NULL if the
 * record is compact.
 */
extern void inplace_log_change(Relation rel, Buffer buffer, uint8 info,
							   const char *data, Size len, bool clear,
							   UndoInsert *ui, const char *undo, Size undo_len,
							   const LogicalChange *lc);

/* the undo of a permanent table whose own changes are not logged */
extern void inplace_log_undo_alone(UndoInsert *ui, const char *undo,
								   Size undo_len);
extern void inplace_log_header(Relation rel, Buffer buffer, OffsetNumber off,
							   bool clear_frozen, UndoInsert *ui, const char *undo, Size undo_len);

/* a row that takes the place of another version, or (push) is the first */
extern void inplace_log_restore(Relation rel, Buffer buffer, OffsetNumber off,
								InplaceTupleHeader tup, Size len,
								UndoInsert *ui, const char *undo,
								Size undo_len);
extern void inplace_log_push(Relation rel, Buffer buffer, OffsetNumber off,
							 InplaceTupleHeader tup, Size len, UndoInsert *ui,
							 const char *undo, Size undo_len);
extern void inplace_log_undo_deletes(Relation rel, Buffer buffer,
									 const OffsetNumber *offs, int n);
struct MoveRecord;				/* log_move.h */
extern void inplace_log_move(const struct MoveRecord *m);

#endif							/* INPLACE_LOG_H */
