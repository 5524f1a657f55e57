import pg from 'pg';
import { SET_SESSION } from '../../src/database/connect/session.js';

const TIMEOUTS = [
  'query_timeout',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'connect_timeout',
] as const;

/** Timeouts that a transaction sets for itself. `lock_timeout` is kept: without it, a deadlocked test would hang. */
const SET_LOCAL = /\b(statement_timeout\s*=\s*)'?\d+\s*\w*'?/g;

let areLifted = false;

/**
 * Lifts the timeouts of every PostgreSQL connection that this process opens from now on, and of every transaction. They
 * measure real time, so a machine or server that stalls would fail tests whose own clock stands still. Pools keep their
 * idle connections, because each new one costs as much as a dozen statements.
 */
export function liftTimeouts(): void {
  if (areLifted) return;
  areLifted = true;
  const client = pg.Client.prototype as unknown as Record<string, (...values: unknown[]) => unknown>;
  const pool = pg.Pool.prototype as unknown as Record<string, (...values: unknown[]) => unknown>;
  const { connect, query } = client;
  const { connect: take } = pool;
  client.connect = function connectWithoutTimeouts(this: pg.Client, ...values) {
    const parameters = Reflect.get(this, 'connectionParameters') as Record<string, unknown>;
    for (const timeout of TIMEOUTS) parameters[timeout] = 0;
    Reflect.set(this, '_connectionTimeoutMillis', 0);
    return Reflect.apply(connect as never, this, values);
  };
  client.query = function queryWithoutTimeouts(this: pg.Client, statement, ...values) {
    const lifted = typeof statement === 'string' ? statement.replace(SET_LOCAL, '$10') : withoutTimeout(statement);
    return Reflect.apply(query as never, this, [lifted, ...values]);
  };
  pool.connect = function takeWithoutTimeout(this: pg.Pool, ...values) {
    this.options.connectionTimeoutMillis = 0;
    this.options.idleTimeoutMillis = 0;
    return Reflect.apply(take as never, this, values);
  };
}

/** The timeouts in the settings of a new connection. */
const SET_TIMEOUT = /("(?:statement|lock|idle_in_transaction_session)_timeout":)"\d+"/g;

function withoutTimeout(statement: unknown): unknown {
  if (typeof statement !== 'object' || statement === null || !('query_timeout' in statement)) return statement;
  const { text, values } = statement as unknown as pg.QueryConfig;
  const lifted = text === SET_SESSION ? [String(values?.[0]).replace(SET_TIMEOUT, '$1"0"')] : values;
  return { ...statement, values: lifted, query_timeout: 0 };
}

/** Executions of a text from which on it is prepared, because many texts are used only once. */
const MIN_USES = 3;

/** Names of the texts, and how often each was executed without one. */
const names = new Map<string, string>();
const uses = new Map<string, number>();

let arePrepared = false;

/**
 * Prepares the statements that repeat, on every PostgreSQL connection of this process from now on. PostgreSQL then keeps
 * the plan of each statement that does not depend on the world's time. Planning takes about half of its time otherwise.
 */
export function prepareStatements(): void {
  if (arePrepared) return;
  arePrepared = true;
  const client = pg.Client.prototype as unknown as Record<string, (...values: unknown[]) => unknown>;
  const { query } = client;
  client.query = function queryPrepared(this: pg.Client, statement, values, ...more) {
    // Without values, a text may have several statements.
    const isOne = typeof statement === 'string' && Array.isArray(values) && values.length > 0;
    const name = isOne ? nameOf(statement) : undefined;
    const named = name === undefined ? statement : { name, text: statement };
    return Reflect.apply(query as never, this, [named, values, ...more]);
  };
}

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known !== undefined) return known;
  const count = (uses.get(text) ?? 0) + 1;
  uses.set(text, count);
  if (count < MIN_USES) return undefined;
  uses.delete(text);
  const name = `world_${names.size}`;
  names.set(text, name);
  return name;
}
