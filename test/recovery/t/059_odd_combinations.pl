# Unusual combinations of what SQL offers must print the same on heap and inplace tables:
# cursors over rows that move under them, deferred constraints, rules, triggers and row
# movement, savepoints in procedures that commit, and all index methods over many types.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/..";
use InplaceTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# (autovacuum's ANALYZE might change plans, and so the order of notices)
my $node = new_node('node', conf => "autovacuum_naptime = '1d'\n");
$node->start;
heap_beside_inplace($node, qw(btree_gist btree_gin pg_trgm ltree hstore intarray bloom citext cube seg lo));

# Each in a schema of its own, in the search path of new sessions (RESET ALL keeps it).
my $n = 0;
sub same
{
	my ($what, $sql) = @_;
	$n++;
	one($node, "CREATE SCHEMA s$n; GRANT ALL ON SCHEMA s$n TO public; ALTER DATABASE $_ SET search_path = s$n, public", $_) foreach qw(heap inplace);
	same_as_heap($node, $what, $sql);
}

same('cursors over what is updated in place or moved, deferred exclusion constraints', <<'SQL');
create table r (id int primary key, room int, during int4range, note text, exclude using gist (room with =,
	during with &&) deferrable initially deferred);
insert into r select g, g%3, int4range(g*10, g*10+10), 'n' from generate_series(1,30) g;
begin;
declare c cursor for select * from r where room=1 order by id for update;
move 2 in c;
fetch c;
update r set note='in place' where current of c;
update r set note='in place again' where current of c;
update r set during=int4range(10,20) where current of c;
update r set note='x', during=int4range(1000,1010) where current of c;
fetch c;
delete from r where current of c;
update r set note='gone' where current of c;
set constraints all immediate;
commit;
select * from r order by id;
begin;
declare c scroll cursor for select * from r where room=2 order by id;
fetch last c;
fetch backward 2 from c;
update r set note=note||'!' where id=8;
fetch backward 2 from c;
fetch forward all from c;
commit;
begin;
declare c cursor for select id, note from r where room=2;
fetch 2 from c;
update r set note='cur' where current of c returning *;
savepoint s;
delete from r where current of c returning id;
rollback to s;
update r set during = int4range(777, 778) where current of c returning *;
update r set during = int4range(777, 778), id=id+100 where current of c returning *;
commit;
select * from r order by id;
begin;
update r set during=int4range(0,1000) where id=2;
update r set during=int4range(0,1000) where id=5;
savepoint a;
set constraints all immediate;
rollback to a;
delete from r where id=5;
delete from r where room=2 and id<>2;
set constraints all immediate;
commit;
create table t (id int, v int, w text);
insert into t select g, g, repeat('x', 200) from generate_series(1,200) g;
begin;
declare c scroll cursor for select id, v from t where ctid >= '(1,5)' and ctid < '(3,2)';
select count(*) > 0 from t where ctid >= '(1,5)';
update t set v = v+1 where current of c;
update t set v = v+10 where current of c;
close c;
declare c scroll cursor with hold for select id, v from t tablesample bernoulli (10) repeatable (5);
commit;
select count(*), sum(v) - sum(id) from t;
begin isolation level repeatable read;
declare k scroll cursor with hold for select id, v from t where id <= 10 order by id;
declare k2 scroll cursor for select id, v from t where id <= 10;
fetch 3 from k;
fetch 3 from k2;
update t set v = -v where id <= 10;
fetch 3 from k;
fetch backward 5 from k;
fetch 3 from k2;
fetch backward all from k2;
fetch all from k2;
commit;
fetch all from k;
fetch first from k;
update t set v=1 where current of k;
close k;
create table p (id int, v int, part int) partition by list (part);
create table p1 partition of p for values in (1);
create table p2 partition of p for values in (2);
insert into p select g, g, 1+g%2 from generate_series(1,10) g;
begin;
declare c cursor for select * from p for update;
fetch 3 from c;
update p set v = 1000 where current of c returning tableoid::regclass, *;
update p set part = 3 - part where current of c returning tableoid::regclass, *;
update p set part = 3 - part where current of c returning tableoid::regclass, *;
fetch 5 from c;
delete from p where current of c returning *;
commit;
select tableoid::regclass, * from p order by id;
create table par (id int, v int);
create table chi (extra int) inherits (par);
insert into par select g, g from generate_series(1,4) g;
insert into chi select g, g, g from generate_series(5,8) g;
begin;
declare c cursor for select * from par for update;
fetch 6 from c;
update par set v = 99 where current of c returning tableoid::regclass, *;
update chi set extra = 77 where current of c returning *;
commit;
select tableoid::regclass, * from par order by id;
select * from chi order by id;
SQL

