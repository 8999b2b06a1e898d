#!/bin/sh
# What the image of the Dockerfile begins with: makes the cluster in $PGDATA,
# the first time, and becomes the server.
set -eu
if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
	if [ -z "${POSTGRES_PASSWORD:-}" ]; then
		echo "The first start wants POSTGRES_PASSWORD, the superuser's password." >&2
		exit 1
	fi
	umask 077
	pwfile=$(mktemp)
	printf '%s\n' "$POSTGRES_PASSWORD" >"$pwfile"
	initdb -D "$PGDATA" -U postgres --auth-local=peer --auth-host=scram-sha-256 \
		--encoding=UTF8 --pwfile="$pwfile"
	rm "$pwfile"
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
	cat >>"$PGDATA/postgresql.conf" <<-'CONF'
		listen_addresses = '*'
		shared_preload_libraries = 'inplace'
	CONF
	# Nobody can connect from outside yet.
	pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
	for db in template1 postgres; do
		psql -X -v ON_ERROR_STOP=1 -d "$db" -c 'CREATE EXTENSION inplace'
	done
	pg_ctl -D "$PGDATA" -m fast -w stop
fi
unset POSTGRES_PASSWORD
exec "$@"
