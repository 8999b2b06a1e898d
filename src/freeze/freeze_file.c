/*-------------------------------------------------------------------------
 *
 * freeze_file.c
 *	  Keeps what adaptive freezing knows over a restart of the server.
 *
 * The postmaster writes a file when it ends after a clean shutdown, and takes
 * it up when it starts.  Nothing is lost that could not be learnt again, so
 * whatever is doubtful is ignored, with a message in the log.
 *
 * Invariants
 *	  1. There is no file while the server runs: it is removed as soon as it has
 *		 been read.  So it does not get into base backups, and after a crash
 *		 there is none.
 *	  2. The file names the shutdown checkpoint, as well as the cluster; it is
 *		 taken only if the control file says that this is how the cluster was
 *		 shut down.  So a file that could not be removed, or was put there by
 *		 hand, is not believed, nor is one from before pg_resetwal.
 *	  3. Standbys neither read nor write it: what they know is nothing.
 *	  4. Nothing of a file is used before its checksum has been found right.
 *
 * Layout: FreezeFileHeader, the timeline's pairs, FreezeFileRecords (those
 * vacuumed last come first), CRC-32C of it all.
 *
 *-------------------------------------------------------------------------
 */
#include "inplace.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "freeze/freeze_model.h"
#include "freeze/freeze_shmem.h"
#include "freeze/freeze_stats.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"

#define FREEZE_FILE			PGSTAT_STAT_PERMANENT_DIRECTORY "/inplace_freeze.stat"
#define FREEZE_FILE_TEMP	FREEZE_FILE ".tmp"
#define FREEZE_FILE_MAGIC	0x49504652
#define FREEZE_FILE_VERSION	3

typedef struct FreezeFileHeader
{
	uint32		magic;
	uint32		version;
	uint32		server_major;
	uint32		record_size;
	uint64		system_identifier;
	XLogRecPtr	checkpoint;		/* the shutdown checkpoint */
	uint32		npairs;
	uint32		nrecords;
} FreezeFileHeader;

typedef struct FreezeFileRecord
{
	FreezeKey	key;
	TimestampTz last_vacuum;
	FreezeStats stats;
} FreezeFileRecord;

static pg_crc32c
checksum(const char *data, size_t len)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, data, len);
	FIN_CRC32C(crc);
	return crc;
}

/*
 * The shutdown checkpoint, or invalid if the cluster is not one that was shut
 * down as a primary.
 */
static XLogRecPtr
shutdown_checkpoint(uint64 *system_identifier)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);
	XLogRecPtr	checkpoint = InvalidXLogRecPtr;

	if (crc_ok && control->state == DB_SHUTDOWNED)
		checkpoint = control->checkPoint;
	*system_identifier = control->system_identifier;
	pfree(control);
	return checkpoint;
}

/* ---------------- writing ---------------- */

static int
compare_records(const void *a, const void *b)
{
	TimestampTz ta = ((const FreezeFileRecord *) a)->last_vacuum;
	TimestampTz tb = ((const FreezeFileRecord *) b)->last_vacuum;

	return ta > tb ? -1 : ta < tb ? 1 : 0;
}

/* all that goes into the file; NULL if there is not enough memory */
static char *
make_image(XLogRecPtr checkpoint, uint64 system_identifier, size_t *len)
{
	FreezeFileHeader header;
	FreezeFileRecord *records;
	FreezeEntry *entry;
	HASH_SEQ_STATUS seq;
	pg_crc32c	crc;
	size_t		pairs_len;
	char	   *image;
	int			n = 0;

	FreezeTimelineAppend(checkpoint, GetCurrentTimestamp());
	memset(&header, 0, sizeof(header));
	header.magic = FREEZE_FILE_MAGIC;
	header.version = FREEZE_FILE_VERSION;
	header.server_major = PG_VERSION_NUM / 10000;
	header.record_size = sizeof(FreezeFileRecord);
	header.system_identifier = system_identifier;
	header.checkpoint = checkpoint;
	header.npairs = freeze_shared->npairs;
	header.nrecords = hash_get_num_entries(freeze_tables);

	pairs_len = header.npairs * sizeof(TimelinePair);
	*len = sizeof(header) + pairs_len +
		header.nrecords * sizeof(FreezeFileRecord) + sizeof(crc);
	image = palloc_extended(*len, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM |
							MCXT_ALLOC_ZERO);
	if (image == NULL)
		return NULL;

	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), freeze_shared->pairs, pairs_len);
	records = (FreezeFileRecord *) (image + sizeof(header) + pairs_len);
	hash_seq_init(&seq, freeze_tables);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		Assert(n < header.nrecords);
		records[n].key = entry->key;
		records[n].last_vacuum = entry->last_vacuum;
		records[n].stats = entry->stats;
		n++;
	}
	qsort(records, n, sizeof(FreezeFileRecord), compare_records);
	crc = checksum(image, *len - sizeof(crc));
	memcpy(image + *len - sizeof(crc), &crc, sizeof(crc));
	return image;
}

/*
 * Called when the postmaster, or a server for a single user, ends.
 */
