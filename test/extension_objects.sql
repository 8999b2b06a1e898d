-- The extension's objects, each with all that defines it but for numbers that are
-- others in each database.  For tests: \i, as superuser.
CREATE FUNCTION pg_temp.extension_objects(OUT object text, OUT definition text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
	m record;
	fields jsonb;
	own regclass;
BEGIN
	FOR m IN
		SELECT d.classid, d.objid, i.type || ' ' || i.identity AS name
		FROM pg_depend d, pg_identify_object(d.classid, d.objid, 0) i
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'inplace')
		UNION ALL
		SELECT 'pg_extension'::regclass, oid, 'extension ' || extname FROM pg_extension WHERE extname = 'inplace'
	LOOP
		EXECUTE format('SELECT to_jsonb(c) FROM %s c WHERE oid = $1', m.classid::regclass)
			INTO STRICT fields USING m.objid;
		-- Not what is an OID or an xid, nor how large something has become.
		SELECT fields - array_agg(attname::text) - '{relpages,reltuples,relallvisible,relallfrozen}'::text[]
			INTO fields FROM pg_attribute
			WHERE attrelid = m.classid AND atttypid IN ('oid'::regtype, 'oid[]'::regtype, 'oidvector'::regtype,
				'xid'::regtype, 'pg_node_tree'::regtype);
		object := m.name;
		definition := concat_ws(E'\n', fields, obj_description(m.objid, m.classid::regclass::name),
			(SELECT initprivs::text FROM pg_init_privs p WHERE p.objoid = m.objid AND p.classoid = m.classid AND objsubid = 0));
		IF m.classid = 'pg_proc'::regclass THEN
			definition := concat_ws(E'\n', definition, pg_get_functiondef(m.objid));
		ELSIF m.classid = 'pg_class'::regclass THEN
			own := m.objid;
			definition := concat_ws(E'\n', definition, pg_get_viewdef(own),
				(SELECT amname FROM pg_am WHERE oid = (SELECT relam FROM pg_class WHERE oid = own)),
				(SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, attacl,
						col_description(own, attnum)), E'\n' ORDER BY attnum)
				 FROM pg_attribute WHERE attrelid = own AND attnum > 0));
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;
