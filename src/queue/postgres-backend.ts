import { setTimeout as delay } from 'node:timers/promises';
import { createPostgresBackend, type PostgresQueueBackend } from 'bullmq';

/** Milliseconds between two attempts of one caller to connect for the first time. */
const PAUSE_MS = 250;

/**
 * BullMQ's backend on PostgreSQL, which connects when its database comes back although it was away at first. BullMQ
 * itself keeps the failure of the first connection for good (`PostgresConnection.waitUntilReady`): such a worker never
 * took a job, and asked for one again without a pause, so that nothing else ran in the process.
 */
export const createPatientPostgresBackend: typeof createPostgresBackend = (...args) => {
  const backend = createPostgresBackend(...args);
  const { connection } = backend as PostgresQueueBackend;
  const connect = connection.waitUntilReady.bind(connection);
  connection.waitUntilReady = async () => {
    try {
      await connect();
    } catch (error) {
      Reflect.set(connection, 'readyPromise', undefined);
      await delay(PAUSE_MS);
      throw error;
    }
  };
  return backend;
};
