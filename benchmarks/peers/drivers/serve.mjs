/* The program around a driver written in JavaScript: the same commands and answers as serve.py, and
   the same records as records.py. */

import fs from 'node:fs';

export const URL = process.env.PEERS_URL;
const WARM_UP = -1;
const HEAD = 8;
const ROW = 24;
const LATE = 1;
const CAPACITY = 2_000_000;

/** The clock of time.monotonic(): seconds. */
const now = () => Number(process.hrtime.bigint()) / 1e9;
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
const say = (answer) => fs.writeSync(1, JSON.stringify(answer) + '\n');

/** The version of an installed package. */
export function version(name) {
  const file = new globalThis.URL(`../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(fs.readFileSync(file, 'utf8')).version;
}

/** Do what the command line says; a driver has chunk, setup, oneByOne, inBulk and work. */
export async function serve(driver) {
  const [command, amount] = process.argv.slice(2);
  const jobs = new Jobs();
  switch (command) {
    case 'setup':
      say({ version: await driver.setup() });
      break;
    case 'work':
      say({ ready: true });
      await line();
      await driver.work(recorder());
      return;
    case 'produce':
      await driver.oneByOne(jobs.asDue());
      say({ enqueued: jobs.enqueued, seconds: jobs.seconds });
      break;
    case 'one':
      await driver.oneByOne(jobs.oneByOne(Number(amount)));
      say({ enqueued: jobs.enqueued, seconds: jobs.seconds });
      break;
    case 'many':
      await driver.inBulk(jobs.chunks(driver.chunk, Infinity, Number(amount)));
      say({ enqueued: jobs.enqueued, seconds: jobs.seconds });
      break;
    case 'load':
      await driver.inBulk(jobs.chunks(driver.chunk, Number(amount), Infinity));
      say({ enqueued: jobs.enqueued, seconds: jobs.seconds });
      break;
    default:
      console.error(`unknown command ${command}: one of setup, load, one, many, produce, work`);
      process.exit(1);
  }
  process.exit(0);
}

/** The jobs to enqueue, and the clock that times them: see jobs.py. */
class Jobs {
  enqueued = 0;
  seconds = 0;

  *oneByOne(seconds) {
    for (const chunk of this.chunks(1, Infinity, seconds)) yield chunk[0];
  }

  *chunks(size, count, seconds) {
    yield [{ number: WARM_UP, enqueued: now() }];
    const began = now();
    let moment = began;
    while (this.enqueued < count && moment - began < seconds) {
      const first = this.enqueued;
      this.enqueued = Math.min(first + size, count);
      const chunk = [];
      for (let number = first; number < this.enqueued; number++) chunk.push({ number, enqueued: moment });
      yield chunk;
      moment = now();
    }
    this.seconds = moment - began;
  }

  async *asDue() {
    yield { number: WARM_UP, enqueued: now() };
    say({ ready: true });
    const moments = JSON.parse(await line());
    const began = now();
    for (const moment of moments) {
      const wait = began + moment - now();
      if (wait > 0) await sleep(wait);
      if (now() > began + moments.at(-1) + LATE) break;
      yield { number: this.enqueued, enqueued: now() };
      this.enqueued += 1;
    }
    this.seconds = now() - began;
  }
}

/** A line of standard input; when that ends, so does the process. */
function line() {
  return new Promise((done) => {
    let read = '';
    process.stdin.on('data', (data) => {
      read += data;
      if (read.endsWith('\n')) done(read);
    });
    process.stdin.on('end', () => process.exit(1));
  });
}

/** Writes a handler's records, a few milliseconds late, so that many cost one system call. */
function recorder() {
  const data = Buffer.alloc(ROW * CAPACITY);
  const head = Buffer.alloc(HEAD);
  const file = fs.openSync(`${process.env.PEERS_RECORDS}/${process.pid}.records`, 'w+');
  let count = 0;
  let written = 0;
  let due = false;
  const write = () => {
    due = false;
    fs.writeSync(file, data, written * ROW, (count - written) * ROW, HEAD + written * ROW);
    head.writeBigInt64LE(BigInt(count), 0);
    fs.writeSync(file, head, 0, HEAD, 0);
    written = count;
  };
  process.on('exit', write);
  return ({ number, enqueued }) => {
    const at = count * ROW;
    data.writeBigInt64LE(BigInt(number), at);
    data.writeDoubleLE(enqueued, at + 8);
    data.writeDoubleLE(now(), at + 16);
    count += 1;
    if (!due) {
      due = true;
      setTimeout(write, 5);
    }
  };
}
