-- inplace.check looks at entries of GIN, hash and GiST indexes, and at their keys
set allow_system_table_mods = on;
create table co(id int, h int, g int, a int[], b int[], p point, q point, t text) using inplace;
insert into co select i, i % 50, i % 50 + 100, array[i % 30, 100 + i % 7], array[i % 30 + 500], point(i, i), point(i, -i),
	case when i % 3 > 0 then 'x' end from generate_series(1, 2000) i;
create index co_h on co using hash (h);
create index co_g on co using hash (g) where id <= 1000;
create index co_a on co using gin (a);
create index co_b on co using gin (b) with (fastupdate = off);
create index co_two on co using gin (a, b);
create index co_p on co using gist (p);
create index co_q on co using gist (q) include (h);
create index co_t on co using hash (t);
-- former keys, pending ones, lists and trees of TIDs are no findings; nor are rows without a key, and nulls
select * from inplace.check('co');
update co set h = h + 1, a = a || 17, p = p + point(1, 1) where id % 4 = 0;
update co set b = null, q = null, g = g + 1 where id % 5 = 0;
update co set b = '{}', h = -1 where id % 100 = 0;
begin;
update co set a = '{1}', h = 7, g = 7, p = '(0,0)', q = '(0,0)';
rollback;
select * from inplace.check('co');
vacuum (index_cleanup on) co;
select * from inplace.check('co');

-- 1. rows that no entry leads to
create function ready(yes boolean) returns void language sql as $$
	update pg_index set indisready = yes where indrelid = 'co'::regclass $$;
select ready(false);
insert into co values (2001, 5, 105, '{5,105}', '{505}', '(5,5)', '(5,-5)', 'x');
insert into co(id, h) values (2002, 6);
select ready(true);
select block is not null as block, item is not null as item, index, severity, problem from inplace.check('co') order by index::text, problem;

-- 2. entries that lead nowhere
reindex table co;
select * from inplace.check('co');
delete from co where id = 1500;
select ready(false);
vacuum co;
select ready(true);
select count(*), index, severity, problem from inplace.check('co') group by 2, 3, 4 order by index::text, problem;
reindex table co;
select * from inplace.check('co');

-- 3. each row has an entry, but of another key: indexes change places
create function exchange(x regclass, y regclass) returns void language sql as $$
	update pg_class c set relfilenode = o.relfilenode from pg_class o
		where (c.oid, o.oid) in ((x, y), (y, x)) $$;
create index co_h2 on co using hash (id);
create index co_q2 on co using gist (q);
select exchange('co_h', 'co_h2'), exchange('co_a', 'co_b'), exchange('co_p', 'co_q2');
select count(*), index, severity, problem from inplace.check('co') group by 2, 3, 4 order by index::text, severity, problem;
drop table co;
drop function ready, exchange;
