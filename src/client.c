/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A client that does not read holds nobody up.
 *
 * The server's own code may report something while a page is locked: a warning
 * about a checksum, DEBUG messages, or an error (no memory, no room on disk).  An
 * error is sent before the transaction is aborted, and so before the locks are let
 * go.  If the client does not read, or in a parallel worker the leader does
 * not, sending waits.  A backend that waits with a lightweight lock cannot be
 * ended.
 *
 * So what is sent to the client goes through here.  Where nothing holds
 * interrupts off (any lightweight lock does) it goes on as it is.  Otherwise
 *	  - An error lets go of all lightweight locks first, as the abort that follows
 *		would.  A FATAL exits without going on.  The handler of an error has interrupts
 *		held off, so while the client does not read the backend looks itself whether
 *		it is to be terminated.
 *	  - A notice is kept, and sent before the next message without a lock.
 *	  - Of a PANIC the client gets what its socket takes without a wait, for no lock
 *		may be let go of, and the server has to come down.
 * Other messages are not sent with a lock.
 *
 * When the server is stopped at once, or comes down, a backend tells its client so in the
 * handler of a signal (quickdie), which may have interrupted anything.  It goes no further
 * than that, so nobody will wait for its locks.  There the message goes on as it is, for
 * nothing may be allocated, and there is no later time at which a kept one could be sent.
 *
 * This does not depend on log_min_messages, as a hook of the log would.
 *
 * Installation
 *	  The postmaster sets the methods, so all backends have them from the start.
 *	  A parallel worker replaces them by those of its queue to the leader, and so
 *	  they are put back around these when a relation's methods are first asked for
 *	  (handler.c): no page of ours is locked before.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

/* nothing that has to do with these is used, and their headers may not be there */
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "libpq/libpq.h"
#include "libpq/pqsignal.h"
#include "storage/ipc.h"
#include "utils/wait_event.h"

/* first bytes of the messages that this is about */
#define MSG_ERROR	'E'
#define MSG_NOTICE	'N'

/* a notice that is kept */
typedef struct KeptMessage
{
	struct KeptMessage *next;
	size_t		len;
	char		data[FLEXIBLE_ARRAY_MEMBER];
} KeptMessage;

static const PQcommMethods *next_methods = NULL;
static const PQcommMethods *socket_methods = NULL;
static KeptMessage *kept = NULL;
static KeptMessage **kept_end = &kept;

/* the server's own way of sending without a wait comes back to guard_putmessage */
static bool passing = false;

/* the backend is being terminated, and its client does not read */
static bool gave_up = false;

static inline bool
may_hold_lock(void)
{
	return InterruptHoldoffCount > 0 || CritSectionCount > 0;
}

/*
 * Are we in the handler of SIGQUIT?  It is the only one to put that among the signals that
 * a child of the postmaster blocks.
 */
static inline bool
quits_at_once(void)
{
	return InterruptHoldoffCount > 0 && IsUnderPostmaster &&
		sigismember(&BlockSig, SIGQUIT) == 1;
}

/*
 * Its fields are a letter and a string each; the severity comes first, then again,
 * untranslated.
 */
static bool
is_panic(const char *s, size_t len)
{
	size_t		first = strnlen(s, len) + 1;

	return first + 2 < len && s[first] == PG_DIAG_SEVERITY_NONLOCALIZED &&
		strcmp(s + first + 1, "PANIC") == 0;
}

/*
 * Keep a notice for later.  If there is no memory for it, the log alone has it.  The server
 * may say something in a critical section, where no memory context may be asked: as when a
 * new WAL segment is made for a record.
 */
static void
keep_notice(const char *s, size_t len)
{
	KeptMessage *m;

	m = malloc(offsetof(KeptMessage, data) + len);
	if (m == NULL)
		return;
	m->next = NULL;
	m->len = len;
	memcpy(m->data, s, len);
	*kept_end = m;
	kept_end = &m->next;
}

/*
 * Put the message into the buffer, and send what the socket takes at once.
 */
