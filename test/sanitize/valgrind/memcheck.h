/*-------------------------------------------------------------------------
 *
 * memcheck.h
 *	  Valgrind's client requests, carried out by AddressSanitizer.
 *
 * PostgreSQL tells Valgrind which memory may be touched: chunks of memory
 * contexts from palloc to pfree, and shared buffers while they are pinned.
 * Only builds with USE_VALGRIND do that.  Sanitized builds (get-postgres
 * --sanitize) define it and find this file in the place of Valgrind's own,
 * so that AddressSanitizer reports
 *
 * - reads and writes beyond a palloc'd chunk, or after its pfree;
 * - reads and writes of a shared or local buffer without a pin.
 *
 * AddressSanitizer knows nothing of defined and undefined memory, so both
 * are memory that may be touched.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INPLACE_SANITIZE_MEMCHECK_H
#define INPLACE_SANITIZE_MEMCHECK_H

#include <sanitizer/asan_interface.h>

#define VALGRIND_MAKE_MEM_NOACCESS(addr, size) \
	__asan_poison_memory_region((addr), (size))
#define VALGRIND_MAKE_MEM_UNDEFINED(addr, size) \
	__asan_unpoison_memory_region((addr), (size))
#define VALGRIND_MAKE_MEM_DEFINED(addr, size) \
	__asan_unpoison_memory_region((addr), (size))
#define VALGRIND_CHECK_MEM_IS_DEFINED(addr, size) \
	((void) 0)

/* The allocators poison what is freed themselves: wipe_mem(). */
#define VALGRIND_CREATE_MEMPOOL(context, redzones, zeroed) \
	((void) 0)
#define VALGRIND_DESTROY_MEMPOOL(context) \
	((void) 0)
#define VALGRIND_MEMPOOL_ALLOC(context, addr, size) \
	((void) (context), __asan_unpoison_memory_region((addr), (size)))
#define VALGRIND_MEMPOOL_FREE(context, addr) \
	((void) (context), (void) (addr))
#define VALGRIND_MEMPOOL_CHANGE(context, optr, nptr, size) \
	((void) (context), __asan_unpoison_memory_region((nptr), (size)))

/* Errors are counted by whoever reads the sanitizer's reports. */
#define VALGRIND_COUNT_ERRORS	0
#define VALGRIND_PRINTF(...)	((void) 0)
#define RUNNING_ON_VALGRIND		0

#endif							/* INPLACE_SANITIZE_MEMCHECK_H */
