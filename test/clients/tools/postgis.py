"""PostGIS: objects that move, by several workers at once, with every kind of index that
PostGIS has; the same moves and the same questions on both methods.
"""
import random

from beside import METHODS, Background, Server, both, check, main, methods_of, same, sql

WORKERS, OBJECTS, MOVES = 3, 600, 60

TABLES = [
    """CREATE TABLE objects (id int PRIMARY KEY, kind text, pos geometry(Point, 4326), place geography(Point), trail geometry(LineString, 4326),
        speed float8, seen int DEFAULT 0)""",
    "CREATE INDEX objects_pos ON objects USING gist (pos)",
    "CREATE INDEX objects_place ON objects USING gist (place)",
    "CREATE INDEX objects_spgist ON objects USING spgist (pos)",
    "CREATE INDEX objects_brin ON objects USING brin (pos)",
    "CREATE INDEX objects_fast ON objects USING gist (pos) WHERE speed > 50",
    "CREATE INDEX objects_circle ON objects USING gist (ST_Expand(pos, 0.01))",
    "CREATE INDEX objects_seen ON objects (seen)",
    "CREATE INDEX objects_btree ON objects (pos)",
    "CREATE INDEX objects_hash ON objects USING hash (kind)",
    "CREATE TABLE fences (id int PRIMARY KEY, area geometry(Polygon, 4326), inside int DEFAULT 0)",
    "CREATE INDEX ON fences USING gist (area)",
    "CREATE TABLE crossings (object int, fence int, entered bool, seen int, PRIMARY KEY (object, fence, seen))",
    "INSERT INTO fences SELECT x * 10 + y, ST_Buffer(ST_SetSRID(ST_Point(x, y), 4326), 0.7, 4) FROM generate_series(0, 9) x, generate_series(0, 9) y",
    """CREATE FUNCTION moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO crossings SELECT new.id, f.id, ST_Contains(f.area, new.pos), new.seen FROM fences f
            WHERE (f.area && new.pos OR f.area && old.pos) AND ST_Contains(f.area, new.pos) <> ST_Contains(f.area, old.pos);
        RETURN new; END $$""",
    "CREATE TRIGGER moved AFTER UPDATE OF pos ON objects FOR EACH ROW WHEN (NOT old.pos ~= new.pos) EXECUTE FUNCTION moved()",
]

# Questions whose answers are not up to where rows are.
QUESTIONS = {
    "box": "SELECT id FROM objects WHERE pos && ST_MakeEnvelope(2, 2, 5, 4, 4326) ORDER BY id",
    "near": "SELECT id FROM objects WHERE ST_DWithin(pos, ST_SetSRID(ST_Point(4, 4), 4326), 1.5) ORDER BY id",
    "near on earth": "SELECT id, round(ST_Distance(place, 'POINT(4 4)'::geography)) FROM objects WHERE ST_DWithin(place, 'POINT(4 4)'::geography, 120000) ORDER BY id",
    "nearest": "SELECT round((pos <-> ST_SetSRID(ST_Point(6, 3), 4326))::numeric, 9) FROM objects ORDER BY pos <-> ST_SetSRID(ST_Point(6, 3), 4326) LIMIT 40",
    "nearest on earth": "SELECT round((place <-> 'POINT(1 7)'::geography)::numeric, 3) FROM objects ORDER BY place <-> 'POINT(1 7)'::geography LIMIT 25",
    "fast ones": "SELECT id FROM objects WHERE speed > 50 AND pos && ST_MakeEnvelope(0, 0, 6, 6, 4326) ORDER BY id",
    "by an expression": "SELECT id FROM objects WHERE ST_Expand(pos, 0.01) && ST_MakeEnvelope(3, 3, 4, 4, 4326) ORDER BY id",
    "join": "SELECT f.id, count(*), sum(o.id) FROM fences f JOIN objects o ON ST_Contains(f.area, o.pos) GROUP BY 1 ORDER BY 1",
    "nearest of each": "SELECT f.id, round(n.d::numeric, 9) FROM fences f, LATERAL (SELECT f.area <-> o.pos AS d FROM objects o ORDER BY f.area <-> o.pos LIMIT 1) n ORDER BY 1",
    "trails": "SELECT id, ST_NPoints(trail), ST_AsText(ST_EndPoint(trail), 6) FROM objects WHERE ST_Intersects(trail, ST_MakeEnvelope(4, 0, 4.5, 9, 4326)) ORDER BY id",
    "extent": "SELECT ST_AsText(ST_Extent(pos), 6) FROM objects",
    "equal": "SELECT count(*) FROM objects a JOIN objects b ON a.pos = b.pos",
    "rows": "SELECT id, kind, ST_AsEWKT(pos), ST_AsText(place, 9), ST_AsText(trail, 9), speed, seen FROM objects ORDER BY id",
    "crossings": "SELECT * FROM crossings ORDER BY 1, 2, 4",
    "fences": "SELECT f.id, inside FROM fences f ORDER BY 1",
}


