# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of check-one
# The parts of ./check that run PostgreSQL's own tests, from the source package
# of the server's version, with inplace as the default access method; sourced by
# scripts/check-one.
#
#   upstream-regress     all of parallel_schedule
#   upstream-isolation   all of isolation_schedule
#   upstream-contrib     the SQL tests and isolation specs of contrib modules
#   upstream-recovery    the TAP tests of src/test/recovery
#
# Reviewed differences are in test/upstream/VERSION: patches of outputs (see
# test/upstream/compare.py), and for the TAP tests patches of the tests.

# Those that make tables.  test_decoding needs settings of its own.
upstream_modules=(btree_gin btree_gist citext hstore intarray ltree pg_trgm
	pgcrypto tablefunc unaccent amcheck pgstattuple pgrowlocks)

part_upstream_regress() {
	upstream_source src/test/regress || return 0
	upstream_regress_so || return 0
	upstream_group upstream-regress \
		"regress:pg_regress:src/test/regress:--dbname=regression --dlpath=$WORKDIR --max-concurrent-tests=20 --schedule=parallel_schedule"
}

part_upstream_isolation() {
	upstream_source src/test/isolation || return 0
	upstream_group upstream-isolation \
		"isolation:pg_isolation_regress:src/test/isolation:--dbname=isolation_regression --schedule=isolation_schedule"
}

part_upstream_contrib() {
	local m suites=()
	upstream_source contrib || return 0
	for m in "${upstream_modules[@]}"; do
		upstream_module "$m"
	done
	upstream_group upstream-contrib "${suites[@]}"
	suites=()
	upstream_module test_decoding
	upstream_group upstream-contrib "${suites[@]}"
}

# Adds the suites of one module to 'suites'.
upstream_module() {
	local dir=contrib/$1 variable tests
	for variable in REGRESS ISOLATION; do
		# shellcheck disable=SC2016  # for make
		tests=$(cd "$WORKDIR/upstream/$dir" && echo 'show-%: ; @echo $($*)' |
			make -s -f Makefile -f - USE_PGXS=1 PG_CONFIG="$pg_config" "show-$variable") || true
		[ -n "$tests" ] || continue
		case $variable in
			REGRESS) suites+=("$dir:pg_regress:$dir:--dbname=contrib_regression $tests") ;;
			ISOLATION)
				local extension=''
				[ "$1" = test_decoding ] || extension=--load-extension=$1
				suites+=("$dir-isolation:pg_isolation_regress:$dir:--dbname=isolation_regression $extension $tests") ;;
		esac
	done
}

# Copies a directory of PostgreSQL's source, which the server's user may not be
# able to read or write where it is, to WORKDIR/upstream.
upstream_source() {
	local src
	if [ ! -d "$top/test/upstream/$version" ]; then
		[ "$part" = "${upstream_refused:-}" ] ||
			not_run "$part" "(all)" "no reviewed differences for PostgreSQL $version"
		upstream_refused=$part
		return 1
	fi
	need_packages patch
	src=$("$here/get-postgres" "$version" --source) || { fail "$part" "(no source)"; return 1; }
	as_server mkdir -p "$WORKDIR/upstream/$(dirname "$1")"
	[ -d "$WORKDIR/upstream/$1" ] || as_server cp -r "$src/$1" "$WORKDIR/upstream/$(dirname "$1")/"
}

# The C functions of the regression tests: no package has them.
upstream_regress_so() {
	local lib
	[ ! -f "$WORKDIR/regress.so" ] || return 0
	if ! cc -O1 -fPIC -shared -I"$("$pg_config" --includedir-server)" -o "$WORKDIR/regress.so" \
		"$WORKDIR/upstream/src/test/regress/regress.c" >"$WORKDIR/regress.so.log" 2>&1; then
		fail "$part" "(build of regress.so)"
		return 1
	fi
	lib=$("$pg_config" --pkglibdir)
	cp "$lib/autoinc.so" "$lib/refint.so" "$WORKDIR/"
}

