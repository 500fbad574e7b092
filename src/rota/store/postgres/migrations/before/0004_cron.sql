-- Cron: entries that make a job at each of their due times.

-- What is to be enqueued, and when. Written by people and when workers start, hence rarely; whoever
-- makes the jobs of an entry locks its row and never changes it, so there is no row version per due
-- time. `parameter` is the one that gets the due time. `declaration` is what the code said last, null
-- for an entry that was added at run time.
CREATE TABLE rota.cron_entry (
    id           integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at   timestamptz NOT NULL DEFAULT now(),
    jitter       double precision NOT NULL,
    timeout      real,
    priority     smallint NOT NULL,
    max_attempts smallint NOT NULL,
    paused       boolean NOT NULL DEFAULT false,
    name         text NOT NULL UNIQUE,
    expression   text NOT NULL,
    timezone     text NOT NULL,
    missed       text NOT NULL CHECK (missed IN ('skip', 'latest', 'all')),
    task         text NOT NULL,
    queue        text NOT NULL,
    parameter    text,
    args         json NOT NULL,
    declaration  text
);

-- How far each entry has come; append-only, and the highest seq counts. Its due times up to `since`
-- have been dealt with, `due` is the next one (null: there is none), `last` the newest that has made a
-- job. The key is also the last line of defence: two who deal with the same due time would both append
-- the same seq. Old marks are deleted now and then, and nobody walks them: the newest is read from the
-- index's right end.
CREATE TABLE rota.cron_mark (
    entry integer NOT NULL REFERENCES rota.cron_entry ON DELETE CASCADE,
    seq   bigint NOT NULL,
    since timestamptz NOT NULL,
    due   timestamptz,
    last  timestamptz,
    PRIMARY KEY (entry, seq)
);

-- Which entries the code of a worker declares, one row for each session that has any.
CREATE TABLE rota.cron_worker (
    session bigint PRIMARY KEY,
    entries text[] NOT NULL
);

-- Every entry with its newest mark, also for people: SELECT * FROM rota.cron. Entries that come from
-- code and are in the code of no worker that is alive are `undeclared`, and are not run.
CREATE VIEW rota.cron AS
SELECT entry.id, entry.name, entry.expression, entry.timezone, entry.missed, entry.jitter, entry.task,
       entry.args, entry.parameter, entry.queue, entry.priority, entry.max_attempts, entry.timeout,
       entry.paused, entry.declaration IS NOT NULL AS declared,
       entry.declaration IS NOT NULL AND NOT EXISTS (
           SELECT FROM rota.cron_worker AS worker
           JOIN rota.session ON session.id = worker.session
           WHERE entry.name = ANY (worker.entries)) AS undeclared,
       mark.seq, mark.since, mark.due, mark.last, entry.created_at
FROM rota.cron_entry AS entry
CROSS JOIN LATERAL (
    SELECT newest.* FROM rota.cron_mark AS newest WHERE newest.entry = entry.id
    ORDER BY newest.entry DESC, newest.seq DESC LIMIT 1
) AS mark;
