"""The tables of a journal, and the view that others read."""

__all__ = ["SCHEMA", "TABLES"]

SCHEMA = 4
"""tailproof 0.2 wrote 1, 0.3 wrote 2; 3 was never released."""
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE recipe (number INTEGER PRIMARY KEY, policy TEXT NOT NULL, rules TEXT NOT NULL,"
    " after INTEGER NOT NULL, at REAL NOT NULL)",
    "CREATE TABLE note (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL,"
    " text TEXT NOT NULL)",
    "CREATE TABLE arm (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE offer (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, names TEXT NOT NULL,"
    " features TEXT)",
    "CREATE TABLE request (id INTEGER PRIMARY KEY, ticket TEXT, unit TEXT, at REAL NOT NULL,"
    " ends REAL NOT NULL, recipe INTEGER NOT NULL, offer INTEGER NOT NULL, arm INTEGER NOT NULL,"
    " propensity REAL, shares TEXT, grp TEXT, again INTEGER NOT NULL,"
    " repeats INTEGER, after INTEGER NOT NULL)",
    "CREATE UNIQUE INDEX request_ticket ON request (ticket) WHERE ticket IS NOT NULL",
    "CREATE INDEX request_unit ON request (unit, grp, at) WHERE unit IS NOT NULL",
    "CREATE TABLE event (request INTEGER, name TEXT, value REAL NOT NULL, at REAL NOT NULL,"
    " late INTEGER NOT NULL, seal INTEGER NOT NULL, PRIMARY KEY (request, name)) WITHOUT ROWID",
    "CREATE INDEX event_late ON event (request) WHERE late = 1",
    "CREATE TABLE outcome (number INTEGER PRIMARY KEY, request INTEGER NOT NULL UNIQUE,"
    " reward REAL, why TEXT NOT NULL, at REAL NOT NULL, seal INTEGER NOT NULL)",
    "CREATE TABLE snapshot (after INTEGER, recipe INTEGER, kept INTEGER NOT NULL,"
    " state BLOB NOT NULL, PRIMARY KEY (after, recipe))",
    "CREATE TABLE ignored (why TEXT PRIMARY KEY, count INTEGER NOT NULL, total REAL NOT NULL)",
    "CREATE TABLE due (at REAL, request INTEGER, PRIMARY KEY (at, request)) WITHOUT ROWID",
    "CREATE VIEW log AS SELECT COALESCE(r.ticket, '#' || r.id) AS request, r.unit, r.at AS time,"
    " a.name AS arm, r.propensity, f.names AS offered, r.shares, f.features, o.reward,"
    " COALESCE(o.why, 'pending') AS status, r.ends, o.at AS outcome_time, r.recipe, r.grp,"
    " r.id AS number FROM request r JOIN arm a ON a.number = r.arm JOIN offer f ON f.id = r.offer"
    " LEFT JOIN outcome o ON o.request = r.id",
)