# upstream_group PART SUITE:PROGRAM:DIRECTORY:OPTIONS...
#
# Runs suites on one server.  If outputs are not what they should be, the suites
# concerned are run on another server with heap, and the extension: catalogs list
# what the extension adds, and what heap prints is then what is to be expected.
upstream_group() {
	local part=$1 suite name status n again=()
	local verdicts=$WORKDIR/$part.verdicts heap=$WORKDIR/$part.heap
	shift
	upstream_run "$part" inplace "$@" || return 0
	for suite in "$@"; do
		upstream_compare inplace "$suite" >"$verdicts" || again+=("$suite")
	done
	if [ ${#again[@]} -gt 0 ]; then
		echo "$part: some differ; the same with heap, to compare: $(printf '%s ' "${again[@]%%:*}")"
		upstream_run "$part" heap "${again[@]}" || true
	fi
	for suite in "$@"; do
		name=${suite%%:*}
		rm -rf "$results/upstream/$name"
		: >"$heap"
		if [ -d "$WORKDIR/upstream-out/heap/$name/results" ]; then
			upstream_compare heap "$suite" >"$heap" || true
			upstream_compare inplace "$suite" "$WORKDIR/upstream-out/heap/$name/results" "$heap" >"$verdicts" || true
		else
			upstream_compare inplace "$suite" >"$verdicts" || true
		fi
		n=0
		local t
		while read -r status t; do
			n=$((n + 1))
			case $status in
				same|order|patch) ok "$part" "$name/$t" ;;
				*) fail "$part" "$name/$t" "$status; see upstream/$name/$t.actual" ;;
			esac
		done <"$verdicts"
		echo "$part: $name: $n tests: $(cut -d' ' -f1 "$verdicts" | sort | uniq -c | tr -s ' \n' ' ')"
		if [ $n = 0 ]; then
			fail "$part" "$name" "ran no test"
			tail -20 "$WORKDIR/upstream-out/inplace/$name.out"
		fi
	done
}

# upstream_run PART METHOD SUITE:...  Outputs are in WORKDIR/upstream-out/METHOD.
upstream_run() {
	local part=$1 method=$2 suite name program dir options out server
	server=$1-$2
	shift 2
	# A part may have several groups.
	while [ -e "$WORKDIR/$server.log" ]; do server+=+; done
	{
		cat "$WORKDIR/test/temp.conf"
		echo "default_table_access_method = '$method'"
		# The outputs of SQL tests say which method an index has; where nothing
		# does, indexes are inplace_btree, as is the default.
		[[ $1 == isolation:* ]] || echo "inplace.default_index_method = 'btree'"
		echo "wal_consistency_checking = ''"
		echo "max_connections = 100"
		echo "restart_after_crash = on"
		[[ $1 != contrib/test_decoding:* ]] || cat "$WORKDIR/upstream/contrib/test_decoding/logical.conf"
	} >"$WORKDIR/upstream.add"
	new_server "$bindir" "$server" "$WORKDIR/upstream.add" ||
		{ fail "$part" "($server start)"; return 1; }
	for suite in "$@"; do
		IFS=: read -r name program dir options <<<"$suite"
		out=$WORKDIR/upstream-out/$method/$name
		dir=$WORKDIR/upstream/$dir
		as_server mkdir -p "$out"
		[ "$version" = 15 ] || options="--expecteddir=$dir $options"
		[ "$program" = pg_regress ] || program=../isolation/$program
		cd "$dir" || return 1  # some tests read files of theirs
		# shellcheck disable=SC2086  # the options are words
		interruptible as_server env PATH="$bindir:$PATH" PGUSER=postgres timeout 3000 \
			"$pgxs/test/regress/$program" \
			--bindir="$bindir" --host="$WORKDIR/$server.sock" --port=5432 --user=postgres \
			--inputdir="$dir" --outputdir="$out" --load-extension=inplace $options \
			>"$out.out" 2>&1 </dev/null || true
		cd "$WORKDIR" || return 1
	done
	if stop_server "$server" fast; then remove_server "$server"; else fail "$part" "($server stop)"; fi
	check_log "$part" "$crash" "$WORKDIR/$server.log"
}

# The names of a suite's tests.
upstream_names() {
	local name program dir options word
	IFS=: read -r name program dir options <<<"$1"
	for word in $options; do
		case $word in
			--schedule=*) sed -n 's/^test: *//p' "$WORKDIR/upstream/$dir/${word#*=}" ;;
			--*) ;;
			*) echo "$word" ;;
		esac
	done
}

