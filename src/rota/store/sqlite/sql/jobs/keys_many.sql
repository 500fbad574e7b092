-- Whether more than `most` jobs have the unique keys from `first` to `last`. Locks nothing.
-- Walks: rota_job_subject, `most` entries of it.
SELECT count(*) > :most
FROM (SELECT 1 FROM rota_job INDEXED BY rota_job_subject
      WHERE unique_key IS NOT NULL AND unique_key >= :first AND unique_key <= :last LIMIT :most + 1);
