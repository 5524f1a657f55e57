import 'reflect-metadata';
import type { Client } from 'pg';
import { Random } from '../../config/random.js';
import { forgetKeys, type KeyUses, keyFaults, registerKeys, type ServiceKeys } from '../../vault/key-uses.js';
import type { KeySetting } from '../../vault/keys.js';
import { type ColumnKeys, countKeys, type RotationUse, rotate, type UnreadableRow } from '../../vault/rotation.js';
import { Vault } from '../../vault/vault.js';
import { CliFault } from '../api/cli-fault.js';
import { counted, table } from '../output/print.js';
import { LiveLine } from '../output/progress.js';
import { AuditRotation } from './rotate-audit.js';
import { withServiceData } from './service-data.js';

/** A dedicated connection, because a rotation changes its settings. */
type Sql = Pick<Client, 'query'>;

export interface RotationOptions {
  dryRun?: boolean;
  json?: boolean;
}

/** Fingerprints keep their key. */
type RotatedSetting = Exclude<KeySetting, 'FINGERPRINT_KEYS'>;

/** Counts and recomputes the values that the keys of one setting made. */
interface Rotation {
  setting: RotatedSetting;
  count(): Promise<ColumnKeys[]>;
  run(use: RotationUse): Promise<void>;
}

/** The state after a rotation. */
interface RotationReport {
  setting: RotatedSetting;
  /** The keys of the setting with the number of values that each made. The first makes new values. */
  keys: { key: string; values: number; droppable: boolean }[];
  /** Names of keys in use that the setting lacks; `?` means bytes without a valid header. */
  missing: string[];
  columns: ColumnKeys[];
  /** Values that rotation still has to recompute. */
  left: number;
  unreadable: UnreadableRow[];
}

/** Why the rotation left a row as it was. */
const FAULTS: Record<RotatedSetting, string> = {
  DATA_KEYS: 'cannot be decrypted',
  AUDIT_KEYS: 'has a fault, see notebridge audit verify, and keeps its old MAC',
};

/** The rotations, by the word that follows `notebridge keys rotate`. */
const ROTATIONS = {
  data: (client: Sql, { DATA_KEYS: keys }: ServiceKeys): Rotation => ({
    setting: 'DATA_KEYS',
    count: () => countKeys(client, keys[0]?.id ?? ''),
    run: (use) => rotate(client, new Vault(keys, new Random()), keys[0]?.id ?? '', use),
  }),
  audit: (client: Sql, { AUDIT_KEYS: keys }: ServiceKeys): Rotation => {
    const rotation = new AuditRotation(client, keys);
    return { setting: 'AUDIT_KEYS', count: () => rotation.count(), run: (use) => rotation.run(use) };
  },
};
export type RotationKind = keyof typeof ROTATIONS;

/** `notebridge keys rotate data` and `audit`: exits 2 if values are left. */
export async function rotateKeys(kind: RotationKind, { dryRun = false, json = false }: RotationOptions): Promise<void> {
  const live = new LiveLine(json ? process.stderr : process.stdout);
  const role = kind === 'audit' ? 'owner' : 'service';
  const report = await withServiceData(
    (client, keys, prisma) => rotateOn(client, prisma, kind, keys, dryRun, live),
    role,
  );
  console.log(json ? JSON.stringify(report, null, 2) : inWords(report, dryRun));
  process.exitCode = report.left > 0 || report.unreadable.length > 0 ? 2 : 0;
}

/** Rotates on a dedicated connection. @param uses of the same database @param live shows the progress */
export async function rotateOn(
  client: Sql,
  uses: KeyUses,
  kind: RotationKind,
  keys: ServiceKeys,
  dryRun = false,
  live?: LiveLine,
): Promise<RotationReport> {
  if (!(await keyFaults(uses, keys))) throw new CliFault('The database is empty. Start the service once.');
  await registerKeys(uses, keys);
  const { setting, count, run } = ROTATIONS[kind](client, keys);
  const unreadable: UnreadableRow[] = [];
  if (!dryRun) {
    const total = staleOf(await count());
    const startedAt = performance.now();
    let done = 0;
    const onProgress = (made: number) => {
      done = Math.min(total, done + made);
      const seconds = (performance.now() - startedAt) / 1000;
      const etaSeconds = done === 0 ? null : (seconds / done) * (total - done);
      if (total > 0) live?.show({ done, total, noun: 'values', etaSeconds });
    };
    await run({ onProgress, onUnreadable: (row) => unreadable.push(row) });
    live?.end();
  }
  const report = reportOf(setting, keys, await count(), unreadable);
  const droppable = report.keys.flatMap(({ key, droppable }) => (droppable ? key : []));
  if (!dryRun) await forgetKeys(uses, setting, droppable);
  return report;
}

function reportOf(
  setting: RotatedSetting,
  keys: ServiceKeys,
  columns: ColumnKeys[],
  unreadable: UnreadableRow[],
): RotationReport {
  const values = (key: string) => columns.reduce((sum, column) => sum + (column.keys[key] ?? 0), 0);
  const given = keys[setting].map(({ id }, at) => ({
    ...{ key: id, values: values(id), droppable: at > 0 && values(id) === 0 },
  }));
  const used = new Set(columns.flatMap((column) => Object.keys(column.keys)));
  return {
    setting,
    keys: given,
    missing: [...used].filter((key) => !given.some((one) => one.key === key)),
    columns: columns.filter((column) => Object.keys(column.keys).length > 0),
    left: staleOf(columns),
    unreadable,
  };
}

const staleOf = (columns: readonly ColumnKeys[]): number => columns.reduce((sum, { stale }) => sum + stale, 0);

function inWords(report: RotationReport, dryRun: boolean): string {
  const { setting, keys, missing, columns, left, unreadable } = report;
  const [first] = keys;
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
    ...unreadable.map(({ table: name, column, row }) => `✗ ${name}.${column} of row ${row} ${FAULTS[setting]}.`),
    ...missing.map((key) => `✗ ${setting} lacks the key ${key}, which made values.`),
    left > 0 ? `${counted(left, 'value')} left: ${again}.` : `All values are by ${first?.key}.`,
    droppable.length > 0
      ? `Nothing needs ${droppable.join(', ')}: remove it from ${setting} once every process runs with ${first?.key} first.`
      : 'No key can be removed.',
  ].join('\n');
}