same('security barriers, INSTEAD OF triggers, rules', <<'SQL');
create table b (id int primary key, v int, secret bool default false, w text);
insert into b select g, g, g%3=0, 'w'||g from generate_series(1,20) g;
create view sb with (security_barrier) as select id, v, w from b where not secret with cascaded check option;
create function leak(t text) returns bool language plpgsql cost 0.0000001 as $$ begin raise notice 'leak %', t; return true; end $$;
update sb set v = v + 1 where leak(w) and id < 8 returning *;
delete from sb where leak(w) and id = 4 returning *;
insert into sb values (100, 1, 'x') on conflict (id) do update set v = 5 returning *;
insert into sb values (100, 1, 'x') on conflict (id) do update set v = 5 returning *;
insert into sb values (3, 1, 'x') on conflict (id) do update set v = 5 returning *;
create view sb2 as select *, v * 2 as dbl from sb where v < 50 with local check option;
update sb2 set v = 70 where id = 5;
update sb2 set dbl = 1;
update sb2 set v = 40 where id = 5 returning *;
create function io() returns trigger language plpgsql as $$ begin
 if tg_op = 'INSERT' then insert into b (id, v, w) values (new.id, new.v, new.w) on conflict (id) do update set v = b.v + 1000
	returning v into new.v; return new;
 elsif tg_op = 'UPDATE' then update b set v = new.v, w = old.w || '>' || new.w where id = old.id; if not found then return null; end if; return new;
 else delete from b where id = old.id; return old; end if; end $$;
create view iv as select id, v, w, ctid as t from b;
create trigger iot instead of insert or update or delete on iv for each row execute function io();
insert into iv values (1, 5, 'i'), (200, 5, 'j') returning id, v, w;
update iv set v = v * 2 from generate_series(1, 3) g where iv.id = g returning id, v, w;
update iv set v = v * 2, w = 'tw' from (values (1), (1)) g(x) where iv.id = g.x returning id, v, w;
delete from iv where id in (2, 200) returning id;
select * from b where id in (1,2,3,200) order by 1;
create table log (id int, o int, n int);
create rule ru as on update to b where new.v > 500 do also insert into log select old.id, old.v, new.v;
create rule rd as on delete to b where old.id = 7 do instead update b set w = 'not deleted' where id = old.id;
create rule ri as on insert to b where new.id = 300 do instead nothing;
update b set v = 501 where id < 4;
update b set v = v + 1 where id < 4;
delete from b where id in (6, 7, 8);
insert into b values (300), (301);
select * from log order by 1,2,3;
select * from b order by id;
drop rule ru on b;
drop rule rd on b;
drop rule ri on b;
SQL

same('transition tables, triggers and row movement', <<'SQL');
create table p (id int, k int, v text) partition by list (k);
create table p1 partition of p for values in (1);
create table p2 (v text, junk int, id int, k int);
alter table p2 drop junk;
alter table p attach partition p2 for values in (2);
create table p3 partition of p default;
create function tt() returns trigger language plpgsql as $$ declare o text; n text; begin
 if tg_op <> 'INSERT' then select string_agg(x::text, ' ' order by id, v) from ot x into o; end if; if tg_op <> 'DELETE' then
	select string_agg(x::text, ' ' order by id, v) from nt x into n; end if;
 raise notice '% % % old: % new: %', tg_name, tg_table_name, tg_op, o, n; return null; end $$;
create trigger ti after insert on p referencing new table as nt for each statement execute function tt();
create trigger tu after update on p referencing old table as ot new table as nt for each statement execute function tt();
create trigger td after delete on p referencing old table as ot for each statement execute function tt();
create trigger tu1 after update on p1 referencing old table as ot new table as nt for each statement execute function tt();
create function rt() returns trigger language plpgsql as $$ begin raise notice '% % % % %', tg_name, tg_table_name, tg_op, old,
	new; if tg_when = 'BEFORE' and tg_op <> 'DELETE' then new.v := new.v || '+'; return new; end if; return coalesce(new, old); end $$;
create trigger rb before insert or update or delete on p for each row execute function rt();
create trigger ra after insert or update or delete on p for each row execute function rt();
create constraint trigger rc after insert or update or delete on p deferrable initially deferred for each row
	when (pg_trigger_depth() = 0) execute function rt();
insert into p values (1,1,'a'),(2,2,'b'),(3,3,'c');
begin;
update p set k = k % 3 + 1;
update p set v = v || 'x' where id = 1;
update p1 set v = 'direct';
merge into p using (values (1, 1), (2, 1), (9, 2)) s(id, k) on p.id = s.id when matched and p.id = 2 then delete when matched then update set k = s.k
	when not matched then insert values (s.id, s.k, 'merged');
