import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Audit } from '../../access/audit/audit.js';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import type { Import } from '../../generated/prisma/client.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { ImportFile, ImportRequest, ImportState } from './import.js';
import type { Guard } from './import-guards.js';

/** An import's row. */
export type ImportRecord = Omit<Import, 'kind' | 'mode' | 'state' | 'guards'> &
  Pick<ImportRequest, 'kind' | 'mode'> & { state: ImportState; guards: Guard[] | null };

/** Read to its end, or to be applied, and no person is changed yet. */
const NOT_BEGUN = `(staged_at IS NOT NULL AND (state = 'staging' OR state = 'planned' AND apply_wanted))`;
const APPLYING = `(state = 'running' AND apply_wanted)`;
const BEING_READ = `(state = 'staging' AND staged_at IS NULL)`;
const TO_PREPARE = `(${NOT_BEGUN} OR ${APPLYING})`;
const DUE = `${TO_PREPARE} AND (attempt_at IS NULL OR attempt_at <= clock_timestamp())`;

/** What the worker looks for. */
const WHICH = {
  /** To be planned or applied now. */
  due: DUE,
  /** Could not be prepared so far, and waits for another attempt. */
  putOff: `${TO_PREPARE} AND attempts > 0 AND attempt_at IS NOT NULL`,
  /** Its people have not all followed the last pause, cancel or resume. */
  steered: 'steered_to IS NOT NULL',
  /** Its rows may still change: outcomes are resolved, or it is rolled back. */
  underWay: `(state IN ('running', 'paused') OR state IN ('cancelled', 'failed') AND finished_at IS NULL)`,
  /** Its upload broke off: the reader marks every few seconds that it is at work. */
  stale: `${BEING_READ} AND alive_at < clock_timestamp() - interval '1 minute'`,
};

/** Milliseconds without a batch after which an import's worker counts as dead; a batch takes a fraction of it. */
const STALE_MS = 5_000;

/** The advisory lock under which an import is planned, applied or rolled back, one at a time; any fixed number. */
export const IMPORT_LOCK = 727_002;

/**
 * Has the planner take a batch by key, whatever it believes of tables that were filled a moment ago. A batch takes a
 * fraction of 30 seconds; a longer one is given up, since interactive changes wait behind its locks.
 */
export const BATCH_BY_KEY = 'SET LOCAL statement_timeout = 30000; SET LOCAL enable_seqscan = off';

/** Where an import stands that fails while it is read, planned or applied. */
const FAILS = { reading: BEING_READ, plan: NOT_BEGUN, apply: APPLYING };

/** Why an import failed as a whole. */
interface ImportFault {
  code: string;
  detail: string;
}

