-- A SQLite store as version 1 wrote it (0.2.0). Kept for ever: never edit, add the next version beside it.
PRAGMA application_id = 1095652432;
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    additional_directories TEXT NOT NULL,
    title TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    meta TEXT NOT NULL,
    snapshot INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_creation ON sessions (created_at, id);
CREATE TABLE batches (
    session INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    events BLOB NOT NULL,
    PRIMARY KEY (session, last)
);
CREATE TABLE parts (
    session INTEGER NOT NULL,
    name TEXT NOT NULL,
    part BLOB NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE TABLE claims (
    session INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    pid INTEGER NOT NULL,
    presence TEXT NOT NULL
);
CREATE TABLE deletions (session INTEGER PRIMARY KEY);
INSERT INTO sessions VALUES (
    1, 'sess_1', '/home/me/site', '["/home/me/lib"]', 'Why is the build red?', 1760000000000, 1760000060000,
    'idle', '{"antiphon":{"n":1}}', 2
);
INSERT INTO batches VALUES (1, 1, 2, CAST('{"n":1}' || char(10) || '{"n":2}' AS BLOB));
INSERT INTO batches VALUES (1, 3, 3, CAST('{"n":3}' AS BLOB));
INSERT INTO parts VALUES (1, 'message/1', CAST('{"text":"red"}' AS BLOB));
INSERT INTO claims VALUES (1, 'an editor', 4242, '0123456789abcdef');
