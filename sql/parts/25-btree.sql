
-- The index access method.

CREATE FUNCTION inplace.btree_handler(internal) RETURNS index_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'inplace_btree_handler';

COMMENT ON FUNCTION inplace.btree_handler(internal) IS
'handler of the index access method inplace_btree';

CREATE ACCESS METHOD inplace_btree TYPE INDEX HANDLER inplace.btree_handler;

COMMENT ON ACCESS METHOD inplace_btree IS
'B-tree indexes of inplace tables: an update of their columns leaves all other indexes alone';