/** The imports themselves: where each stands. */
@Injectable()
export class ImportsRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly vault: Vault,
    private readonly feed: Feed,
    private readonly audit: Audit,
  ) {}

  async find(id: string, sql: Pool | PoolClient = this.database.pool): Promise<ImportRecord | undefined> {
    const prisma = await this.prisma.of(sql);
    return ((await prisma.import.findUnique({ where: { id } })) as ImportRecord | null) ?? undefined;
  }

  /** The newest imports first. @param before the creation time and id of the last one seen */
  async list(take: number, before?: { createdAt: string; id: string }): Promise<ImportRecord[]> {
    const older = before && {
      OR: [{ createdAt: { lt: before.createdAt } }, { createdAt: before.createdAt, id: { lt: before.id } }],
    };
    const orderBy = [{ createdAt: 'desc' as const }, { id: 'desc' as const }];
    return (await this.prisma.import.findMany({ where: older, orderBy, take })) as ImportRecord[];
  }

  /** The files of an import that was read; none before. Rows name their file by its ordinal, from 1; 0 is none. */
  filesOf({ id, files }: Pick<ImportRecord, 'id' | 'files'>): ImportFile[] {
    return files ? (JSON.parse(this.vault.open(filesPlace(id), files)) as ImportFile[]) : [];
  }

  /** Begins an import, or begins it anew when an earlier run broke off. @returns false when it was read already, or cancelled */
  async begin(id: string, request: ImportRequest): Promise<boolean> {
    const { kind, mode, dryRun, defaultProvider, idSystems, encounterSince } = request;
    return this.database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `INSERT INTO imports AS i (id, kind, mode, dry_run, default_provider, id_systems, state, encounter_since)
       VALUES ($1, $2, $3, $4, $5, $6, 'staging', $7)
       ON CONFLICT (id) DO UPDATE SET state = 'staging', error_code = NULL, error_detail = NULL, finished_at = NULL,
         alive_at = clock_timestamp() WHERE i.staged_at IS NULL AND i.state <> 'cancelled'`,
        [id, kind, mode, dryRun, defaultProvider ?? null, idSystems, encounterSince ?? null],
      );
      this.audit.about('import', id);
      await this.audit.store(tx);
      return rowCount === 1;
    });
  }

  /** Records that its reader is at work. @returns false when the import ended meanwhile */
  keepAlive(id: string): Promise<boolean> {
    return update(this.database.pool, id, 'alive_at = clock_timestamp()', BEING_READ);
  }

  /** For the poller, as SQL: due while there is such an import. */
  dueWhile(kind: keyof typeof WHICH): string {
    return `(SELECT now() FROM imports WHERE ${WHICH[kind]} LIMIT 1)`;
  }

  async which(kind: keyof typeof WHICH): Promise<Pick<ImportRecord, 'id' | 'state'>[]> {
    const sql = `SELECT id, state FROM imports WHERE ${WHICH[kind]} ORDER BY staged_at`;
    return (await this.database.pool.query(sql)).rows;
  }

  /** It was read to its end. @returns false when it was given up meanwhile */
  staged(tx: PoolClient, id: string, files: readonly ImportFile[]): Promise<boolean> {
    const sealed = this.vault.seal(filesPlace(id), JSON.stringify(files));
    return update(tx, id, 'staged_at = clock_timestamp(), files = $2', `state = 'staging'`, sealed);
  }

  /**
   * Ends an import that could not be read or planned, unless it got further meanwhile; one that is being applied ends
   * once it was rolled back. @returns false when it was not being read, planned or applied
   */
  async fail(tx: PoolClient, id: string, what: keyof typeof FAILS, { code, detail }: ImportFault): Promise<boolean> {
    const rolledBack = what === 'apply' ? `, state = 'failed', apply_wanted = false, steered_to = 0` : '';
    const failed = await update(tx, id, `error_code = $2, error_detail = $3${rolledBack}`, FAILS[what], code, detail);
    if (failed && what !== 'apply') await this.end(tx, id, 'failed');
    return failed;
  }

  /** Takes the import lock until the transaction ends, unless another has it. */
  async tryLock(tx: PoolClient): Promise<boolean> {
    const { rows } = await tx.query('SELECT pg_try_advisory_xact_lock($1) AS locked', [IMPORT_LOCK]);
    return rows[0].locked;
  }

  /** Waits for the import lock. To be called before anything else is locked. */
  async lock(tx: PoolClient): Promise<void> {
    await tx.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
  }

  /**
   * Begins an attempt with the next import: one that is being applied, then in the order in which they were read to their
   * ends. The lock is waited for: an import that was passed over would be applied after those behind it.
   *
   * @returns undefined when there is none, or another process works on it
   */
  async beginNext(tx: PoolClient): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<{ id: string; isTaken: boolean }>(
      `SELECT id, ${APPLYING} AND alive_at > clock_timestamp() - $1 * interval '1 millisecond' AS "isTaken"
       FROM imports WHERE ${DUE}
       ORDER BY ${APPLYING} DESC, staged_at LIMIT 1 FOR NO KEY UPDATE`,
      [STALE_MS],
    );
    const [next] = rows;
    if (!next || next.isTaken) return undefined;
    await update(
      tx,
      next.id,
      `attempts = attempts + 1, alive_at = clock_timestamp(),
       state = CASE state WHEN 'planned' THEN 'running' ELSE state END,
       applied_at = CASE WHEN state = 'staging' THEN applied_at ELSE coalesce(applied_at, clock_timestamp()) END`,
    );
    return this.find(next.id, tx);
  }

  /** The plan was made. @returns false when the import ended meanwhile */
  planned(tx: PoolClient, id: string, guards: Guard[], mayApply: boolean): Promise<boolean> {
    const planned = `state = CASE WHEN $2 THEN 'running' ELSE 'planned' END, apply_wanted = $2, guards = $3,
      attempts = 0, attempt_at = NULL, alive_at = clock_timestamp(), applied_at = CASE WHEN $2 THEN clock_timestamp() END`;
    return update(tx, id, planned, `state = 'staging'`, mayApply, JSON.stringify(guards));
  }

  /** Locks an import for one batch. @returns false when it is not to be applied any more */
  async lockApplying(tx: PoolClient, id: string): Promise<boolean> {
    await tx.query(BATCH_BY_KEY);
    return update(tx, id, 'alive_at = clock_timestamp()', APPLYING);
  }

  /** A batch was done: attempts are counted anew. */
  async resetAttempts(tx: PoolClient, id: string): Promise<void> {
    await update(tx, id, 'attempts = 0', 'attempts > 0');
  }

  /** All its rows are applied. */
  async applied(tx: PoolClient, id: string): Promise<void> {
    await update(tx, id, 'apply_wanted = false, attempts = 0, attempt_at = NULL', APPLYING);
  }

  async attemptAgain(tx: PoolClient, id: string, afterMs: number): Promise<void> {
    await update(tx, id, `attempt_at = clock_timestamp() + $2 * interval '1 millisecond'`, TO_PREPARE, afterMs);
  }

  /** Locks a steered import for a batch. @returns undefined when all have followed */
  async lockSteered(tx: PoolClient, id: string): Promise<{ record: ImportRecord; lastRow: number } | undefined> {
    const record = await this.lockWhere(tx, id, WHICH.steered);
    await tx.query(BATCH_BY_KEY);
    const last = 'SELECT coalesce(max(row_no), 0) AS "lastRow" FROM import_rows WHERE import_id = $1';
    return record && { record, lastRow: (await tx.query(last, [id])).rows[0].lastRow };
  }

  /** @param row the last whose person followed; null: all have */
  async followed(tx: PoolClient, id: string, row: number | null): Promise<void> {
    await update(tx, id, 'steered_to = $2', 'true', row);
  }

  /** Locks an import that is under way; undefined when it has ended, or another worker has it. */
  lockUnderWay(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    return this.lockWhere(tx, id, WHICH.underWay, 'SKIP LOCKED');
  }

  /** Waits until an import is locked. @returns undefined where the condition does not hold */
  async lockWhere(tx: PoolClient, id: string, condition = 'true', how = ''): Promise<ImportRecord | undefined> {
    const sql = `SELECT 1 FROM imports WHERE id = $1 AND ${condition} FOR NO KEY UPDATE ${how}`;
    return (await tx.query(sql, [id])).rowCount === 1 ? this.find(id, tx) : undefined;
  }

  /**
   * Changes the state: its people are paused or released from this moment on, in their rows batch by batch (`steered`),
   * unless applying it does that at its end.
   *
   * @param applyWanted rows of it are still to be applied, once it is running; any worker may begin at once
   */
  async enter(tx: PoolClient, id: string, state: ImportState, applyWanted = false): Promise<void> {
    const entered = `state = $2, apply_wanted = $3, attempts = 0, attempt_at = NULL, finished_at = NULL,
      steered_to = CASE WHEN applied_at IS NOT NULL AND NOT ($2 = 'running' AND $3) THEN 0 END,
      alive_at = CASE WHEN $3 THEN 'epoch' ELSE alive_at END,
      applied_at = CASE WHEN $2 = 'running' THEN coalesce(applied_at, clock_timestamp()) ELSE applied_at END`;
    await update(tx, id, entered, 'true', state, applyWanted);
  }

  /** Asks for a planned import to be applied. */
  async wantApply(tx: PoolClient, id: string, overrides: string[]): Promise<void> {
    await update(tx, id, 'apply_wanted = true, overrides = $2, attempts = 0, attempt_at = NULL', 'true', overrides);
  }

  /** Ends an import, and publishes that. */
  async end(tx: PoolClient, id: string, state: 'completed' | 'cancelled' | 'failed'): Promise<void> {
    await update(tx, id, 'state = $2, finished_at = clock_timestamp()', 'true', state);
    await this.feed.append(tx, { type: 'import.finished', subject: `imports/${id}`, data: { id, state } });
  }

  /**
   * Refreshes the planner's statistics after many rows or people changed at once: otherwise it takes them for a few, and
   * looks through all of one for each of the other. A sample of 3,000 rows will do; sealed columns are never compared.
   */
  async analyse(tx: PoolClient): Promise<void> {
    await tx.query(`SET LOCAL default_statistics_target = 10;
      ANALYZE import_rows (import_id, row_no, kind, external_id, outcome, planned, applied, person_id),
        people (id, kind, external_id, state, wanted, wanted_at, lane, due_at, paused_by_import, error_code),
        client_providers`);
  }
}

function filesPlace(importId: string): SealedPlace {
  return { table: 'imports', column: 'files', row: importId };
}

/** Updates import $1, if it is as the condition says. @param values from $2 on @returns whether it is */
async function update(
  sql: Pool | PoolClient,
  id: string,
  assignments: string,
  condition = 'true',
  ...values: unknown[]
): Promise<boolean> {
  const text = `UPDATE imports SET ${assignments} WHERE id = $1 AND ${condition}`;
  return (await sql.query(text, [id, ...values])).rowCount === 1;
}
