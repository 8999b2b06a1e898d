/*-------------------------------------------------------------------------
 *
 * delta.h
 *	  The difference between two images of a row.
 *
 * A delta is a sequence of edits that turns one image into the other:
 *	  skip (varint)	bytes that are the same
 *	  head (varint)	length of the bytes put in << 1 | (1 if the number of
 *					bytes taken out differs)
 *	  del (varint)	number of bytes taken out, if it differs
 *	  the bytes put in
 * What follows the last edit is the same in both.  Images start after the
 * fixed tuple header (with the null bitmap) and end with the tuple, padding
 * not included.  A varint is 7 bits a byte, low first, high bit: more.
 *
 * The same edits, with the roles exchanged, lead back: the forward delta is in
 * the WAL, the backward one in undo.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_DELTA_H
#define INPLACE_DELTA_H

#include "inplace.h"

typedef struct DeltaEdit
{
	uint16		old_start;
	uint16		old_len;
	uint16		new_start;
	uint16		new_len;
} DeltaEdit;

#define DELTA_MAX_EDITS 32

typedef struct DeltaEdits
{
	int			n;
	DeltaEdit	edit[DELTA_MAX_EDITS];
} DeltaEdits;

/*
 * Add the edit old[os, oe) -> new[ns, ne), after trimming what is equal at
 * both ends; close neighbours are joined, and past DELTA_MAX_EDITS all goes
 * into the last one.
 */
extern void delta_add(DeltaEdits *d, const char *oldimg, const char *newimg,
					  int os, int oe, int ns, int ne);

/* equal-length images (or parts of them), byte-wise */
extern void delta_add_same_size(DeltaEdits *d, const char *oldimg,
								const char *newimg, int os, int ns, int len);

/* encoded size of either direction, and the encoding itself */
extern Size delta_size(const DeltaEdits *d, bool backward);
extern Size delta_encode(const DeltaEdits *d, bool backward,
						 const char *oldimg, const char *newimg, char *dst);

/*
 * Apply an encoded delta to src (srclen bytes), result in dst (room for
 * dstmax); returns the length of the result, or -1 if the delta does not fit
 * the image.  dst and src do not overlap.
 */
extern int	delta_apply(const char *delta, Size delta_len,
						const char *src, Size srclen,
						char *dst, Size dstmax);

/*
 * The delta that leads back: "delta" turns src into another image, the result
 * turns that one into src, and is what delta_encode makes of the same edits.
 * Returns its length, or -1 if the delta does not fit the image or the result
 * does not fit dst.
 */
extern int	delta_invert(const char *delta, Size delta_len,
						 const char *src, Size srclen,
						 char *dst, Size dstmax);

extern char *varint_put(char *p, uint32 v);
extern const char *varint_get(const char *p, const char *end, uint32 *v);
extern int	varint_size(uint32 v);

#endif							/* INPLACE_DELTA_H */
