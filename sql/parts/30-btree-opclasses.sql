
-- Operator classes of inplace_btree: those of btree, under the same names and
-- in the same schemas, so that they are found as btree's are.
--
-- Two classes of a family for one input type (text_ops, varchar_ops) share the
-- family's operators, which depend on the first of them, the default one if
-- there is one.  The other is made with nothing but its STORAGE, which is what
-- pg_dump writes for such a class.  (name_ops has a storage type of its own.)
--
-- CREATE EXTENSION mirrors what the server itself brings.  The rest would be
-- part of the extension then, so not be in a dump, while its types are restored
-- after the extension, or before it by another extension.

CREATE FUNCTION inplace.mirror_opclasses(builtin_only boolean DEFAULT false)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    btree CONSTANT oid := (SELECT oid FROM pg_am WHERE amname = 'btree');
    mirror CONSTANT oid := (SELECT oid FROM pg_am WHERE amname = 'inplace_btree');
    -- the first object that is not the server's own
    beyond CONSTANT oid := CASE WHEN builtin_only THEN 16384 ELSE 4294967295 END;
    family record;
    class record;
    family_oid oid;
    items text;
    created integer := 0;
BEGIN
    FOR family IN
        SELECT f.oid, f.opfname, f.opfnamespace,
               format('%I.%I', n.nspname, f.opfname) AS name
        FROM pg_opfamily f JOIN pg_namespace n ON n.oid = f.opfnamespace
        WHERE f.opfmethod = btree AND f.oid < beyond
          AND NOT pg_is_other_temp_schema(n.oid)
        ORDER BY f.oid
    LOOP
        SELECT f.oid INTO family_oid FROM pg_opfamily f
        WHERE f.opfmethod = mirror AND f.opfname = family.opfname
          AND f.opfnamespace = family.opfnamespace;
        IF NOT FOUND THEN
            EXECUTE format('CREATE OPERATOR FAMILY %s USING inplace_btree', family.name);
            SELECT f.oid INTO STRICT family_oid FROM pg_opfamily f
            WHERE f.opfmethod = mirror AND f.opfname = family.opfname
              AND f.opfnamespace = family.opfnamespace;
            created := created + 1;
        END IF;

        FOR class IN
            SELECT format('%I.%I', n.nspname, c.opcname) AS name,
                   c.opcdefault, c.opcintype,
                   coalesce(nullif(c.opckeytype, 0), c.opcintype)::regtype AS storage
            FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace
            WHERE c.opcmethod = btree AND c.opcfamily = family.oid
              AND c.oid < beyond
              AND NOT EXISTS (SELECT FROM pg_opclass m
                              WHERE m.opcmethod = mirror
                                AND m.opcname = c.opcname
                                AND m.opcnamespace = c.opcnamespace)
            ORDER BY c.opcdefault DESC, c.oid
        LOOP
            items := inplace.missing_opfamily_items(family.oid, family_oid, class.opcintype);
            EXECUTE format('CREATE OPERATOR CLASS %s %s FOR TYPE %s USING inplace_btree FAMILY %s AS %s',
                           class.name,
                           CASE WHEN class.opcdefault THEN 'DEFAULT' END,
                           class.opcintype::regtype, family.name,
                           concat_ws(', ', items, format('STORAGE %s', class.storage)));
            created := created + 1;
        END LOOP;

        items := inplace.missing_opfamily_items(family.oid, family_oid, NULL);
        IF items IS NOT NULL THEN
            EXECUTE format('ALTER OPERATOR FAMILY %s USING inplace_btree ADD %s',
                           family.name, items);
        END IF;
    END LOOP;
    RETURN created;
END $$;

COMMENT ON FUNCTION inplace.mirror_opclasses(boolean) IS
'creates for inplace_btree what it lacks of btree''s operator families, classes, operators and support functions (with builtin_only: of the server''s own ones, as CREATE EXTENSION does); returns the number of families and classes created; superusers only';

REVOKE ALL ON FUNCTION inplace.mirror_opclasses(boolean) FROM PUBLIC;

-- The list for CREATE OPERATOR CLASS and ALTER OPERATOR FAMILY ... ADD of what
-- a family lacks of another; of one input type, or (null) of all types.
CREATE FUNCTION inplace.missing_opfamily_items(original oid, mirror oid, intype oid)
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
SELECT string_agg(item, ', ')
FROM (SELECT format('OPERATOR %s %s', o.amopstrategy, o.amopopr::regoperator) AS item
      FROM pg_amop o
      WHERE o.amopfamily = original
        AND (intype IS NULL OR (o.amoplefttype = intype AND o.amoprighttype = intype))
        AND NOT EXISTS (SELECT FROM pg_amop m
                        WHERE m.amopfamily = mirror
                          AND m.amoplefttype = o.amoplefttype
                          AND m.amoprighttype = o.amoprighttype
                          AND m.amopstrategy = o.amopstrategy)
      UNION ALL
      SELECT format('FUNCTION %s (%s, %s) %s', p.amprocnum,
                    p.amproclefttype::regtype, p.amprocrighttype::regtype,
                    p.amproc::oid::regprocedure)
      FROM pg_amproc p
      WHERE p.amprocfamily = original
        AND (intype IS NULL OR (p.amproclefttype = intype AND p.amprocrighttype = intype))
        AND NOT EXISTS (SELECT FROM pg_amproc m
                        WHERE m.amprocfamily = mirror
                          AND m.amproclefttype = p.amproclefttype
                          AND m.amprocrighttype = p.amprocrighttype
                          AND m.amprocnum = p.amprocnum)) s
$$;

COMMENT ON FUNCTION inplace.missing_opfamily_items(oid, oid, oid) IS
'part of inplace.mirror_opclasses';

SELECT inplace.mirror_opclasses(true);
