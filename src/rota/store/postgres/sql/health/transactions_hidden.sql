-- How many sessions this role may not look into, and the names that Rota's own connections have.
SELECT (SELECT count(*) FROM pg_stat_activity
        WHERE query = '<insufficient privilege>' AND datname IS NOT NULL),
       current_setting('application_name')