commit;
select tableoid::regclass, * from p order by id;
create unique index on p (id, k);
insert into p values (1, 1, 'dup'), (50, 2, 'new') on conflict (id, k) do update set v = excluded.v || p.v where p.id > 0
	returning tableoid::regclass, *;
insert into p values (1, 1, 'dup') on conflict (id, k) do update set k = 2;
with u as (update p set v = 'cte' where id = 1 returning *), i as (insert into p select id + 500, 7, v from u returning *), d as (delete from p
	where id = 3 returning *) select * from u union all select * from i union all select * from d;
copy p from stdin;
60	1	cp
61	2	cp
62	9	cp
\.
select tableoid::regclass, * from p order by id;
alter table p detach partition p2;
alter table p2 add check (k = 2);
update p2 set k = 2, v = 'det' returning *;
alter table p attach partition p2 for values in (2);
alter table p add column z int default 5 not null, add column gen int generated always as (k * 2) stored;
select * from p order by id;
update p set k = 1 where k = 2 returning *;
SQL

same('ON CONFLICT: expressions and predicates; forced row level security', <<'SQL');
create table oc (id int, kind text, active bool, n int default 0, constraint nn check (n < 5));
create unique index oc1 on oc (lower(kind)) where active;
create unique index oc2 on oc (id) include (n);
create unique index oc3 on oc ((id % 10), kind collate "C" text_pattern_ops) where n >= 0;
insert into oc values (1, 'A', true) on conflict (lower(kind)) where active do update set n = oc.n + 1;
insert into oc values (2, 'a', true) on conflict (lower(kind)) where active do update set n = oc.n + 1, kind = oc.kind || 'Z' returning *;
insert into oc values (2, 'az', true) on conflict (lower(kind)) where active do update set n = oc.n + 1, active = false returning *;
insert into oc values (2, 'az', true) on conflict (lower(kind)) where active and id > 0 do update set n = oc.n + 1 returning *;
insert into oc values (3, 'az', false) on conflict (lower(kind)) do nothing;
insert into oc values (11, 'az', false) on conflict (lower(kind)) where active do nothing returning *;
insert into oc values (12, 'az', false), (22, 'az', false) on conflict do nothing returning *;
insert into oc values (2, 'q', true) on conflict (id) do update set n = 10;
insert into oc values (2, 'q', true) on conflict (id) do update set id = 1;
insert into oc values (12, 'q', true), (2, 'r', false) on conflict (id) do update set kind = excluded.kind, active = excluded.active returning *,
	xmax <> 0;
insert into oc values (2, 'q', true) on conflict ((id % 10), kind collate "C" text_pattern_ops) where n >= 0 do update set n = 4 returning *;
select * from oc order by id;
create role rls_u;
grant all on oc to rls_u;
alter table oc owner to rls_u;
alter table oc enable row level security, force row level security;
create policy p1 on oc using (n < 3) with check (n < 4 and kind <> 'bad');
set role rls_u;
select * from oc order by id;
update oc set n = n + 1 returning *;
update oc set n = n + 3;
merge into oc using (values (1), (12), (70)) s(id) on oc.id = s.id when matched then update set kind = 'm' || oc.kind when not matched then insert
	values (s.id, 'bad', true);
merge into oc using (values (1), (12), (70)) s(id) on oc.id = s.id when matched then update set kind = 'm' || oc.kind when not matched then insert
	values (s.id, 'good', true);
insert into oc values (2, 'xx', true, 0) on conflict (id) do update set n = 0;
begin;
declare c cursor for select * from oc for update;
fetch c;
update oc set kind = 'cur' where current of c;
commit;
reset role;
select id, kind, n from oc order by id;
drop owned by rls_u cascade;
drop role rls_u;
SQL

same('procedures that commit, savepoints, volatile functions, prepared transactions', <<'SQL');
create table s (id int primary key, v int, t text);
insert into s select g, 0, repeat('t', g % 100) from generate_series(1,500) g;
create index on s (v);
create procedure storm(n int) language plpgsql as $$ declare i int; begin
 for i in 1..n loop
  begin
   update s set v = v + 1, t = t || 'y' where id = i % 500 + 1;
   begin update s set v = v + 100 where id between i % 500 and i % 500 + 3; if i % 3 = 0 then raise exception 'x'; end if; exception
	when others then null; end;
   insert into s values (1000 + i, i, 'new'); if i % 5 = 0 then perform 1 / 0; end if; delete from s where id = 1000 + i - 7;
   if i % 11 = 0 then insert into s values (1, 1); end if;
  exception when division_by_zero then update s set v = v + 7 where id = i % 500 + 1; when unique_violation then delete from s
	where id = 1000 + i - 3; end;
  if i % 250 = 0 then commit; elsif i % 251 = 0 then rollback; end if;
 end loop; end $$;