static void
send_without_wait(char msgtype, const char *s, size_t len)
{
	passing = true;
	next_methods->putmessage_noblock(msgtype, s, len);
	passing = false;
	(void) next_methods->flush_if_writable();
}

static void
send_kept(void)
{
	while (kept != NULL)
	{
		KeptMessage *m = kept;

		/* sending may be interrupted, and come here again */
		kept = m->next;
		if (kept == NULL)
			kept_end = &kept;
		if (may_hold_lock() && next_methods == socket_methods)
			send_without_wait(MSG_NOTICE, m->data, m->len);
		else
			(void) next_methods->putmessage(MSG_NOTICE, m->data, m->len);
		free(m);
	}
}

/*
 * An error, with interrupts held off.  If the backend is to be terminated meanwhile the
 * client gets no more, as where the server waits for it.  A connection with TLS may
 * have to wait for something else than the socket to be writable; hence the timeout.
 */
static int
send_error(const char *s, size_t len)
{
	WaitEvent	event;
	int			n;

	if (next_methods != socket_methods)
		return next_methods->putmessage(MSG_ERROR, s, len);

	send_without_wait(MSG_ERROR, s, len);
	while (next_methods->is_send_pending())
	{
		if (ProcDiePending)
		{
			gave_up = true;
			SetLatch(MyLatch);
			break;
		}
		ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, WL_SOCKET_WRITEABLE, NULL);
		n = WaitEventSetWait(FeBeWaitSet, 1000, &event, 1, WAIT_EVENT_CLIENT_WRITE);
		if (n > 0 && (event.events & WL_POSTMASTER_DEATH))
			proc_exit(1);
		ResetLatch(MyLatch);
		(void) next_methods->flush_if_writable();
	}
	return 0;
}

static int
guard_putmessage(char msgtype, const char *s, size_t len)
{
	if (unlikely(gave_up))
		return 0;
	if (unlikely(quits_at_once()))
		return next_methods->putmessage(msgtype, s, len);
	if (unlikely(may_hold_lock()) && !passing)
	{
		if (msgtype == MSG_NOTICE && !proc_exit_inprogress)
		{
			keep_notice(s, len);
			return 0;
		}
		if (msgtype == MSG_ERROR)
		{
			if (CritSectionCount > 0 || is_panic(s, len))
			{
				if (next_methods == socket_methods)
					send_without_wait(MSG_ERROR, s, len);
				return 0;
			}
			LWLockReleaseAll();
			send_kept();
			return send_error(s, len);
		}
	}
	if (unlikely(kept != NULL) && !passing)
		send_kept();
	return next_methods->putmessage(msgtype, s, len);
}

static void
guard_putmessage_noblock(char msgtype, const char *s, size_t len)
{
	next_methods->putmessage_noblock(msgtype, s, len);
}

/*
 * Of an error, send_error has flushed already all that could be.
 */
static int
guard_flush(void)
{
	if (unlikely(gave_up))
		return 0;
	if (unlikely(quits_at_once()))
		return next_methods->flush();
	if (unlikely(may_hold_lock()) && !proc_exit_inprogress)
		return 0;
	if (unlikely(kept != NULL))
		send_kept();
	return next_methods->flush();
}

/*
 * An error may have been raised from within send_without_wait.
 */
static void
guard_comm_reset(void)
{
	passing = false;
	next_methods->comm_reset();
}

static int
guard_flush_if_writable(void)
{
	return next_methods->flush_if_writable();
}

static bool
guard_is_send_pending(void)
{
	return next_methods->is_send_pending();
}

static const PQcommMethods guard_methods = {
	.comm_reset = guard_comm_reset,
	.flush = guard_flush,
	.flush_if_writable = guard_flush_if_writable,
	.is_send_pending = guard_is_send_pending,
	.putmessage = guard_putmessage,
	.putmessage_noblock = guard_putmessage_noblock
};

void
InplaceGuardClient(void)
{
	if (likely(PqCommMethods == &guard_methods))
		return;
	next_methods = PqCommMethods;
	if (!IsUnderPostmaster)
		socket_methods = next_methods;
	PqCommMethods = &guard_methods;
}
