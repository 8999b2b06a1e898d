
-- Adaptive freezing.

CREATE FUNCTION inplace.freeze_stats(
    rel oid,
    OUT all_visible_sets bigint,
    OUT all_visible_unsets bigint,
    OUT all_frozen_sets bigint,
    OUT all_frozen_unsets bigint,
    OUT early_unsets bigint,
    OUT pages_frozen bigint,
    OUT observations double precision,
    OUT mean_seconds double precision,
    OUT deviation_seconds double precision,
    OUT threshold_seconds double precision,
    OUT target_seconds integer)
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_stats';

COMMENT ON FUNCTION inplace.freeze_stats(oid) IS
'behind the view inplace.stat_freeze';

CREATE VIEW inplace.stat_freeze AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, s.*
FROM pg_class c
JOIN pg_am a ON a.oid = c.relam AND a.amname = 'inplace'
JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL inplace.freeze_stats(c.oid) s
WHERE c.relkind IN ('r', 'm');

COMMENT ON VIEW inplace.stat_freeze IS
'adaptive freezing: how long pages of each table stay unchanged';
COMMENT ON COLUMN inplace.stat_freeze.early_unsets IS
'pages changed sooner than the target duration after they were set all-visible';
COMMENT ON COLUMN inplace.stat_freeze.observations IS
'weight of the observed durations; halved when there are too many';
COMMENT ON COLUMN inplace.stat_freeze.threshold_seconds IS
'youngest age at which VACUUM freezes a page; null if none';

GRANT SELECT ON inplace.stat_freeze TO PUBLIC;

CREATE FUNCTION inplace.freeze_probability(
    durations double precision[],
    sets double precision,
    age double precision,
    target double precision) RETURNS double precision
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_probability';

COMMENT ON FUNCTION inplace.freeze_probability(double precision[], double precision, double precision, double precision) IS
'chance that a page of this age is changed within the target duration, in seconds, if of so many pages set all-visible some were changed after these durations';
