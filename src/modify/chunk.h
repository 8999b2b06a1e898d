/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  Large values in a TOAST table that is an inplace table.
 *
 * Format
 *	  A value's identity is its base, a multiple of CHUNK_ID_STEP.  Its chunks are
 *	  rows (base, number of the chunk, bytes), which keep chunk_id and chunk_seq for
 *	  ever.  An update of the value writes over chunk_data alone.  That begins with
 *		uint32		the change of the value that the chunk was last changed at;
 *					of a new value 0 (chunk 0 of a copy has that which it is of)
 *		int32		chunk 0 only: the size of the whole value as it is stored
 *	  and the value's bytes follow, TOAST_MAX_CHUNK_SIZE of them but in the last chunk,
 *	  where a heap TOAST table has its chunks end, too.  After the value's end the last
 *	  chunk may have bytes that mean nothing, as its row gets no shorter.  Chunk 0 changes with
 *	  every change of the value, others only if their bytes do.  The id in a TOAST
 *	  pointer is the base plus the number of the change modulo CHUNK_ID_STEP.
 *
 * How a pointer is followed, why that is right, and what writers have to see to,
 * is in chunk_read.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_CHUNK_H
#define INPLACE_CHUNK_H

#include "inplace.h"

#include "access/heaptoast.h"
#include "row/walk.h"

#define CHUNK_ID_BITS	5
#define CHUNK_ID_STEP	((uint32) 1 << CHUNK_ID_BITS)

#define ChunkBase(valueid)	((Oid) ((valueid) & ~(CHUNK_ID_STEP - 1)))
#define ChangeNumber(change)	((change) & (CHUNK_ID_STEP - 1))

/* is change a before b? */
#define ChangePrecedes(a, b)	((int32) ((a) - (b)) < 0)

/* what is before a chunk's bytes */
#define ChunkHeaderSize(seq) \
	((seq) == 0 ? sizeof(uint32) + sizeof(int32) : sizeof(uint32))

static inline int32
ChunksOf(int32 size)
{
	return (size - 1) / TOAST_MAX_CHUNK_SIZE + 1;
}

/* bytes of chunk seq of a value of that size */
static inline int32
ChunkLength(int32 size, int32 seq)
{
	return Min(TOAST_MAX_CHUNK_SIZE, size - seq * TOAST_MAX_CHUNK_SIZE);
}

/* a version of a chunk; the data are on its page, or in the walk's space */
typedef struct Chunk
{
	int32		seq;
	uint32		change;
	int32		value_size;		/* of chunk 0 */
	const char *data;
	int32		len;
} Chunk;

/*
 * The versions of the row of a chunk, the newest first, but those that were rolled
 * back.  The page is share-locked meanwhile.
 */
typedef struct ChunkVersions
{
	ChainWalk	walk;
	RowImage	space[2];
	bool		started;
	bool		settled;		/* no version below is one rolled back */
	bool		deleted;		/* the newest is deleted */
	TransactionId newer_xid;	/* that replaced or deleted this one */
	bool		newer_frozen;	/* ... and everybody has seen that */
	bool		any_aborted;	/* was there one rolled back? */
	uint32		aborted_change; /* the newest such one of chunk 0 */
	bool		with_aborted;	/* stop at those rolled back, too */
	bool		is_aborted;		/* this is one */
	bool		quiet;			/* set by the caller: damage is no error */
} ChunkVersions;

extern bool inplace_chunk_first(ChunkVersions *cv, Relation toastrel,
								Buffer buffer, OffsetNumber off,
								bool with_aborted);
extern bool inplace_chunk_next(ChunkVersions *cv);
extern bool inplace_chunk_parse(ChunkVersions *cv, Oid base, Chunk *chunk);

/* a scan of the TIDs of the chunks of a value, of those with these numbers */
extern IndexScanDesc inplace_chunk_scan(Relation toastrel, Relation index, Oid base,
										int32 first, int32 last);
extern Buffer inplace_chunk_page(Relation toastrel, Buffer buffer, ItemPointer tid);

/* chunk_given.c */

/* what a subtransaction of our own has stored under a pointer */
typedef struct GivenValue
{
	uint32		change;
	uint64		hash;
} GivenValue;

extern bool inplace_any_given(void);
extern void inplace_note_given(Oid toastrelid, Oid valueid, uint32 change,
							   const char *data, int32 size);
extern const GivenValue *inplace_given_value(Oid toastrelid, Oid valueid);
extern bool inplace_is_given(const GivenValue *given, const char *data, int32 size);
extern uint32 inplace_given_numbers(Oid toastrelid, Oid base, uint32 *last);

extern void inplace_given_rewritten(Oid toastrelid);

/* of values that have been stored: may pointers be around which others cannot follow? */
extern bool inplace_given_rolled_back(void);
extern void inplace_given_init(void);

/* chunk_copies.c */
struct ValueCopies;

extern struct varlena *inplace_find_copy(struct ValueCopies *copies,
										 const struct varlena *old);
extern void inplace_note_copy(struct ValueCopies *copies, const struct varlena *old,
							  const struct varlena *new);

/* chunk_read.c */
extern void inplace_fetch_toast_slice(Relation toastrel, Oid valueid,
									  int32 attrsize, int32 sliceoffset,
									  int32 slicelength, struct varlena *result);

extern struct varlena *inplace_fetch_value(Relation toastrel,
										   const struct varlena *pointer);

/* the first chunk that is not there, or -1 */
extern int32 inplace_missing_chunk(Relation toastrel, Oid valueid, int32 attrsize);

/* chunk_store.c */

/*
 * Store a value, in line and not short-lived, and return the pointer to it.
 * oldvalue is the pointer to the value in the TOAST table that it replaces, whose
 * row is locked, or NULL.  copied is that to the value in a TOAST table that is being
 * rewritten which it is a copy of, or NULL: it keeps its id if it can.  The TOAST
 * table is locked.
 */
extern Datum inplace_chunks_store(Relation rel, Relation toastrel, Datum value,
								  const struct varlena *oldvalue,
								  const struct varlena *copied, int options);

/* unused: this command has stored it itself, for nothing */
extern void inplace_chunks_delete(Relation toastrel, Oid valueid, bool unused);

#endif							/* INPLACE_CHUNK_H */
