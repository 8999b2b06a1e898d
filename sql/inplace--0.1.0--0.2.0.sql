-- complain if the script is sourced in psql
\echo Use "ALTER EXTENSION inplace UPDATE TO '0.2.0'" to load this file. \quit

-- Every object of 0.2.0 is as 0.1.0 made it.  What one of sql/parts/ changes from
-- now on has to be done here, too (test/sql/update_extension.sql compares).
