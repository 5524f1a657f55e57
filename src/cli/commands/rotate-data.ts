import 'reflect-metadata';
import type { Client } from 'pg';
import { Random } from '../../config/random.js';
import type { SecretKey } from '../../vault/keys.js';
import { wrappedKey } from '../../vault/read-vault.js';
import { type ColumnKeys, countKeys, rotate, type UnreadableRow } from '../../vault/rotation.js';
import { Vault } from '../../vault/vault.js';
import { counted, table } from '../output/print.js';
import { LiveLine } from '../output/progress.js';
import { withServiceData } from './service-data.js';

export interface RotationOptions {
  dryRun?: boolean;
  json?: boolean;
}

/** The state after a rotation. */
interface RotationReport {
  /** The keys of DATA_KEYS with the number of values that each encrypted. The first encrypts new values. */
  keys: { key: string; values: number; droppable: boolean }[];
  /** Names of keys in use that DATA_KEYS lacks; `?` stands for bytes without a valid header. */
  missing: string[];
  columns: ColumnKeys[];
  /** Values that rotation still has to reseal. */
  left: number;
  unreadable: UnreadableRow[];
}

/** `notebridge keys rotate-data` */
export async function rotateData({ dryRun = false, json = false }: RotationOptions): Promise<void> {
  const report = await withServiceData((client, keys) => rotateAll(client, keys.DATA_KEYS, dryRun, json));
  console.log(json ? JSON.stringify(report, null, 2) : inWords(report, dryRun));
  process.exitCode = report.left > 0 || report.unreadable.length > 0 ? 2 : 0;
}

async function rotateAll(client: Client, keys: SecretKey[], dryRun: boolean, json: boolean): Promise<RotationReport> {
  await wrappedKey(client); // fails on a database on which the service never started
  const vault = new Vault(keys, Buffer.alloc(32), new Random());
  const first = keys[0]?.id ?? '';
  const unreadable: UnreadableRow[] = [];
  if (!dryRun) {
    const total = staleOf(await countKeys(client, first));
    const live = new LiveLine(json ? process.stderr : process.stdout);
    const startedAt = performance.now();
    let done = 0;
    const onProgress = (count: number) => {
      done += count;
      const seconds = (performance.now() - startedAt) / 1000;
      if (total > 0)
        live.show({ done, total, noun: 'values', etaSeconds: done === 0 ? null : (seconds / done) * (total - done) });
    };
    await rotate(client, vault, first, { onProgress, onUnreadable: (row) => unreadable.push(row) });
    live.end();
  }
  return reportOf(keys, await countKeys(client, first), unreadable);
}

function reportOf(keys: SecretKey[], columns: ColumnKeys[], unreadable: UnreadableRow[]): RotationReport {
  const values = (key: string) => columns.reduce((sum, column) => sum + (column.keys[key] ?? 0), 0);
  const given = keys.map(({ id }, at) => ({ key: id, values: values(id), droppable: at > 0 && values(id) === 0 }));
  const used = new Set(columns.flatMap((column) => Object.keys(column.keys)));
  return {
    keys: given,
    missing: [...used].filter((key) => !keys.some(({ id }) => id === key)),
    columns: columns.filter((column) => Object.keys(column.keys).length > 0),
    left: staleOf(columns),
    unreadable,
  };
}

const staleOf = (columns: readonly ColumnKeys[]): number => columns.reduce((sum, { stale }) => sum + stale, 0);

function inWords(report: RotationReport, dryRun: boolean): string {
  const { keys, missing, columns, left, unreadable } = report;
  const droppable = keys.flatMap(({ key, droppable }) => (droppable ? key : []));
  const used = columns.map((column) => ({
    column: `${column.table}.${column.column}`,
    values: Object.entries(column.keys)
      .map(([key, count]) => `${key}: ${count}`)
      .join(', '),
  }));
  const again = `${dryRun ? 'run this without --dry-run' : 'run this again'}${unreadable.length > 0 ? ', and restore the rows above from a backup' : ''}`;
  return [
    ...(used.length > 0 ? [table(used)] : []),
    ...unreadable.map(({ table: name, column, row }) => `✗ ${name}.${column} of row ${row} does not open.`),
    ...missing.map((key) => `✗ DATA_KEYS lacks the key ${key}, which encrypted values.`),
    left > 0 ? `${counted(left, 'value')} left: ${again}.` : `All values are encrypted with ${keys[0]?.key}.`,
    droppable.length > 0
      ? `Nothing uses ${droppable.join(', ')}: remove it from DATA_KEYS once every process runs with ${keys[0]?.key} first.`
      : 'No key can be removed.',
  ].join('\n');
}
