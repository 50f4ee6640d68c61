"""The tables of the SQLite run store, and its version."""

SCHEMA_VERSION = 2

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pipelines (hash TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    pipeline TEXT NOT NULL,
    pipeline_hash TEXT NOT NULL,
    mode TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'running',
    task TEXT NOT NULL,
    created REAL NOT NULL,
    ended REAL,
    seq INTEGER NOT NULL DEFAULT 0,
    published INTEGER NOT NULL DEFAULT 0,
    session TEXT,
    trace TEXT NOT NULL DEFAULT '',
    root TEXT NOT NULL DEFAULT 'open',
    grace_s REAL NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_unpublished ON runs (pipeline_hash, mode) WHERE published < seq;
CREATE INDEX runs_rootless ON runs (pipeline_hash, mode) WHERE root = 'pending';
CREATE TABLE ledger (
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    time REAL NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE inbox (id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, fact TEXT NOT NULL);
CREATE INDEX inbox_run ON inbox (run);
CREATE TABLE keys (run TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID;
CREATE TABLE attempts (
    run TEXT NOT NULL,
    subtask TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    agent TEXT NOT NULL,
    state TEXT NOT NULL,
    worker TEXT,
    lease_until REAL,
    since REAL NOT NULL,
    sent_at REAL NOT NULL,
    resend_s REAL NOT NULL DEFAULT 1.0,
    cancel INTEGER NOT NULL DEFAULT 0,
    held_llm_calls INTEGER NOT NULL DEFAULT 0,
    held_tool_calls INTEGER NOT NULL DEFAULT 0,
    held_tokens INTEGER NOT NULL DEFAULT 0,
    held_usd REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (run, subtask, attempt)
) WITHOUT ROWID;
CREATE INDEX attempts_open ON attempts (run) WHERE state <> 'closed';
CREATE TABLE timers (
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (run, kind, key, attempt)
) WITHOUT ROWID;
CREATE INDEX timers_at ON timers (at);
CREATE TABLE journal (
    run TEXT NOT NULL,
    subtask TEXT NOT NULL,
    generation INTEGER NOT NULL,
    n INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run, subtask, generation, n)
) WITHOUT ROWID;
CREATE TABLE effects (
    run TEXT NOT NULL,
    subtask TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    result TEXT,
    PRIMARY KEY (run, subtask, key)
) WITHOUT ROWID;
CREATE TABLE budgets (
    run TEXT PRIMARY KEY,
    max_llm_calls INTEGER,
    max_tool_calls INTEGER,
    max_tokens INTEGER,
    max_usd REAL,
    llm_calls INTEGER NOT NULL DEFAULT 0,
    tool_calls INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    usd REAL NOT NULL DEFAULT 0,
    used_llm_calls INTEGER NOT NULL DEFAULT 0,
    used_tool_calls INTEGER NOT NULL DEFAULT 0,
    used_input_tokens INTEGER DEFAULT 0,
    used_output_tokens INTEGER DEFAULT 0,
    used_cached_tokens INTEGER NOT NULL DEFAULT 0,
    used_usd REAL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE workers (
    worker TEXT NOT NULL,
    pipeline_hash TEXT NOT NULL,
    mode TEXT NOT NULL,
    agent TEXT NOT NULL,
    seen REAL NOT NULL,
    PRIMARY KEY (worker, agent)
) WITHOUT ROWID;
CREATE INDEX workers_agent ON workers (pipeline_hash, mode, agent, seen);
CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, media_type TEXT NOT NULL, data BLOB NOT NULL);
"""

# From a version to the next. Workers say again within seconds that they live.
_WORKERS = TABLES[TABLES.index("CREATE TABLE workers") : TABLES.index("CREATE TABLE blobs")]
UPGRADES = {1: f"DROP TABLE workers;\n{_WORKERS}"}