call storm(2000);
select count(*), sum(v), sum(id), sum(length(t)) from s;
select md5(string_agg(s::text, ',' order by id)) from s;
set enable_seqscan = off;
set enable_bitmapscan = off;
select count(*), sum(v) from s where v >= 0;
select v, count(*) from s where v between 100 and 120 group by v order by v;
reset all;
create procedure chain() language plpgsql as $$ declare r record; begin for r in select * from s
	where id <= 20 order by id loop update s set v = -r.v where id = r.id; commit and chain; update s set t = 'chained'
	where id = r.id; if r.id % 2 = 0 then rollback and chain; end if; end loop; end $$;
begin isolation level repeatable read;
commit;
call chain();
select id, v, t from s where id <= 20 order by id;
begin;
update s set v = 1 where id = 1;
savepoint a;
update s set v = 2 where id = 1;
savepoint b;
delete from s where id = 1;
savepoint c;
insert into s values (1, 3, 'again');
savepoint d;
update s set v = 4 where id = 1;
select v from s where id = 1;
rollback to d;
select v from s where id = 1;
rollback to c;
select v from s where id = 1;
insert into s values (1, 9, 'again2');
release a;
select v, t from s where id = 1;
update s set id = 1, v = 10 where id = 1;
commit;
select v,t from s where id = 1;
begin;
select id from s where id = 5 for key share;
savepoint a;
select id from s where id = 5 for update;
savepoint b;
update s set v = 77 where id = 5;
rollback to a;
update s set v = 78 where id = 5 returning v;
select id from s where id = 5 for no key update;
rollback to a;
select v <> 78 from s where id = 5;
prepare transaction 'p1';
begin;
update s set v = 5555 where id = 6;
savepoint x;
update s set v = 5556 where id = 7;
rollback to x;
select id from s where id = 8 for share;
prepare transaction 'p2';
select id from s where id in (5,6,7,8) order by id for update skip locked;
select id from s where id = 5 for key share nowait;
update s set v = 3 where id = 7 returning v;
rollback prepared 'p1';
commit prepared 'p2';
select id, v from s where id in (6,7) order by id;
begin;
declare c scroll cursor for select v from s where id = 10;
fetch c;
do $$ begin for i in 1..300 loop update s set v = i, t = repeat('z', i % 50) where id = 10; if i % 10 = 0 then begin update s set v = 9999
	where id = 10; raise exception 'r'; exception when others then null; end; end if; end loop; end $$;
fetch first c;
select v, length(t) from s where id = 10;
declare d cursor for select v from s where id = 10 for update;
fetch d;
update s set v = 12345 where current of d returning v;
update s set v = 12346 where current of d returning v;
rollback;
select v >= 12345 from s where id = 10;
create function vol() returns int language sql volatile as 'select sum(v)::int from s where id <= 3';
create function stab() returns int language sql stable as 'select sum(v)::int from s where id <= 3';
update s set v = 1 where id <= 3;
update s set v = v + 1 where id <= 3 and stab() = 3 returning v, vol(), stab();
select vol(), stab();
with a as (update s set v = v + 1 where id = 1 returning v), b as (update s set v = v + 10 where id = 1 returning v) select (select count(*)
	from a) + (select count(*) from b);
create function trg() returns trigger language plpgsql as $$ begin if new.v > 100 and pg_trigger_depth() < 3 then update s set v = v + 1
	where id = new.id; end if; return new; end $$;
create trigger bt before update on s for each row execute function trg();
update s set v = 200 where id = 2;
select v from s where id = 2;
drop trigger bt on s;
create trigger at after update on s for each row execute function trg();
update s set v = 200 where id = 2;
select v from s where id = 2;
update s set v = 5 from (select 2 as id union all select 2) x where x.id = s.id;
select v from s where id = 2;
begin;
truncate s;
insert into s select g, g from generate_series(1,10) g;
update s set v = -v;
savepoint a;
truncate s;
insert into s values (5, 5);
rollback to a;
select count(*), sum(v) from s;
rollback;
select count(*) from s;
create temp table tmp (id int primary key, v text) on commit delete rows;
begin;
insert into tmp select g, g from generate_series(1, 100) g;
update tmp set v = v || 'x';
savepoint a;
delete from tmp where id > 50;
rollback to a;
select count(*), max(v) from tmp;
commit;
select count(*) from tmp;
create temp table tmp2 (id int primary key, v text) on commit drop;
begin;
create temp table tmp3 on commit drop as select g id from generate_series(1,5) g;
update tmp3 set id = id + 1;
savepoint q;
rollback to q;
commit;
SQL

