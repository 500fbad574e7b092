-- Since when the current segments of the log and of the finished jobs are in use. An older Rota turns the rings
-- without saying so; then the next turn comes a little early.
CREATE SEQUENCE rota.log_begun MINVALUE 0 START 0;
SELECT setval('rota.log_begun', extract(epoch FROM now())::int8);
CREATE SEQUENCE rota.finished_begun MINVALUE 0 START 0;
SELECT setval('rota.finished_begun', extract(epoch FROM now())::int8);

-- How far the jobs that are kept longer than the others have been moved out of a segment that was left.
CREATE SEQUENCE rota.finished_moved MINVALUE 0 START 0;

-- Marks of the totals are written to two tables that turn, so that no old mark has to be deleted. They inherit from
-- the table of marks: a query of that reads them as well, and an older Rota goes on writing to it.
CREATE SEQUENCE rota.tally_mark_turn MINVALUE 0 START 0;
CREATE TABLE rota.tally_mark_0 (PRIMARY KEY (seq)) INHERITS (rota.tally_mark) WITH (autovacuum_enabled = false);
CREATE TABLE rota.tally_mark_1 (PRIMARY KEY (seq)) INHERITS (rota.tally_mark) WITH (autovacuum_enabled = false);
