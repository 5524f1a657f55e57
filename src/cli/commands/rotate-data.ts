import 'reflect-metadata';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Command } from 'commander';
import type { Client } from 'pg';
import { readEnv } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { withClient } from '../../database/database.js';
import { EmbeddedPostgresInUse, startEmbeddedPostgres } from '../../database/embedded-postgres.js';
import { FormerSessions } from '../../sessions/model/former-sessions.repository.js';
import { type DataKey, keptDataKeys, parseDataKeys } from '../../vault/data-keys.js';
import { type ColumnKeys, countKeys, rotate, type UnreadableRow } from '../../vault/rotation.js';
import { isFormerLayout, Vault } from '../../vault/vault.js';
import { FINGERPRINT_PLACE } from '../../vault/vault.module.js';
import { CliFault } from '../api/cli-fault.js';
import { counted, table } from '../output/print.js';
import { LiveLine } from '../output/progress.js';

interface RotationOptions {
  dryRun?: boolean;
  json?: boolean;
}

/** What a rotation leaves. */
interface RotationReport {
  /** The keys of DATA_KEYS, the first of which seals, and how many values each still holds. */
  keys: { key: string; values: number; droppable: boolean }[];
  /** Names of keys that seal something and are not in DATA_KEYS; `?` is what begins as no sealed value does. */
  missing: string[];
  columns: ColumnKeys[];
  /** Sessions that were stored before their owner was sealed with them. */
  formerSessions: number;
  /** Values that are still to be sealed anew. */
  left: number;
  unreadable: UnreadableRow[];
}

/** From the environment and the database, whether the service runs or not. */
async function rotateData({ dryRun = false, json = false }: RotationOptions): Promise<void> {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const env = readEnv();
  const { DATABASE_URL: url, DATA_DIR: dataDir } = env;
  const embedded = url === undefined ? await startEmbedded(path.resolve(dataDir)) : undefined;
  try {
    const pairs = env.DATA_KEYS ?? (embedded && (await keptDataKeys(path.resolve(dataDir), new Random())));
    if (!pairs) throw new CliFault('DATA_KEYS is not set; give the new key first, and the old ones behind it.');
    const report = await withClient(url ?? embedded?.url ?? '', (client) =>
      rotateAll(client, parseDataKeys(pairs), dryRun, json),
    );
    console.log(json ? JSON.stringify(report, null, 2) : inWords(report));
    process.exitCode = report.left > 0 || report.unreadable.length > 0 ? 2 : 0;
  } finally {
    await embedded?.release();
  }
}

async function startEmbedded(dataRoot: string) {
  return startEmbeddedPostgres({ dataRoot }).catch((error: unknown) => {
    if (!(error instanceof EmbeddedPostgresInUse)) throw error;
    throw new CliFault('The embedded PostgreSQL is in use by the service; stop it first, and begin again.');
  });
}

async function rotateAll(client: Client, keys: DataKey[], dryRun: boolean, json: boolean): Promise<RotationReport> {
  const text = 'SELECT wrapped FROM vault_keys WHERE purpose = $1';
  const { rows } = await client.query<{ wrapped: Buffer }>(text, [FINGERPRINT_PLACE.row]).catch(() => {
    throw new CliFault('The database holds no tables of this version yet; start the service once.');
  });
  const [mark] = rows;
  if (!mark) throw new CliFault('The database holds nothing sealed yet; start the service once.');
  const vault = new Vault(keys, Buffer.alloc(32), new Random(), { readsFormerLayout: isFormerLayout(mark.wrapped) });
  const sessions = vault.readsFormerLayout ? new FormerSessions(client, vault) : undefined;
  const first = keys[0]?.id ?? '';
  const unreadable: UnreadableRow[] = [];
  if (!dryRun) {
    const total = staleOf(await countKeys(client, first)) + ((await sessions?.count()) ?? 0);
    const live = new LiveLine(json ? process.stderr : process.stdout);
    const startedAt = performance.now();
    let done = 0;
    const onProgress = (count: number) => {
      done += count;
      const seconds = (performance.now() - startedAt) / 1000;
      live.show({ done, total, noun: 'values', etaSeconds: done === 0 ? null : (seconds / done) * (total - done) });
    };
    await sessions?.seal(onProgress, (row) => unreadable.push({ table: 'sessions', column: 'error_message', row }));
    await rotate(client, vault, first, { onProgress, onUnreadable: (row) => unreadable.push(row) });
    live.end();
  }
  const columns = await countKeys(client, first);
  return reportOf(keys, columns, unreadable, (await sessions?.count()) ?? 0);
}

function reportOf(
  keys: DataKey[],
  columns: ColumnKeys[],
  unreadable: UnreadableRow[],
  formerSessions: number,
): RotationReport {
  const values = (key: string) => columns.reduce((sum, column) => sum + (column.keys[key] ?? 0), 0);
  const given = keys.map(({ id }, at) => ({ key: id, values: values(id), droppable: at > 0 && values(id) === 0 }));
  const used = new Set(columns.flatMap((column) => Object.keys(column.keys)));
  return {
    keys: given,
    missing: [...used].filter((key) => !keys.some(({ id }) => id === key)),
    columns: columns.filter((column) => Object.keys(column.keys).length > 0),
    formerSessions,
    left: staleOf(columns) + formerSessions,
    unreadable,
  };
}

const staleOf = (columns: readonly ColumnKeys[]): number => columns.reduce((sum, { stale }) => sum + stale, 0);

function inWords({ keys, missing, columns, left, unreadable }: RotationReport): string {
  const droppable = keys.flatMap(({ key, droppable }) => (droppable ? key : []));
  const used = columns.map((column) => ({
    column: `${column.table}.${column.column}`,
    values: Object.entries(column.keys)
      .map(([key, count]) => `${key}: ${count}`)
      .join(', '),
  }));
  return [
    ...(used.length > 0 ? [table(used)] : []),
    ...unreadable.map(({ table: name, column, row }) => `✗ ${name}.${column} of row ${row} does not open.`),
    ...missing.map((key) => `✗ Values are sealed with ${key}, which DATA_KEYS lacks.`),
    left > 0
      ? `${counted(left, 'value')} still to be sealed anew: run this again${unreadable.length > 0 ? ', and restore the rows above from a backup' : ''}.`
      : `All is sealed with ${keys[0]?.key}.`,
    droppable.length > 0
      ? `Nothing uses ${droppable.join(', ')} any more: take it out of DATA_KEYS once every process runs with ${keys[0]?.key} first.`
      : 'No key can be dropped.',
  ].join('\n');
}

new Command('notebridge keys rotate-data')
  .description('Seals all data anew with the first key of DATA_KEYS, and says which keys nothing uses any more.')
  .option('--dry-run', 'only count which keys are used')
  .option('--json', 'print the outcome as JSON, and the progress to stderr')
  .addHelpText(
    'after',
    `
It speaks to the database, by DATABASE_URL and DATA_KEYS as the service has them: first give every process the new key
before the old ones, then run this beside them. It can be stopped and run again at any time.
Ends with 0 when all is sealed with the first key, 2 when values are left or do not open.`,
  )
  .showHelpAfterError('(see --help)')
  .action(rotateData)
  .parseAsync()
  .catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : 'The command failed without a reason.');
    process.exitCode = 1;
  });
