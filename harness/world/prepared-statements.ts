import pg from 'pg';

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
    const name = typeof statement === 'string' && Array.isArray(values) ? nameOf(statement) : undefined;
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
