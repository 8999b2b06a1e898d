
-- The index access method.

CREATE FUNCTION inplace.btree_handler(internal) RETURNS index_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'inplace_btree_handler';

COMMENT ON FUNCTION inplace.btree_handler(internal) IS
'handler of the index access method inplace_btree';

CREATE ACCESS METHOD inplace_btree TYPE INDEX HANDLER inplace.btree_handler;

COMMENT ON ACCESS METHOD inplace_btree IS
'B-tree indexes of inplace tables: an update of their columns leaves all other indexes alone';

CREATE FUNCTION inplace.set_index_method(index regclass, method name)
RETURNS boolean
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_set_index_method';

COMMENT ON FUNCTION inplace.set_index_method(regclass, name) IS
'makes an inplace_btree index of a btree index (without reading or writing it) or a btree of an inplace_btree (by building it anew if its table is an inplace table), under ACCESS EXCLUSIVE lock of the table; returns whether it was not that already; owners only';
