import { setImmediate } from 'node:timers/promises';
import { MemoryQueue } from '../../../harness/memory-queue/memory-queue.js';
import { MemoryStore } from '../../../harness/memory-queue/memory-store.js';
import { MemoryWorker } from '../../../harness/memory-queue/memory-worker.js';
import { WorldClock } from '../../../harness/world/time.js';
import type { ContractStore, RowData } from './store.js';

/** Virtual time after which a wait counts as a hang. */
const HANG_MS = 120_000;

const STEP_MS = 10;

/** The world's stand-in of BullMQ, driven as the world drives it. */
export async function openMemory(): Promise<ContractStore> {
  const clock = new WorldClock();
  const store = new MemoryStore(clock);
  const workers: MemoryWorker<RowData>[] = [];

  /** Starts all jobs that can start, and lets them proceed as far as they can without time. */
  const work = async () => {
    for (let started = true; started; ) {
      started = false;
      while (store.startNext()) started = true;
      await setImmediate();
    }
  };
  const advance = async (ms: number) => {
    await work();
    for (let left = ms; left > 0; ) {
      const step = Math.min(left, ...[store.nextInMs, clock.nextInMs].map((next) => Math.max(1, next ?? left)));
      clock.advance(step);
      left -= step;
      await work();
    }
  };
  return {
    randomAdds: 1_000,
    queue: (name) => new MemoryQueue<RowData>(name, { connection: store }),
    worker: (name, processor, options) => {
      const worker = new MemoryWorker<RowData>(name, processor, { ...options, connection: store });
      workers.push(worker);
      return worker;
    },
    wipe: async () => store.wipe(),
    advance,
    until: async (look) => {
      for (let waitedMs = 0; waitedMs < HANG_MS; waitedMs += STEP_MS) {
        await work();
        if (await look()) return;
        await advance(STEP_MS);
      }
      throw new Error(`Waited ${HANG_MS / 1_000} s`);
    },
    sleep: (ms) => new Promise((resolve) => clock.after(ms, resolve)),
    nowMs: () => clock.monotonicMs(),
    unreachableAdd: 'rejected',
    unreachableQueue: (name) => {
      const away = new MemoryStore(clock);
      away.isAway = true;
      return new MemoryQueue<RowData>(name, { connection: away });
    },
    setAway: async (isAway) => {
      store.isAway = isAway;
    },
    closeOpened: async () => {
      const closed = Promise.all(workers.splice(0).map((worker) => worker.close()));
      while (store.isBusy) await advance(STEP_MS);
      await closed;
    },
    close: async () => {},
  };
}
