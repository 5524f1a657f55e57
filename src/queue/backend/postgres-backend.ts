import { setTimeout as delay } from 'node:timers/promises';
import { createPostgresBackend, type PostgresQueueBackend } from 'bullmq';
import pg from 'pg';

/** Milliseconds between two attempts of one caller to connect for the first time. */
const PAUSE_MS = 250;

/** A connection whose end, at whatever moment, is nobody's unheard error: that would end the process. */
class AttendedClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}

/**
 * BullMQ's backend on PostgreSQL, which connects when its database comes back although it was away at first. BullMQ
 * itself keeps the failure of the first connection for good (`PostgresConnection.waitUntilReady`): such a worker never
 * took a job, and asked for one again without a pause, so that nothing else ran in the process. Nor does it listen to
 * errors of its connections from their first moment on.
 */
export const createPatientPostgresBackend: typeof createPostgresBackend = (...args) => {
  const backend = createPostgresBackend(...args);
  const { connection } = backend as PostgresQueueBackend;
  connection.pool.on('connect', (client) => client.on('error', () => undefined));
  Reflect.set(connection, 'pgModule', { ...pg, Client: AttendedClient });
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
