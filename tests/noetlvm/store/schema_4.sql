-- A database of the fourth schema, with one row per event, as it was written then. Not to be changed: there are files like it.
PRAGMA application_id = 1315915092;
BEGIN TRANSACTION;
CREATE TABLE bundles (bundle TEXT PRIMARY KEY, data BLOB NOT NULL);
INSERT INTO "bundles" VALUES('sha256:b',X'636F6465');
CREATE TABLE commands (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution INTEGER NOT NULL, run INTEGER NOT NULL,
            unit TEXT NOT NULL, lease INTEGER NOT NULL, worker TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0, step TEXT NOT NULL DEFAULT '', pool TEXT NOT NULL DEFAULT 'default', not_before REAL NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            UNIQUE (execution, run, unit));
CREATE TABLE events (
            place INTEGER PRIMARY KEY, event_id TEXT NOT NULL, timestamp REAL NOT NULL, name TEXT NOT NULL,
            run INTEGER NOT NULL, iteration TEXT NOT NULL, task INTEGER NOT NULL, label TEXT NOT NULL,
            attempt INTEGER NOT NULL, data BLOB NOT NULL, sum INTEGER);
INSERT INTO "events" VALUES(4294967297,'event-1',1700000001.5,'task.done',3,'2.1',7,'fetch',2,X'81A16101',95391514);
INSERT INTO "events" VALUES(4294967298,'event-2',1700000002.5,'task.done',3,'2.1',7,'fetch',2,X'81A6726573756C74C73A0194A7726573756C7473C420ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABCE00011170A96C697374206F662039',2836586934);
INSERT INTO "events" VALUES(4294967299,'event-3',1700000003.5,'task.done',3,'2.1',7,'fetch',2,X'80',2578402500);
INSERT INTO "events" VALUES(4294967300,'event-4',1700000004.5,'task.done',3,'2.1',7,'fetch',2,X'80',NULL);
INSERT INTO "events" VALUES(4294967301,'event-5',1700000005.5,'task.done',3,'2.1',7,'fetch',2,X'80',1309703377);
INSERT INTO "events" VALUES(4294967302,'event-6',1700000006.5,'task.done',3,'2.1',7,'fetch',2,X'80',667754362);
INSERT INTO "events" VALUES(8589934593,'0190a6c0-8f7e-7cc3-98c4-dc0c0c0739fe',1700000009.0,'step.started',1,'',0,'',0,X'80',507605733);
INSERT INTO "events" VALUES(8589934594,'0190a6c0-8f7e-7cc3-98c4-dc0c0c0739ff',1700000009.0,'step.started',2,'',0,'',0,X'80',3940871739);
INSERT INTO "events" VALUES(8589934595,'0190a6c0-8f7e-7cc3-98c4-dc0c0c073a00',1700000009.0,'step.started',3,'',0,'',0,X'80',4076351717);
CREATE TABLE executions (
            key INTEGER PRIMARY KEY, execution_id TEXT NOT NULL UNIQUE, bundle TEXT NOT NULL, name TEXT NOT NULL,
            path TEXT NOT NULL, status TEXT NOT NULL, started REAL NOT NULL, ended REAL, parent TEXT NOT NULL,
            counts TEXT NOT NULL, seq INTEGER NOT NULL, due REAL, trace TEXT NOT NULL DEFAULT '');
INSERT INTO "executions" VALUES(1,'x','sha256:b','hello','examples/hello','running',1700000000.25,NULL,'','{"steps": 1}',6,NULL,'');
INSERT INTO "executions" VALUES(2,'y','sha256:b','hello','examples/hello','running',1700000000.25,NULL,'','{}',3,NULL,'');
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "migrations" VALUES(1,'2026-11-17 22:49:17');
INSERT INTO "migrations" VALUES(2,'2026-11-17 22:49:17');
INSERT INTO "migrations" VALUES(3,'2026-11-17 22:49:17');
INSERT INTO "migrations" VALUES(4,'2026-11-17 22:49:17');
CREATE TABLE playbooks (
            path TEXT NOT NULL, version INTEGER NOT NULL, bundle TEXT NOT NULL, registered REAL NOT NULL,
            PRIMARY KEY (path, version)) WITHOUT ROWID;
CREATE TABLE "references" (
            result TEXT NOT NULL, execution INTEGER NOT NULL, PRIMARY KEY (result, execution)) WITHOUT ROWID;
INSERT INTO "references" VALUES('abababababababababababababababababababababababababababababababab',1);
CREATE TABLE requests (
            number INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, action TEXT NOT NULL, data BLOB NOT NULL DEFAULT x'C0');
CREATE TABLE snapshots (
            execution INTEGER NOT NULL, bundle TEXT NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (execution, bundle, seq));
INSERT INTO "snapshots" VALUES(1,'sha256:b',3,X'81A16101');
CREATE TABLE start_keys (start_key TEXT PRIMARY KEY, execution_id TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (
            id TEXT PRIMARY KEY, digest TEXT NOT NULL, scopes TEXT NOT NULL, created REAL NOT NULL, revoked REAL);
CREATE INDEX children ON executions (parent);
CREATE INDEX due_executions ON executions (due) WHERE due IS NOT NULL;
CREATE INDEX unfinished_executions ON executions (key) WHERE ended IS NULL;
CREATE INDEX paths ON executions (path, key);
CREATE INDEX keys_of_executions ON start_keys (execution_id);
CREATE INDEX references_of_executions ON "references" (execution);
CREATE INDEX traces ON executions (trace) WHERE trace <> '';
DELETE FROM "sqlite_sequence";
COMMIT;
