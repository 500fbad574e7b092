"""PostgreSQL: the job log.

The modules follow a job: `enqueue`, `stage`, `claim`, `settle`, `job_transaction`, `tidy`.
`sessions` and `wake` serve the workers, `ended` the processes that wait for jobs; `control`,
`clear`, `jobs`, `queues` and `queue_settings` serve people, `notes` has what handlers tell,
`counters` counts. `health`, `live`, `probe` and `supervise` look at the server. The statements are
in `sql/`, the tables in `migrations/`, the model in docs/how/engine.md.
"""
