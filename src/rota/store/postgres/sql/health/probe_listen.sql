-- Hear of the doctor's own probes, and of nothing that workers hear.
LISTEN rota_doctor
