import type { Env } from '../../config/env.js';

/** Maximum connections of each pool of one process. */
export interface ConnectionShares {
  /** Two commits of webhooks, kept open; the health check alone uses one. */
  readonly receiver: number;
  /** Kept open. */
  readonly heartbeat: number;
  /** Listens for events of the feed. */
  readonly feed: number;
  /** BullMQ's on PostgreSQL. */
  readonly queues: number;
  readonly uploads: number;
  /** For statements over many rows. */
  readonly bulk: number;
  /** For all other statements. */
  readonly usual: number;
}

/** Connections of BullMQ's workers on PostgreSQL: each listens on one, and all share one for statements. */
export const WORKER_CONNECTIONS = 7;

/** Those who add jobs have their own, so that they never wait behind a worker. */
export const PRODUCER_CONNECTIONS = 1;
const MAX_UPLOADS = 4;
const MAX_BULK = 3;

/** Divides the connections of one process among its pools. Connections that its roles do not need go to `usual`. */
export function connectionShares({
  DATABASE_CONNECTIONS: total,
  REDIS_URL: redis,
  ROLES: roles,
}: Pick<Env, 'DATABASE_CONNECTIONS' | 'REDIS_URL' | 'ROLES'>): ConnectionShares {
  const isApi = roles.includes('api');
  const isWorker = roles.includes('worker');
  const fixed = {
    receiver: isApi ? 2 : 1,
    heartbeat: 1,
    feed: isApi ? 1 : 0,
    queues: redis === undefined ? PRODUCER_CONNECTIONS + (isWorker ? WORKER_CONNECTIONS : 0) : 0,
  };
  const rest = total - Object.values(fixed).reduce((sum, each) => sum + each, 0);
  const bulk = Math.min(MAX_BULK, Math.floor(rest / 5));
  const uploads = isApi ? Math.min(MAX_UPLOADS, Math.floor(rest / 5)) : 0;
  return { ...fixed, uploads, bulk, usual: rest - bulk - uploads };
}