void
FreezeFileSave(int code, Datum arg)
{
	uint64		system_identifier;
	XLogRecPtr	checkpoint;
	FILE	   *file;
	char	   *image;
	size_t		len;
	bool		written;

	if (code != 0 || freeze_shared == NULL)
		return;
	checkpoint = shutdown_checkpoint(&system_identifier);
	if (XLogRecPtrIsInvalid(checkpoint))
		return;

	image = make_image(checkpoint, system_identifier, &len);
	if (image == NULL)
	{
		ereport(LOG,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not write file \"%s\": out of memory",
						FREEZE_FILE)));
		return;
	}

	file = AllocateFile(FREEZE_FILE_TEMP, PG_BINARY_W);
	written = file != NULL && fwrite(image, len, 1, file) == 1;
	if (file != NULL && FreeFile(file) != 0)
		written = false;
	pfree(image);
	if (!written)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", FREEZE_FILE_TEMP)));
		unlink(FREEZE_FILE_TEMP);
		return;
	}
	(void) durable_rename(FREEZE_FILE_TEMP, FREEZE_FILE, LOG);
}

/* ---------------- reading ---------------- */

/* the whole file; NULL, with a message, if that cannot be had */
static char *
read_image(FILE *file, size_t *len)
{
	struct stat st;
	char	   *image;

	if (fstat(fileno(file), &st) != 0)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not stat file \"%s\": %m", FREEZE_FILE)));
		return NULL;
	}
	*len = st.st_size;
	image = palloc_extended(Max(*len, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (image == NULL)
	{
		ereport(LOG,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not read file \"%s\": out of memory",
						FREEZE_FILE)));
		return NULL;
	}
	if (*len > 0 && fread(image, *len, 1, file) != 1)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", FREEZE_FILE)));
		pfree(image);
		return NULL;
	}
	return image;
}

/* NULL if it can be believed, else why not */
static const char *
find_fault(const char *image, size_t len)
{
	FreezeFileHeader header;
	pg_crc32c	crc;
	uint64		system_identifier;
	XLogRecPtr	checkpoint;

	if (len < sizeof(header) + sizeof(crc))
		return "It is too short.";
	memcpy(&crc, image + len - sizeof(crc), sizeof(crc));
	if (!EQ_CRC32C(crc, checksum(image, len - sizeof(crc))))
		return "Its checksum is wrong.";

	memcpy(&header, image, sizeof(header));
	if (header.magic != FREEZE_FILE_MAGIC ||
		header.version != FREEZE_FILE_VERSION ||
		header.server_major != PG_VERSION_NUM / 10000 ||
		header.record_size != sizeof(FreezeFileRecord))
		return "It is of another version.";
	if (header.npairs > TIMELINE_SIZE ||
		len != sizeof(header) + header.npairs * sizeof(TimelinePair) +
		(size_t) header.nrecords * sizeof(FreezeFileRecord) + sizeof(crc))
		return "Its length is wrong.";

	checkpoint = shutdown_checkpoint(&system_identifier);
	if (header.system_identifier != system_identifier ||
		header.checkpoint != checkpoint)
		return "It is not of the last shutdown of this database cluster.";
	return NULL;
}

static void
take_image(const char *image)
{
	FreezeFileHeader header;
	FreezeFileRecord record;
	const char *p = image;

	memcpy(&header, p, sizeof(header));
	p += sizeof(header);
	memcpy(freeze_shared->pairs, p, header.npairs * sizeof(TimelinePair));
	p += header.npairs * sizeof(TimelinePair);
	freeze_shared->npairs = header.npairs;

	/* nothing was changed while the server was down */
	FreezeTimelineAppend(header.checkpoint, GetCurrentTimestamp());

	for (uint32 i = 0; i < header.nrecords; i++)
	{
		FreezeEntry *entry;

		if (hash_get_num_entries(freeze_tables) >=
			inplace_max_freeze_stats_tables)
			break;				/* there is less room than there was */
		memcpy(&record, p + (size_t) i * sizeof(record), sizeof(record));
		entry = FreezeMakeEntry(&record.key);
		entry->last_vacuum = record.last_vacuum;
		entry->stats = record.stats;
	}
}

static bool
starts_as_standby(void)
{
	struct stat st;

	return stat("standby.signal", &st) == 0 ||
		stat("recovery.signal", &st) == 0;
}

/*
 * Called when shared memory has been set up, empty.
 */
void
FreezeFileLoad(void)
{
	FILE	   *file = AllocateFile(FREEZE_FILE, PG_BINARY_R);
	char	   *image;
	size_t		len;

	if (file == NULL)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", FREEZE_FILE)));
		return;
	}

	image = read_image(file, &len);
	if (image != NULL && !starts_as_standby())
	{
		const char *fault = find_fault(image, len);

		if (fault == NULL)
			take_image(image);
		else
			ereport(LOG,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("ignoring file \"%s\"", FREEZE_FILE),
					 errdetail_internal("%s", fault),
					 errhint("VACUUM learns anew which pages of inplace tables are likely to stay unchanged.")));
	}
	if (image != NULL)
		pfree(image);
	FreeFile(file);
	(void) durable_unlink(FREEZE_FILE, LOG);
}