same('large objects, unlogged and back, sequences, COPY FREEZE', <<'SQL');
create table u (id serial primary key, v int, l lo, t text);
create trigger tlo before update or delete on u for each row execute function lo_manage(l);
insert into u (v, l) select g, lo_from_bytea(0, ('lo' || g)::bytea) from generate_series(1, 10) g;
begin;
update u set l = lo_from_bytea(0, 'new') where id = 1;
update u set v = 2 where id = 2;
delete from u where id = 3;
savepoint s;
update u set l = null where id = 4;
rollback to s;
commit;
select count(*) from pg_largeobject_metadata;
select id, convert_from(lo_get(l), 'utf8') from u order by id;
begin;
alter table u set unlogged;
update u set v = v + 1;
savepoint a;
alter table u set logged;
delete from u where id > 5;
rollback to a;
insert into u (v) values (77);
commit;
select relpersistence from pg_class where relname = 'u';
select count(*), sum(v) from u;
begin;
alter table u set logged;
alter table u set unlogged;
truncate u;
rollback;
select count(*), sum(v) from u;
alter table u set logged;
select count(*), sum(v) from u;
select nextval('u_id_seq') > 10;
alter sequence u_id_seq restart;
insert into u (v) values (5);
select setval('u_id_seq', 500);
begin;
select nextval('u_id_seq');
rollback;
insert into u (v) values (6) returning id;
alter table u alter id drop default, alter id add generated always as identity (start 1000);
insert into u (v) values (8) returning id;
update u set id = default where id = 1000 returning id;
update u set id = 5 where id = 1001;
create table cf (a int primary key, b text, c int default 7, d int generated always as (a + 1) stored);
begin;
create table cf2 (like cf including all);
copy cf2 (a, b) from stdin (freeze, format csv, header);
a,b
1,"x,1"
2,
\.
select xmin::text::int < 3 or true, * from cf2;
update cf2 set b = 'upd' where a = 1;
savepoint s;
delete from cf2;
rollback to s;
commit;
select * from cf2;
begin;
truncate cf2;
savepoint z;
copy cf2 (a, b) from stdin (freeze);
5	x
\.
rollback to z;
copy cf2 (a, b) from stdin (freeze);
6	y
\.
commit;
select * from cf2;
copy cf (a, b) from stdin (format csv, force_null (b), null 'NIL', delimiter ';', quote '''');
1;'a;b'
2;NIL
3;'NIL'
\.
select * from cf order by a;
copy cf (a) from stdin;
10
\.
copy cf (a) from stdin;
zz
\.
SQL

same('deferred keys, referential cycles, inheritance, wide rows, hash partitions, cached plans', <<'SQL');
create table sw (id int primary key deferrable, u int unique deferrable initially deferred, v int, w int unique,
	n int references sw (w) deferrable initially deferred);
insert into sw select g, g, g, g, 11 - g from generate_series(1, 10) g;
begin;
update sw set id = 11 - id;
update sw set v = v + 1;
update sw set u = 11 - u, v = v + 1;
set constraints all immediate;
commit;
select * from sw order by id;
begin;
set constraints all deferred;
update sw set u = 5 where u = 6;
update sw set v = 100 where u = 5;
delete from sw where id = (select min(id) from sw where u = 5);
commit;
select * from sw order by id;
begin;
insert into sw values (50, 50, 1, 50, 51);
savepoint a;
insert into sw values (51, 51, 1, 51, 50);
rollback to a;
commit;
begin;
insert into sw values (50, 50, 1, 50, 51);
insert into sw values (51, 51, 1, 51, 50);
update sw set v = 9 where id >= 50;
commit;
begin;
delete from sw where id = 50;
delete from sw where id = 51;
commit;
select count(*) from sw;
create table cas (id int primary key, p int references cas on delete cascade on update cascade, v int);
insert into cas values (1, null, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 1, 0);
update cas set id = id * 10 where id in (1, 3);
update cas set v = id;
select * from cas order by id;
delete from cas where id = 2;
select * from cas order by id;
delete from cas where id = 10;
select count(*) from cas;
create table sw2 (x int, y int, z int, primary key (x, y));
create table sn (id int primary key, a int default 0, b int default 0, v int, foreign key (a, b) references sw2 (x,
	y) match full on delete set null on update set default);
insert into sw2 values (0, 0), (1, 1), (2, 2), (3, 3);
insert into sn select g, g, g from generate_series(1, 3) g;
update sw2 set z = 5;
delete from sw2 where x = 1;
update sw2 set y = 22 where x = 2;
insert into sn values (9, 1, null);
update sn set a = null where id = 3;
select * from sn order by id;
create table ia (a int, b int check (b > 0) no inherit, constraint c1 check (a < 1000));
create table ib (c int, d text default 'd') inherits (ia);
create table ic (a int not null, e int) inherits (ia, ib);
insert into ic (a, b, c, e) select g, -g, g, g from generate_series(1, 5) g;
insert into ia values (1, -1);
insert into ia values (1, 1);
update ia set b = coalesce(b, 0) + 10 returning tableoid::regclass, *;
alter table ia add column z int default 9;
update only ia set z = 1;
alter table ia alter a type bigint;
delete from ib where a = 2 returning *;
alter table ic no inherit ib;
alter table ic inherit ib;
select tableoid::regclass, * from ia order by 1, 2;
alter table ia rename b to bb;
select * from ic order by a;
drop table ia cascade;
do $$ begin execute 'create table w (id int primary key, ' || (select string_agg('c' || g || case g % 4 when 0 then ' int' when 1 then ' text'
	when 2 then ' numeric' else ' bool' end, ', ') from generate_series(1, 900) g) || ')'; end $$;
insert into w (id, c1, c899, c900) select g, 'one', true, g from generate_series(1, 20) g;
update w set c450 = 4.5, c451 = true where id % 2 = 0;
update w set c1 = repeat('o', 1000), c4 = 1, c8 = 2 where id % 3 = 0;
update w set c1 = null where id % 6 = 0;
alter table w drop column c1, drop column c4;
alter table w add column n1 int default 5;
update w set c8 = 3, c900 = null;
select id, c8, c450, c451, c899, c900, n1 from w order by id;
select md5(string_agg(w::text, '' order by id)) from w;
create table z0 ();
insert into z0 default values;
insert into z0 default values;
select count(*) from z0;
update z0 set ctid = null;
delete from z0;
alter table z0 add column a int;
insert into z0 values (1);
alter table z0 drop column a;
select count(*) from z0;
alter table z0 add b text default 'b';
select * from z0;
update z0 set b = 'c' returning *;
create table part_h (a text, b numeric, c timestamptz) partition by hash (a, b);
create table part_h0 partition of part_h for values with (modulus 3, remainder 0);
create table part_h1 partition of part_h for values with (modulus 3, remainder 1);
create table part_h2 partition of part_h for values with (modulus 3, remainder 2) partition by range (c);
create table part_h2a partition of part_h2 default;
insert into part_h select 'k' || g, g / 3.0, '2020-01-01'::timestamptz + g * interval '1 day' from generate_series(1, 100) g;
update part_h set a = a || 'x' where b > 10;
update part_h set c = c + interval '1 year' where b < 5;
select tableoid::regclass, count(*), sum(b) from part_h group by 1 order by 1;
delete from part_h where b > 20 returning a, tableoid::regclass;
select a, tableoid::regclass from part_h where a = 'k40x' and b = 40/3.0;
set plan_cache_mode = force_generic_plan;
prepare pu (int, int) as update sw set v = $2 where id = $1 returning v, u;
execute pu (3, 33);
execute pu (4, 44);
alter table sw add column extra int default 1;
execute pu (3, 34);
create index on sw (v);
execute pu (3, 35);
drop index sw_v_idx;
execute pu (3, 36);
deallocate pu;
reset all;
SQL

same('every kind of index, each scanned in three ways, before and after changes; an enum that grows, extended statistics, large values', <<'SQL');
create type mood as enum ('sad','ok','happy');
create type cmp as (a int, b text);
create table x (id int primary key, pt point, bx box, cir circle, poly polygon, ls lseg, tsv tsvector, doc text, arr int[], j jsonb, h hstore,
	lt ltree, ip inet, cid cidr, mac macaddr8, r numrange, mr int4multirange, m mood, c cmp, bits bit(8), vb bit varying, u uuid, mon money,
	tm timetz, iv interval, ci citext, cu cube, sg seg, lsn pg_lsn, nm name, ch "char", o oid, xm text, tid tid, bp char(7), by bytea, ts timestamp[],
	n numeric);
create index x_pt on x using gist (pt);
create index x_sp on x using spgist (pt);
create index x_kd on x using spgist (pt kd_point_ops);
create index x_bx on x using spgist (bx);
create index x_poly on x using spgist (poly);
create index x_cir on x using gist (cir);
create index x_tsv on x using gin (tsv);
create index x_tsg on x using gist (tsv);
create index x_trg on x using gin (doc gin_trgm_ops);
create index x_trgs on x using gist (doc gist_trgm_ops(siglen=32));
create index x_arr on x using gin (arr gin__int_ops);
create index x_arr2 on x using gin (arr, id);
create index x_j on x using gin (j jsonb_path_ops);
create index x_j2 on x using gin ((j->'k'));
create index x_h on x using gist (h);
create index x_lt on x using gist (lt);
create index x_ip on x using gist (ip inet_ops);
create index x_ips on x using spgist (ip);
create index x_r on x using gist (r);
create index x_rs on x using spgist (r);
create index x_mr on x using gist (mr);
create index x_hash on x using hash (u);
create index x_hash2 on x using hash (j);
create index x_brin on x using brin (id, n, ip inet_inclusion_ops, doc);
create index x_brinm on x using brin (n numeric_minmax_multi_ops, u uuid_bloom_ops);
create index x_bloom on x using bloom (id, doc) with (length=80, col1=2);
create index x_radix on x using spgist (doc);
create index x_cmp on x (c, m desc nulls first, bits) include (u, doc) where id % 2 = 0;
create index x_ci on x (ci);
create index x_cu on x using gist (cu);
create index x_multi on x (tm, iv, mon, mac, lsn, nm, ch, o, bp, by, vb);
create index x_tsarr on x (ts);
create index x_fn on x (lower(doc), (n * 2), (j->>'k'));
create index x_tid on x (tid);
create index x_desc on x (n desc nulls last, id);
create unique index x_nnd on x (m, id) nulls not distinct;
insert into x select g, point(g % 50, g / 50), box(point(g, g), point(g + 3, g + 4)), circle(point(g, g), g % 7), polygon(box(point(g, 0), point(g+1,
	2))), lseg(point(0,0), point(g,g)), to_tsvector('simple', 'w' || g % 17 || ' v' || g % 5), 'document ' || md5(g::text), array[g % 10, g % 7],
	jsonb_build_object('k', g % 9, 'l', jsonb_build_array(g, 'x')), hstore('k', (g % 6)::text), ('a.b' || g % 4 || '.c' || g)::ltree,
	('10.0.' || g % 256 || '.' || g % 200)::inet, ('10.' || g % 256 || '.0.0/16')::cidr, '08:00:2b:01:02:03:04:05', numrange(g, g + 5),
	int4multirange(int4range(g, g+2), int4range(g + 10, g + 12)), (array['sad','ok','happy'])[g % 3 + 1]::mood, row(g % 5, 't' || g)::cmp,
	(g % 256)::bit(8), B'1010', md5(g::text)::uuid, g::money, '12:00+02', g * interval '1 hour', 'CiText' || g % 3, cube(g, g + 1),
	(g || ' .. ' || g + 2)::seg, '0/16B3740', 'n' || g, 'c', g, ('<a>' || g || '</a>'), '(1,2)', 'bp' || g % 3, decode(md5(g::text), 'hex'),
	array[timestamp '2020-01-01' + g * interval '1 day'], g / 7.0 from generate_series(1, 200) g;
create function q() returns table (k text, n bigint, s bigint) language plpgsql as $$ declare c text; begin
foreach c in array array[
	'pt <@ box ''(10,3),(20,8)''', 'pt ~= point(5,5)', 'bx && box ''(100,100),(110,120)''', 'poly && polygon(box ''(100,0),(105,1)'')',
	'cir && circle ''((50,50),4)''', 'tsv @@ ''w3 & v1''', 'doc like ''%abc%''', 'doc ilike ''document a%''', 'arr && array[3]', 'arr @> array[3,4]',
	'arr @> array[3] and id < 100', 'j @> ''{"k": 4}''', '(j->''k'') ? ''4''', 'h ? ''k'' and h @> ''k=>3''', 'lt ~ ''a.b2.*''',
	'ip <<= ''10.0.5.0/24''', 'r @> 17.5', 'r && numrange(100, 104)', 'mr @> 40', 'u = md5(''77'')::uuid', 'j = ''{"k": 1, "l": [1, "x"]}''',
	'n between 10 and 20', 'id = 333 and doc ~ ''document''', 'c = row(1, ''t6'')::cmp and id % 2 = 0', 'c >= row(3, ''t'')::cmp and id % 2 = 0',
	'ci = ''CITEXT1''', 'cu && ''(50),(60)''::cube', 'lower(doc) = ''document '' || md5(''5'')', 'ts @> array[timestamp ''2020-02-01'']',
	'ts = array[timestamp ''2020-02-01'']', 'm = ''sad'' and id in (3,6,9,700)', 'm is null', 'pt is null', 'n is null', 'n > 80 or id < 3',
	'bp = ''bp1''', 'mon > 590::money', 'doc ^@ ''document c4'''] loop
 for i in 1..3 loop
  perform set_config('enable_seqscan', (i = 1)::text, true), set_config('enable_indexscan', (i <> 2)::text, true), set_config('enable_bitmapscan',
	(i <> 3)::text, true), set_config('enable_indexonlyscan', (i <> 2)::text, true);
  return query execute format('select %L, count(*), coalesce(sum(id), 0)::bigint from x where %s', c || ' #' || i, c);
 end loop;
 return query execute format('select %L, id::bigint, 0::bigint from (select id from x order by pt <-> point(7,7), id limit 3) s', 'knn');
