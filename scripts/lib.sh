# shellcheck shell=bash
# Helpers shared by the scripts of this repository; sourced, never run.
#
# What they promise: nothing outside the cache directory and fresh temporary
# directories is changed (except Debian packages being installed and the
# extension being installed into the server it is built for), and a directory
# is used or removed only if it carries the marker file that make_workdir left.

INPLACE_MARKER=.inplace-private-dir

say() { printf '[%s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# ---------------------------------------------------------------- packages

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "needs root for: $* (no sudo here)"
	fi
}

pkg_installed() {
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# Installs those of the named packages that are missing.  Works without a
# network, and without root, when none is.
need_packages() {
	local p missing=()
	for p in "$@"; do
		pkg_installed "$p" || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing Debian packages: ${missing[*]}"
	mkdir -p "$INPLACE_CACHE_DIR/log"
	# One at a time: dpkg has a single lock, and scripts may run in parallel.
	(
		flock 9
		as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
		as_root env DEBIAN_FRONTEND=noninteractive \
			apt-get install -q -y --no-install-recommends \
			-o DPkg::Lock::Timeout=300 "${missing[@]}"
	) >"$INPLACE_CACHE_DIR/log/apt.log" 2>&1 9>"$INPLACE_CACHE_DIR/.apt.lock" </dev/null ||
		{ tail -20 "$INPLACE_CACHE_DIR/log/apt.log" >&2; die "could not install ${missing[*]}"; }
}

# ---------------------------------------------------------------- the cache

# Can somebody who is neither the owner nor in the group reach this directory?
traversable() {
	local d=$1 mode
	while [ "$d" != / ]; do
		if [ -e "$d" ]; then
			mode=$(stat -c %a "$d")
			[ $((8#$mode & 1)) = 1 ] || return 1
		fi
		d=$(dirname "$d")
	done
}

# Servers refuse to run as root, so as root they run as another user, who must
# be able to read what was built: root's home is mostly closed to others.
choose_cache() {
	local d=${INPLACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/inplace}
	if [ -z "${INPLACE_CACHE:-}" ] && [ "$(id -u)" = 0 ] && ! traversable "$d"; then
		d=/var/cache/inplace
	fi
	(umask 022 && mkdir -p "$d")
	(cd "$d" && pwd -P)
}
INPLACE_CACHE_DIR=$(choose_cache)
export INPLACE_CACHE_DIR

# --------------------------------------------------------------- compilers

# Has the compiler nothing to say about each of the files, alone?  With the options that
# they are compiled with for the server of PG_CONFIG, but no code is made.  What all of
# them begin with, inplace.h and the server's headers, is read once.
compile_each() {  # COMPILER PG_CONFIG FILE... [-- OPTION...]
	local compiler=$1 pg_config=$2 files=() flags dir out bad=0
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	[ $# = 0 ] || shift
	read -r -a flags < <(make -s PG_CONFIG="$pg_config" flags)
	flags+=("$@" -Werror)
	dir=$(mktemp -d)
	out=$(
		"$compiler" "${flags[@]}" -x c-header src/inplace.h -o "$dir/inplace.h.gch" 2>&1
		# The three are what it consists of.
		grep -L '^#include "inplace\.h"' "${files[@]}" | grep -vE '^src/(inplace|compat|no_lock)\.h$' |
			sed 's/$/: does not include inplace.h/'
		printf '%s\0' "${files[@]}" |
			xargs -0 -P "$(nproc)" -n 8 "$compiler" "${flags[@]}" -fsyntax-only -include "$dir/inplace.h" -x c 2>&1
	) || bad=1
	rm -rf "$dir"
	[ -z "$out" ] || { printf '%s\n' "$out" | head -60; bad=1; }
	echo "${#files[@]} files, $("$compiler" --version | head -1), $("$pg_config" --version)"
	return $bad
}

# --------------------------------------------------------------- sanitizers

# For what get-postgres --sanitize has built, its pg_config included; others do
# not look at these.  Programs that end may leave memory to the system.
# check_stack_depth compares addresses on the stack, so it has to be a real one.
# What AddressSanitizer finds ends the process; what is undefined is reported,
# and the process goes on.
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1:disable_coredump=0:strict_string_checks=1:print_stacktrace=1
export UBSAN_OPTIONS=print_stacktrace=1

# ------------------------------------------------------- unprivileged servers

# The user that servers and tests run as.  PostgreSQL refuses to run as root:
# then it is Debian's 'postgres', or a system user made for that.
server_user() {
	if [ "$(id -u)" != 0 ]; then
		id -un
	elif id postgres >/dev/null 2>&1; then
		echo postgres
	else
		id inplace-test >/dev/null 2>&1 ||
			useradd --system --no-create-home --home-dir /nonexistent inplace-test
		echo inplace-test
	fi
}

# Runs a command as that user.  Its working directory must be readable for it.
as_server() {
	if [ "$(id -u)" != 0 ]; then
		"$@"
	else
		runuser -u "$SERVER_USER" -- env HOME="${WORKDIR:-/}" "$@"
	fi
}

# Makes WORKDIR, a fresh directory of the server user, and marks it as ours.
# It holds clusters and their sockets, whose paths must be short.
make_workdir() {
	local base=${INPLACE_TMP:-/tmp}
	SERVER_USER=$(server_user)
	WORKDIR=$(mktemp -d "$base/inplace-XXXXXX")
	[ ${#WORKDIR} -le 70 ] || { rmdir "$WORKDIR"; die "path too long for a socket: $WORKDIR"; }
	chmod 755 "$WORKDIR"
	echo "made by the inplace test scripts, pid $$" >"$WORKDIR/$INPLACE_MARKER"
	[ "$(id -u)" != 0 ] || chown -R "$SERVER_USER:" "$WORKDIR"
	export WORKDIR SERVER_USER
}

# Prints the directory in which TAP tests, of all runs on this machine, tell each other which
# ports they have.  With one for each run two could choose the same: a server that is
# being restarted does not hold its port.
ports_dir() {
	local dir=${INPLACE_TMP:-/tmp}/inplace-ports-$SERVER_USER
	as_server mkdir -m 700 "$dir" 2>/dev/null || true
	[ -d "$dir" ] && [ ! -L "$dir" ] && [ "$(stat -c %U "$dir")" = "$SERVER_USER" ] ||
		die "$dir is not a directory of $SERVER_USER's"
	echo "$dir"
}

is_our_workdir() {
	[ -n "${1:-}" ] && [ -d "$1" ] && [ -f "$1/$INPLACE_MARKER" ]
}

# Is there such a process, and not only as a zombie?
running() {
	grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

# Runs a long command so that a signal to this script has effect at once: bash
# runs traps only between foreground commands.
interruptible() {
	local rc=0
	"$@" &
	INTERRUPTIBLE_PID=$!
	wait "$INTERRUPTIBLE_PID" || rc=$?
	INTERRUPTIBLE_PID=''
	return $rc
}

# For tests in processes of their own: waits while two are running; or up to four, as
# many of them do little else than wait, when few other servers are left to be tested
# (./check says how many there are, all in all).
wait_for_turn() {
	local servers turns
	while :; do
		servers=$(cat "${SERVERS_LEFT:-/dev/null}" 2>/dev/null) || servers=
		case $servers in 1) turns=4 ;; 2) turns=3 ;; *) turns=2 ;; esac
		[ "$(jobs -rp | wc -l)" -ge "$turns" ] || break
		wait -n || true
	done
}

# Ends processes of ours, and waits until they have ended.
end_processes() {
	local pid i
	[ $# -gt 0 ] || return 0
	kill "$@" 2>/dev/null || true
	# (bash may hang in a 'wait' inside a trap inside a 'wait'.)
	for pid in "$@"; do
		for ((i = 0; i < 100; i++)); do
			running "$pid" || break
			sleep 0.1
		done
	done
}

# Stops the clusters in WORKDIR: those of TAP tests too, so not by way of stop_server.
stop_clusters() {
	local pidfile pid data i
	while read -r pidfile; do
		{ pid=$(sed -n 1p "$pidfile") && data=$(sed -n 2p "$pidfile"); } 2>/dev/null || continue
		# Only a postmaster whose directory is in ours.
		[[ $pid:$data =~ ^[0-9]+:"$WORKDIR"/ ]] || continue
		[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$data" ] || continue
		as_server kill -QUIT "$pid" 2>/dev/null || true
		for ((i = 0; i < 100; i++)); do
			running "$pid" || break
			sleep 0.1
		done
	done < <(find "$WORKDIR" -name postmaster.pid 2>/dev/null)
}

# Stops the clusters in WORKDIR, and whatever else still works there, and removes it;
# for 'trap ... EXIT'.
remove_workdir() {
	local proc
	is_our_workdir "${WORKDIR:-}" || return 0
	cd /
	[ -z "${INTERRUPTIBLE_PID:-}" ] || end_processes "$INTERRUPTIBLE_PID"
	stop_clusters
	# A TAP test that had no time to end may have started another one.
	for proc in /proc/[0-9]*; do
		[[ $(readlink "$proc/cwd" 2>/dev/null) != "$WORKDIR"/* ]] ||
			as_server kill -KILL "${proc#/proc/}" 2>/dev/null || true
	done
	stop_clusters
	rm -rf "$WORKDIR"
}

# new_server BINDIR NAME [CONFIG_FILE]: a new cluster WORKDIR/NAME, started.
# Its socket is in WORKDIR/NAME.sock (port 5432), it listens to nothing else.
# Logs to WORKDIR/NAME.log.  Superuser is 'postgres', whoever runs it.
new_server() {
	local bindir=$1 name=$2 config=${3:-}
	is_our_workdir "$WORKDIR" || die "not a directory of ours: $WORKDIR"
	local data=$WORKDIR/$name
	[ ! -e "$data" ] || die "$data exists"
	as_server "$bindir/initdb" -D "$data" -U postgres -A trust -N \
		--encoding=UTF8 --locale=C >"$WORKDIR/$name.initdb.log" 2>&1 ||
		{ cat "$WORKDIR/$name.initdb.log" >&2; return 1; }
	as_server mkdir "$WORKDIR/$name.sock"
	{
		echo "listen_addresses = ''"
		echo "port = 5432"
		echo "unix_socket_directories = '$WORKDIR/$name.sock'"
		echo "log_line_prefix = '%m [%p] %b %q%a '"
		# The locale is C, so it is the messages' language too.
		[ -z "$config" ] || cat "$config"
	} >"$WORKDIR/$name.conf.add"
	# By way of the server's user: the data directory is its own.
	# shellcheck disable=SC2016
	as_server sh -c 'cat >>"$1"' sh "$data/postgresql.conf" <"$WORKDIR/$name.conf.add"
	# Where start_server and stop_server find the programs.
	echo "$bindir" >"$WORKDIR/$name.bindir"
	start_server "$name"
}

start_server() {
	local name=$1 bindir
	bindir=$(cat "$WORKDIR/$name.bindir")
	is_our_workdir "$WORKDIR" || die "not a directory of ours: $WORKDIR"
	if ! as_server "$bindir/pg_ctl" -D "$WORKDIR/$name" -l "$WORKDIR/$name.log" \
		-w -t 300 start >"$WORKDIR/$name.ctl.log" 2>&1 </dev/null 7>&- 8>&- 9>&-; then
		say "server '$name' does not start:"
		tail -20 "$WORKDIR/$name.log" >&2 || cat "$WORKDIR/$name.ctl.log" >&2
		return 1
	fi
}

stop_server() {
	local name=$1 mode=${2:-fast} bindir
	bindir=$(cat "$WORKDIR/$name.bindir")
	is_our_workdir "$WORKDIR" || die "not a directory of ours: $WORKDIR"
	as_server "$bindir/pg_ctl" -D "$WORKDIR/$name" -m "$mode" -w -t 300 stop \
		>>"$WORKDIR/$name.ctl.log" 2>&1 </dev/null
}

# Removes a cluster that has been stopped, which has gigabytes of WAL; its log stays.
remove_server() {
	local name=$1
	is_our_workdir "$WORKDIR" || die "not a directory of ours: $WORKDIR"
	[ ! -e "$WORKDIR/$name/postmaster.pid" ] || die "$WORKDIR/$name is running"
	rm -rf "${WORKDIR:?}/${name:?}" "$WORKDIR/$name.sock"
}
