-- Say in the tally how many jobs ended that are not kept, by the lanes of their leases and how they
-- ended: a running total, which stands under the expiry -infinity.
INSERT INTO rota.tally (slot, lane, state, expires, jobs)
SELECT (SELECT last_value %% 2 FROM rota.tally_turn), gone.lane, gone.state, '-infinity', gone.jobs
FROM unnest(%(lanes)s::int4[], %(states)s::text[], %(counts)s::int8[]) AS gone (lane, state, jobs)
