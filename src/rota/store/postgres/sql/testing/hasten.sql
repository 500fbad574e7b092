-- End the sleeps and waits of these jobs now, but for waits without an end. Walks memory_order.
UPDATE rota.memory SET until = clock_timestamp()
WHERE job = ANY (%(jobs)s::int8[]) AND until > clock_timestamp() AND until < clock_timestamp() + interval '50 years'
