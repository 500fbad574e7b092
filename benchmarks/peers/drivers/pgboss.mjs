/* pg-boss: large batches, fetched at once again while they are full, LISTEN and NOTIFY, and polling as
   often as it allows. */

import { PgBoss } from 'pg-boss';

import { serve, URL, version } from './serve.mjs';

const BATCH = 500;
const POLL = 0.5;

/** A client that has started. */
async function started(options) {
  const boss = new PgBoss({ connectionString: URL, ...options });
  boss.on('error', (error) => console.error(String(error)));
  await boss.start();
  return boss;
}

const producer = () =>
  started({ max: 1, supervise: false, schedule: false, migrate: false, useListenNotify: false });

await serve({
  chunk: 1000,

  async setup() {
    const boss = await started({ useListenNotify: true });
    await boss.createQueue('record', { notify: true });
    await boss.stop({ graceful: false });
    return version('pg-boss');
  },

  async oneByOne(jobs) {
    const boss = await producer();
    for await (const job of jobs) await boss.send('record', job);
  },

  async inBulk(chunks) {
    const boss = await producer();
    for (const chunk of chunks) await boss.insert('record', chunk.map((data) => ({ data })));
  },

  async work(record) {
    const boss = await started({ useListenNotify: true });
    const end = async () => {
      await boss.stop({ graceful: true, timeout: 5000 });
      process.exit(0);
    };
    process.on('SIGTERM', end);
    const options = {
      batchSize: BATCH,
      burstWhenBatchFull: true,
      localConcurrency: 1,
      pollingIntervalSeconds: POLL,
      notifyPollingIntervalSeconds: POLL,
    };
    await boss.work('record', options, async (jobs) => {
      for (const job of jobs) record(job.data);
    });
  },
});