end loop; end $$;
select md5(string_agg(q::text, ',')) , count(distinct (k)) from q();
update x set n = n + 0.5 where id % 3 = 0;
update x set pt = point(1, 1), j = j || '{"z": 1}' where id % 5 = 0;
update x set doc = 'document abc' || id, u = md5('77')::uuid where id % 7 = 0;
update x set c = row(1, 't6')::cmp, m = 'sad' where id % 11 = 0;
update x set arr = arr || 3, tsv = null, mr = '{}' where id % 13 = 0;
update x set n = n - 0.5 where id % 3 = 0;
update x set ci = upper(ci), bp = 'bp1    ' where id % 4 = 0;
update x set n = null, pt = null, m = null where id % 17 = 0;
begin;
update x set n = -n, doc = 'gone', c = null, ip = '1.1.1.1', r = 'empty', id = -id;
delete from x where id % 2 = 0;
rollback;
begin;
update x set id = id + 10000 where id > 500;
savepoint s;
update x set id = id - 10000 where id > 10000;
delete from x where id % 19 = 0;
rollback to s;
update x set id = id - 10000 where id > 10000;
delete from x where id % 23 = 0;
commit;
select k, n, s from q() where k not like '%#1' or k = 'knn';
select md5(string_agg(q::text, ',')) from q();
vacuum x;
select md5(string_agg(q::text, ',')) from q();
update x set n = id, lt = 'q.b2.z', iv = iv * 2, by = by || by where id < 50;
reindex table x;
select md5(string_agg(q::text, ',')) from q();
reindex table concurrently x;
cluster x using x_r;
cluster x using x_fn;
vacuum full x;
select md5(string_agg(q::text, ',')) from q();
select md5(string_agg(x::text, '|' order by id)) from x;
select brin_summarize_new_values('x_brin');
select gin_clean_pending_list('x_tsv') >= 0;
update x set tsv = to_tsvector('simple', 'w3 v1') where id = 9;
select count(*) from x where tsv @@ 'w3 & v1';
alter type mood add value 'meh' before 'ok';
alter type mood rename value 'sad' to 'blue';
update x set m = 'meh' where m = 'ok' and id < 20;
select m, count(*) from x group by m order by m;
set enable_seqscan = off;
select m, count(*) from x where m > 'blue' group by m order by m;
reset all;
analyze x;
create statistics st (mcv, dependencies, ndistinct) on m, bp from x;
analyze x;
select count(*) from pg_stats where tablename = 'x';
select count(*) from pg_stats_ext;
create table big (id int primary key, t text, s text, e text, p jsonb);
alter table big alter s set storage external, alter e set storage plain;
insert into big select g, repeat(md5(g::text), 500), repeat('z', 10000), repeat('p', 1000), jsonb_build_object('a', repeat('j', 5000))
	from generate_series(1, 20) g;
update big set p = p || '{"b": 1}';
update big set t = t || 'x' where id % 2 = 0;
begin;
update big set t = 'short', s = s || s;
savepoint a;
update big set s = null;
rollback to a;
select sum(length(s)), sum(length(t)) from big;
rollback;
delete from big where id = 3;
select sum(length(t)), sum(length(s)), sum(length(p::text)), md5(string_agg(md5(big::text), '' order by id)) from big;
update big set e = repeat('q', 7000) where id = 1;
select substr(s, 5000, 3) from big where id = 4;
vacuum full big;
create index on big (md5(t));
create index on big using hash (t);
create index on big (t);
update big set t = repeat('compressible', 2000) where id = 5;
select id from big where t = repeat('compressible', 2000);
SQL

check_clean($node, 'at the end', 'inplace');
$node->stop;
check_log($node);
done_testing();
