
-- Adaptive freezing.

CREATE FUNCTION inplace.freeze_stats(
    rel oid,
    OUT all_visible_sets bigint,
    OUT all_visible_unsets bigint,
    OUT all_frozen_sets bigint,
    OUT all_frozen_unsets bigint,
    OUT early_unsets bigint,
    OUT early_frozen_unsets bigint,
    OUT pages_frozen bigint,
    OUT observations double precision,
    OUT mean_seconds double precision,
    OUT deviation_seconds double precision,
    OUT threshold_seconds double precision,
    OUT fill_observations double precision,
    OUT fill_probability double precision,
    OUT target_seconds integer)
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_stats';

COMMENT ON FUNCTION inplace.freeze_stats(oid) IS
'behind the view inplace.stat_freeze';

CREATE FUNCTION inplace.set_freeze_options(
    rel regclass,
    adaptive_freezing boolean DEFAULT NULL,
    target_freeze_duration integer DEFAULT NULL) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'inplace_set_freeze_options';

COMMENT ON FUNCTION inplace.set_freeze_options(regclass, boolean, integer) IS
'gives a table values of its own for inplace.adaptive_freezing and inplace.target_freeze_duration (seconds), or, if null, takes them away; for its owner';

CREATE FUNCTION inplace.freeze_options(
    rel oid,
    OUT adaptive_freezing boolean,
    OUT target_freeze_duration integer)
LANGUAGE C STRICT STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_options';

COMMENT ON FUNCTION inplace.freeze_options(oid) IS
'what a VACUUM of the table by this session would go by: the table''s own values, else the settings';

CREATE VIEW inplace.stat_freeze AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, s.*, o.*
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amhandler = 'inplace.table_handler'::pg_catalog.regproc
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL inplace.freeze_stats(c.oid) s
CROSS JOIN LATERAL inplace.freeze_options(c.oid) o
WHERE c.relkind IN ('r', 'm');

COMMENT ON VIEW inplace.stat_freeze IS
'adaptive freezing: how long pages of each table stay unchanged';
COMMENT ON COLUMN inplace.stat_freeze.relid IS
'OID of the table';
COMMENT ON COLUMN inplace.stat_freeze.schemaname IS
'schema of the table';
COMMENT ON COLUMN inplace.stat_freeze.relname IS
'name of the table';
COMMENT ON COLUMN inplace.stat_freeze.all_visible_sets IS
'times that VACUUM, or COPY FREEZE, set a page all-visible';
COMMENT ON COLUMN inplace.stat_freeze.all_visible_unsets IS
'times that a change took that back';
COMMENT ON COLUMN inplace.stat_freeze.all_frozen_sets IS
'times that VACUUM, or COPY FREEZE, set a page all-frozen';
COMMENT ON COLUMN inplace.stat_freeze.all_frozen_unsets IS
'times that a change, or a row lock, took that back';
COMMENT ON COLUMN inplace.stat_freeze.early_unsets IS
'unsets by update, delete or lock that came sooner than the target duration after VACUUM''s work on the page';
COMMENT ON COLUMN inplace.stat_freeze.early_frozen_unsets IS
'unsets of all-frozen of pages with rows, by inserts as well, that came so early: freezing that was in vain';
COMMENT ON COLUMN inplace.stat_freeze.pages_frozen IS
'times that VACUUM froze rows of a page';
COMMENT ON COLUMN inplace.stat_freeze.observations IS
'weight of the observed durations, until rows were updated, deleted or locked; halved when there are too many';
COMMENT ON COLUMN inplace.stat_freeze.mean_seconds IS
'mean of the observed durations';
COMMENT ON COLUMN inplace.stat_freeze.deviation_seconds IS
'standard deviation of the observed durations';
COMMENT ON COLUMN inplace.stat_freeze.threshold_seconds IS
'youngest age at which VACUUM freezes a page without room; null if none';
COMMENT ON COLUMN inplace.stat_freeze.fill_observations IS
'weight of the observed durations until rows were inserted into a page with room';
COMMENT ON COLUMN inplace.stat_freeze.fill_probability IS
'chance that a page with room gets a row within the target duration; null if too little is known';
COMMENT ON COLUMN inplace.stat_freeze.target_seconds IS
'the target duration that the last VACUUM went by';
COMMENT ON COLUMN inplace.stat_freeze.adaptive_freezing IS
'what a VACUUM by this session would go by';
COMMENT ON COLUMN inplace.stat_freeze.target_freeze_duration IS
'what a VACUUM by this session would go by, in seconds';

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

CREATE FUNCTION inplace.freeze_worthwhile(
    durations double precision[],
    sets double precision,
    age double precision,
    target double precision) RETURNS boolean
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'inplace_freeze_worthwhile';

COMMENT ON FUNCTION inplace.freeze_worthwhile(double precision[], double precision, double precision, double precision) IS
'whether adaptive freezing would freeze a page of this age, given the same: less than 5 % chance of a change, or too few observations';

CREATE FUNCTION inplace.visibility_summary(
    rel regclass,
    OUT age_from interval,
    OUT age_to interval,
    OUT pages bigint,
    OUT all_visible bigint,
    OUT all_frozen bigint)
RETURNS SETOF record
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'inplace_visibility_summary';

COMMENT ON FUNCTION inplace.visibility_summary(regclass) IS
'pages of an inplace table by the time since their last change, how many of these are all-visible and all-frozen; reads the whole table';

REVOKE ALL ON FUNCTION inplace.visibility_summary(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION inplace.visibility_summary(regclass) TO pg_stat_scan_tables;
