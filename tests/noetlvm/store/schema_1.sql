-- A database of the first schema, as it was written then. Not to be changed: there are files like it.
PRAGMA application_id = 1315915092;
BEGIN TRANSACTION;
CREATE TABLE bundles (bundle TEXT PRIMARY KEY, data BLOB NOT NULL);
INSERT INTO "bundles" VALUES('sha256:b',X'636F6465');
CREATE TABLE commands (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution INTEGER NOT NULL, run INTEGER NOT NULL,
            unit TEXT NOT NULL, lease INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0,
            UNIQUE (execution, run, unit));
CREATE TABLE events (
            place INTEGER PRIMARY KEY, event_id TEXT NOT NULL, timestamp REAL NOT NULL, name TEXT NOT NULL,
            run INTEGER NOT NULL, iteration TEXT NOT NULL, task INTEGER NOT NULL, label TEXT NOT NULL,
            attempt INTEGER NOT NULL, data BLOB NOT NULL);
INSERT INTO "events" VALUES(4294967297,'event-1',1700000001.5,'task.done',3,'2.1',7,'fetch',2,X'81A66E756D62657201');
INSERT INTO "events" VALUES(4294967298,'event-2',1700000002.5,'task.done',3,'2.1',7,'fetch',2,X'81A66E756D62657202');
CREATE TABLE executions (
            key INTEGER PRIMARY KEY, execution_id TEXT NOT NULL UNIQUE, bundle TEXT NOT NULL, name TEXT NOT NULL,
            path TEXT NOT NULL, status TEXT NOT NULL, started REAL NOT NULL, ended REAL, parent TEXT NOT NULL,
            counts TEXT NOT NULL, seq INTEGER NOT NULL);
INSERT INTO "executions" VALUES(1,'x','sha256:b','hello','examples/hello','running',1700000000.25,NULL,'','{"steps": 1}',2);
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "migrations" VALUES(1,'2026-11-16 06:10:52');
CREATE TABLE requests (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, action TEXT NOT NULL);
INSERT INTO "requests" VALUES(1,'x','pause');
CREATE TABLE snapshots (
            execution INTEGER NOT NULL, bundle TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (execution, bundle, seq));
INSERT INTO "snapshots" VALUES(1,'sha256:b',2,X'81A2617402');
CREATE INDEX children ON executions (parent);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('requests',1);
COMMIT;
