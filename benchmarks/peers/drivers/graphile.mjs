/* Graphile Worker, set as its performance page says: many concurrent jobs, a local queue, completions
   in batches. */

import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker';

import { serve, URL, version } from './serve.mjs';

const CONCURRENCY = 24;
const LOCAL_QUEUE = 500;
const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message);
});

/** A producer that is connected. */
async function producer() {
  const utils = await makeWorkerUtils({
    connectionString: URL,
    maxPoolSize: 1,
    preset: { worker: { connectionString: URL, maxPoolSize: 1, logger } },
  });
  await utils.withPgClient((client) => client.query('select 1'));
  return utils;
}

await serve({
  chunk: 1000,

  async setup() {
    await runMigrations({ connectionString: URL, logger });
    return version('graphile-worker');
  },

  async oneByOne(jobs) {
    const utils = await producer();
    for await (const job of jobs) await utils.addJob('record', job);
  },

  async inBulk(chunks) {
    const utils = await producer();
    for (const chunk of chunks) {
      await utils.addJobs(chunk.map((payload) => ({ identifier: 'record', payload })));
    }
  },

  async work(record) {
    const worker = {
      connectionString: URL,
      concurrentJobs: CONCURRENCY,
      maxPoolSize: CONCURRENCY + 1,
      pollInterval: 2000,
      localQueue: { size: LOCAL_QUEUE },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger,
    };
    // The worker itself obeys SIGTERM.
    const runner = await run({ preset: { worker }, taskList: { record: async (payload) => record(payload) } });
    await runner.promise;
    process.exit(0);
  },
});
