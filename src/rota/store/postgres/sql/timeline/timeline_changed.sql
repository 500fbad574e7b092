-- Whether no session was opened on this timeline yet. Reads a sequence: locks nothing.
SELECT here.timeline <> timeline.last_value FROM rota.here, rota.timeline
