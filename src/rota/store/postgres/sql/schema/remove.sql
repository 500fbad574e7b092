-- Remove Rota's tables and everything in them. Nothing happens where there are none.
-- It locks each of them against everything else, in no order that workers keep. So it gives up
-- soon, and sooner than the server looks for deadlocks, in which it might end a worker's statement:
-- nothing is removed then.
DO $rota_remove$
DECLARE
    patience CONSTANT text := current_setting('lock_timeout');
BEGIN
    SET LOCAL lock_timeout = '500ms';
    PERFORM pg_advisory_xact_lock(7682003, 0);
    DROP SCHEMA IF EXISTS rota CASCADE;
    PERFORM set_config('lock_timeout', patience, true);
END
$rota_remove$
