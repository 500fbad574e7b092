-- Hear which jobs have ended.
LISTEN rota_ended
