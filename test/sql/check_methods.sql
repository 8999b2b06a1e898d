-- inplace.check passes over indexes of methods that it does not know, and says so
create table cm(id int, p point, a int[]) using inplace;
insert into cm select g, point(g, g), array[g] from generate_series(1, 100) g;
create index cm_gist on cm using gist (p);
create index cm_spgist on cm using spgist (p);
create index cm_gin on cm using gin (a);
create index cm_hash on cm using hash (id);
create index cm_brin on cm using brin (id);
select * from inplace.check('cm');
-- one that is GiST under another name, as an extension's method is
create access method other_gist type index handler gisthandler;
create operator class point_ops for type point using other_gist as
	operator 11 |>>(point, point),
	operator 15 <->(point, point) for order by float_ops,
	function 1 (point, point) gist_point_consistent(internal, point, smallint, oid, internal),
	function 2 (point, point) gist_box_union(internal, internal),
	function 3 (point, point) gist_point_compress(internal),
	function 5 (point, point) gist_box_penalty(internal, internal, internal),
	function 6 (point, point) gist_box_picksplit(internal, internal),
	function 7 (point, point) gist_box_same(box, box, internal),
	function 8 (point, point) gist_point_distance(internal, point, smallint, oid, internal),
	storage box;
create index cm_other on cm using other_gist (p point_ops);
select * from inplace.check('cm');
drop table cm;
drop access method other_gist cascade;
