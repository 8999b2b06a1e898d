
-- Operator classes of inplace_btree: those of btree (src/ddl/opclass.c).

CREATE FUNCTION inplace.mirror_opclasses()
RETURNS integer
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_mirror_opclasses';

COMMENT ON FUNCTION inplace.mirror_opclasses() IS
'creates for inplace_btree what it lacks of btree''s operator classes, and drops what is left of dropped ones, if no index uses it; returns the number of classes created; needed only after the server has run without inplace in shared_preload_libraries; superusers only';

REVOKE ALL ON FUNCTION inplace.mirror_opclasses() FROM PUBLIC;

SELECT inplace.mirror_opclasses();
