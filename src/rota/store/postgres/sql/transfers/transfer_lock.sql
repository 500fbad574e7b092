-- Lock those of these jobs that wait for their time, so that they are neither staged nor changed
-- before this transaction ends; gives their ids. Waits for nobody: those that are being staged are
-- left out.
-- Walks: timer by its primary key.
SELECT id FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) FOR UPDATE SKIP LOCKED
