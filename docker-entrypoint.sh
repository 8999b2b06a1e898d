#!/bin/sh
# What the image of the Dockerfile begins with: makes the cluster in $PGDATA,
# the first time, and becomes the server.
#
# A first start that is interrupted is made again by the next one.  The cluster
# is made in $PGDATA/.first, and moved when it is complete, PG_VERSION last.  So
# what is there beside .first, and without PG_VERSION, is ours and incomplete.
set -eu
first=$PGDATA/.first
if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
	if [ -z "${POSTGRES_PASSWORD:-}" ]; then
		echo "The first start wants POSTGRES_PASSWORD, the superuser's password." >&2
		exit 1
	fi
	if [ -d "$first" ]; then
		echo "The first start was interrupted, and is made again." >&2
		find "$PGDATA" -mindepth 1 -maxdepth 1 ! -name .first ! -name lost+found -exec rm -rf {} +
		rm -rf "$first"
	elif [ -n "$(find "$PGDATA" -mindepth 1 -maxdepth 1 ! -name lost+found -print -quit)" ]; then
		echo "$PGDATA has files, but no cluster.  The first start wants it empty." >&2
		exit 1
	fi
	umask 077
	mkdir "$first"
	new=$first/data
	printf '%s\n' "$POSTGRES_PASSWORD" >"$first/password"
	initdb -D "$new" -U postgres --auth-local=peer --auth-host=scram-sha-256 \
		--encoding=UTF8 --pwfile="$first/password"
	rm "$first/password"
	echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf"
	cat >>"$new/postgresql.conf" <<-'CONF'
		listen_addresses = '*'
		shared_preload_libraries = 'inplace'
	CONF
	# Nobody else can connect yet.
	pg_ctl -D "$new" -o "-c listen_addresses='' -k '$first' -c unix_socket_permissions=0700" -w start
	for db in template1 postgres; do
		psql -X -v ON_ERROR_STOP=1 -h "$first" -U postgres -d "$db" -c 'CREATE EXTENSION inplace'
	done
	pg_ctl -D "$new" -m fast -w stop
	find "$new" -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec mv {} "$PGDATA/" \;
	chmod 700 "$PGDATA"
	sync
	mv "$new/PG_VERSION" "$PGDATA/"
fi
[ ! -s "$PGDATA/PG_VERSION" ] || rm -rf "$first"
unset POSTGRES_PASSWORD
exec "$@"