def make(server, m):
    r = random.Random(1)
    with server.connect(m) as c:
        sql(c, *TABLES)
        c.cursor().executemany("""
            INSERT INTO objects SELECT %s, %s, p, p::geography, ST_MakeLine(p, ST_Translate(p, 0.001, 0)), %s FROM ST_SetSRID(ST_Point(%s, %s), 4326) p""",
            [(i, r.choice(["bus", "ship", "fox"]), r.uniform(0, 100), r.uniform(0, 9), r.uniform(0, 9)) for i in range(OBJECTS)])


def move(server, m, worker, n):
    """A worker moves its objects; what they do is up to its random numbers alone."""
    r = random.Random(worker * 1000 + n)
    step = lambda: r.choice([0.0, 0.0003, r.uniform(-0.05, 0.05), r.uniform(-2, 2)])
    with server.connect(m) as c:
        for _ in range(MOVES):
            i = r.randrange(OBJECTS // WORKERS) * WORKERS + worker
            what, dx, dy, speed, abort = r.randrange(8), step(), step(), r.uniform(0, 100), r.randrange(8) == 0
            sql(c, "BEGIN")
            if what == 0:
                c.execute("UPDATE objects SET speed = %s, seen = seen + 1 WHERE id = %s", (speed, i))
            elif what == 1:
                # one goes, and comes back elsewhere
                row = c.execute("DELETE FROM objects WHERE id = %s RETURNING kind, pos, trail, speed, seen", (i,)).fetchone()
                if row:
                    c.execute("INSERT INTO objects SELECT %s, %s, p, p::geography, %s, %s, %s FROM ST_Translate(%s::geometry, %s, %s) p",
                              (i, row[0], row[2], row[3], row[4], row[1], dx, dy))
            else:
                c.execute("""UPDATE objects SET pos = p, place = p::geography, seen = seen + 1,
                                trail = CASE WHEN ST_NPoints(trail) < 300 THEN ST_AddPoint(trail, p) ELSE ST_MakeLine(pos, p) END
                             FROM (SELECT id AS i, ST_SetSRID(ST_Point(least(greatest(ST_X(pos) + %s, 0), 9), least(greatest(ST_Y(pos) + %s, 0), 9)), 4326) AS p FROM objects) s
                             WHERE id = i AND id = %s""", (dx, dy, i))
            sql(c, "ROLLBACK" if abort else "COMMIT")


def read(server, m, stop):
    """Every object is seen exactly once by an index scan, wherever it moves."""
    bad = n = 0
    with server.connect(m) as c:
        sql(c, "SET enable_seqscan = off", "SET enable_bitmapscan = off")
        while not stop:
            bad += sql(c, "SELECT count(*), count(DISTINCT id) FROM objects WHERE pos && ST_MakeEnvelope(-80, -80, 80, 80, 4326)") != [(OBJECTS, OBJECTS)]
            n += 1
    return bad, n > 0


def test():
    server = Server("postgis")
    server.databases("", "postgis")
    both(lambda m: make(server, m))
    for n, maintain in enumerate(["VACUUM objects", "CLUSTER objects USING objects_pos", "REINDEX TABLE CONCURRENTLY objects", "ANALYZE objects"]):
        stops = {m: [] for m in METHODS}
        readers = {m: Background(read, server, m, stops[m]) for m in METHODS}
        for t in [Background(move, server, m, w, n) for m in METHODS for w in range(WORKERS)]:
            t.result()
        for m in METHODS:
            stops[m].append(True)
        same(f"readers, round {n}", lambda m: readers[m].result())
        both(lambda m: server.sql(m, maintain, "UPDATE fences f SET inside = (SELECT count(*) FROM objects o WHERE ST_Contains(f.area, o.pos))"))
    for q, text in QUESTIONS.items():
        same(f"{q}", lambda m: server.sql(m, text))
    by_one = ("box", "near", "near on earth", "nearest", "by an expression", "join")
    indexes = ("pos", "spgist", "brin", "place", "circle", "btree")
    want = [server.sql("inplace", QUESTIONS[q]) for q in by_one]
    for index in indexes:
        with server.connect("inplace") as c:
            # only this one is there (in a transaction that is rolled back)
            sql(c, "BEGIN", *(f"DROP INDEX objects_{i}" for i in (*indexes, "fast") if i != index), "SET LOCAL enable_seqscan = off")
            check(f"by index {index}", [sql(c, QUESTIONS[q]) for q in by_one], want)
            sql(c, "ROLLBACK")
    both(lambda m: server.sql(m, "ANALYZE objects"))
    same("estimated extent", lambda m: server.sql(m, "SELECT ST_AsText(ST_EstimatedExtent('objects', 'pos'), 3)"))
    for m in METHODS:
        with server.connect(m) as c:
            check(f"tables are {m}", methods_of(c, "c.relnamespace = 'public'::regnamespace AND c.relname IN ('objects', 'fences', 'crossings')"), [m])
            check(f"its own table is heap's, {m}", methods_of(c, "c.relname = 'spatial_ref_sys'"), ["heap"])
    server.crash()
    for q in ("rows", "crossings", "join"):
        same(f"{q}, after a crash", lambda m: server.sql(m, QUESTIONS[q]))
    server.end("inplace")


main(test)
