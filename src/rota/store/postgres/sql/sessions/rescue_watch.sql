-- End the connections on which dead sessions slept: a frozen process would keep the watch over its
-- queues, and no job would wake another worker at once. Not those of a role that this one may not
-- end.
SELECT pg_terminate_backend(held.pid)
FROM pg_locks AS held
JOIN pg_stat_activity AS activity ON activity.pid = held.pid AND pg_has_role(activity.usesysid, 'USAGE')
WHERE held.locktype = 'advisory' AND held.classid = 7682008 AND held.granted
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND held.objid::int8 = ANY (ARRAY(SELECT id %% 2147483648 FROM unnest(%(sessions)s::int8[]) AS id))