# upstream_compare METHOD SUITE:... [HEAP HEAP_VERDICTS]
upstream_compare() {
	local method=$1 name=${2%%:*} dir kind
	dir=$(cut -d: -f3 <<<"$2")
	kind=$name
	[ "$method" = inplace ] || kind=heap-$name
	upstream_names "$2" | "$WORKDIR/test/upstream/compare.py" \
		"$WORKDIR/upstream-out/$method/$name/results" "$WORKDIR/upstream/$dir/expected" \
		"$WORKDIR/test/upstream/$version/$kind" "$results/upstream/$kind" "${@:3}"
}

# The TAP tests start their servers themselves: an initdb of ours does what is
# needed (see there).  test/upstream/VERSION/recovery/NAME.patch is a reviewed change
# of a test, its reasons first; NAME.skip says why a test cannot be run at all.  UPSTREAM_TAP limits it to tests with that in the name.
part_upstream_recovery() {
	local part=upstream-recovery dir=$WORKDIR/upstream/src/test/recovery t name
	local reviewed=$WORKDIR/test/upstream/$version/recovery
	upstream_source src/test/recovery || return 0
	upstream_source src/test/regress || return 0
	upstream_regress_so || return 0
	for t in "$reviewed"/*.patch; do
		[ -e "$t" ] || continue
		as_server patch -s -N -F0 -p1 -d "$dir" <"$t" >"$WORKDIR/patch.out" 2>&1 || {
			fail "$part" "$(basename "$t")" "does not apply"
			cat "$WORKDIR/patch.out"
		}
	done
	as_server mkdir -p "$WORKDIR/upstream-bin" "$WORKDIR/upstream-tap/log"
	local ports
	ports=$(ports_dir)
	as_server cp "$WORKDIR/test/initdb" "$WORKDIR/upstream-bin/"
	for t in "$dir"/t/*${UPSTREAM_TAP:-}*.pl; do
		name=$(basename "$t" .pl)
		if [ -e "$reviewed/$name.skip" ]; then
			not_run "$part" "$name" "$(cat "$reviewed/$name.skip")"
			continue
		fi
		wait_for_turn
		upstream_tap "$dir" "$name" &
	done
	wait
	# Those that crash servers on purpose do so with other signals.
	check_log "$part" "terminated by signal (6|11)|inconsistent page found|$leaks" "$WORKDIR/upstream-tap"
}

# upstream_tap DIRECTORY NAME
upstream_tap() {
	local part=upstream-recovery rc=0 start=$SECONDS tap=$WORKDIR/upstream-tap/$2 reason
	local out=$results/upstream-recovery.$2.out injection=no
	[[ $("$pg_config" --configure) != *--enable-injection-points* ]] || injection=yes
	# As remove_workdir would do it, if this were not a process of its own.
	trap '[ -z "${INTERRUPTIBLE_PID:-}" ] || end_processes "$INTERRUPTIBLE_PID"; exit 130' TERM
	cd "$1" || return 1
	as_server mkdir -p "$tap/log"
	interruptible as_server env PATH="$WORKDIR/upstream-bin:$bindir:$PATH" PG_REGRESS="$pgxs/test/regress/pg_regress" \
		REAL_BINDIR="$bindir" WITH_EXTENSION=yes CLUSTER_TEMPLATES="$WORKDIR/upstream-templates" \
		PERL5LIB="$pgxs/test/perl" TESTDIR="$tap" TESTLOGDIR="$tap/log" TESTDATADIR="$tap/data" \
		enable_injection_points=$injection PG_TEST_PORT_DIR="$ports" PG_TEST_TIMEOUT_DEFAULT=180 \
		REGRESS_SHLIB="$WORKDIR/regress.so" EXTRA_REGRESS_OPTS="--load-extension=inplace" \
		timeout 1800 prove -v "t/$2.pl" >"$out" 2>&1 </dev/null || rc=$?
	reason=$(sed -nE 's/^t\/[^ ]+ \.+ skipped: *//p' "$out")
	if [ -n "$reason" ]; then
		not_run "$part" "$2" "$reason"
	elif [ $rc = 0 ]; then
		ok "$part" "$2"
		echo "$part: $2 ok ($((SECONDS - start)) s)"
	else
		fail "$part" "$2"
		grep -aE -A6 '^not ok|^#.*Failed|Dubious|died|Bail out' "$out" | head -30
		find "$tap" \( -name '*.log' -o -name 'regress_log_*' \) -size -20000k -exec cp --parents {} "$results" \; 2>/dev/null || true
	fi
	rm -rf "$tap/data" "$tap"/tmp_check/t_*
}
