import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import type { Import } from '../../generated/prisma/client.js';
import { backoff } from '../../queue/work/backoff.js';
import { QUEUE_LENGTH } from '../../queue/work/feeder.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { type SealedPlace, Vault } from '../../vault/vault.js';
import type { FileKind } from '../parse/row/import-row.js';
import type { ImportFile, ImportKind, ImportRequest, ImportState } from './import.js';
import type { Guard } from './import-guards.js';
import type { ImportTotals } from './totals.js';

/** An import's row. */
export type ImportRecord = Omit<Import, 'kind' | 'mode' | 'state' | 'guards' | 'totals'> &
  Pick<ImportRequest, 'mode'> & {
    kind: ImportKind | null;
    state: ImportState;
    guards: Guard[] | null;
    totals: ImportTotals | null;
  };

/** The fields that the end of an upload, or a mapping, adds to an import. */
export interface ReadImport {
  state: 'staging' | 'needs-mapping';
  kind: ImportKind;
  files: readonly ImportFile[];
  mentioned: readonly string[];
  lostProviders: number;
}

/** A file of an earlier import, and the FHIR identifier systems of its ids. */
export type EarlierFile = ImportFile & Pick<ImportRequest, 'idSystems'>;

/** Maximum imports in which earlier files are looked for. */
const MAX_EARLIER = 50;

/** How long an import waits for a mapping, with its records stored. */
const MAPPING_HOURS = 24;

const IS_EXPIRED = `state = 'needs-mapping' AND created_at < clock_timestamp() - interval '${MAPPING_HOURS} hours'`;

/** SQL condition: no plan of an earlier import is missing, because each plan depends on those before it. */
const IS_NEXT_PLAN = `id = (SELECT id FROM imports WHERE state = 'staging' ORDER BY opened_at LIMIT 1)`;

/** SQL condition: the import has rows whose outcomes may change. */
const IS_AT_WORK = `state IN ('running', 'paused', 'cancelled', 'failed') AND finished_at IS NULL`;

/** SQL condition: the import has a next step. */
const IS_DUE = `(due_at IS NULL OR due_at <= clock_timestamp())
  AND (${IS_AT_WORK} OR state = 'staging' AND ${IS_NEXT_PLAN} OR ${IS_EXPIRED})`;

/** The rows of `imports`. */
@Injectable()
export class ImportsRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly vault: Vault,
    private readonly feed: Feed,
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
    return (await this.prisma.import.findMany({ where: older ?? {}, orderBy, take })) as ImportRecord[];
  }

  /** The newest file of each kind in the imports that were applied before this one was opened. */
  async filesBefore(openedAt: Date, kinds: ReadonlySet<FileKind>, tx?: PoolClient): Promise<EarlierFile[]> {
    const prisma = tx ? await this.prisma.of(tx) : this.prisma;
    const where = { appliedAt: { not: null }, openedAt: { lt: openedAt } };
    const earlier = await prisma.import.findMany({ where, orderBy: { openedAt: 'desc' }, take: MAX_EARLIER });
    const found = new Map<FileKind, EarlierFile>();
    for (const record of earlier) {
      const files = openIfReadable(() => this.filesOf(record)) ?? [];
      for (const file of files) {
        const isWanted = kinds.has(file.kind) && !file.csv?.mapping.isRejectedCsv;
        if (isWanted && !found.has(file.kind)) found.set(file.kind, { ...file, idSystems: record.idSystems });
      }
      if (found.size === kinds.size) break;
    }
    return [...found.values()];
  }

  /** The files of an import. Rows name their file by its ordinal, from 1. */
  filesOf({ id, files }: Pick<ImportRecord, 'id' | 'files'>): ImportFile[] {
    return JSON.parse(this.vault.open(filesPlace(id), files)) as ImportFile[];
  }

  /** Opens an import in the transaction of its upload. @returns false if the same request was read before */
  async open(tx: PoolClient, id: string, request: ImportRequest): Promise<boolean> {
    const { kind, mode, dryRun, defaultProvider, idSystems, correctionOf } = request;
    const { rowCount } = await tx.query(
      `INSERT INTO imports (id, kind, mode, dry_run, default_provider, id_systems, correction_of, state, opened_at, files)
       VALUES ($1, $2, $3, $4, $5, $6, $7, 'staging', clock_timestamp(), $8) ON CONFLICT (id) DO NOTHING`,
      [id, kind ?? null, mode, dryRun, defaultProvider ?? null, idSystems, correctionOf ?? null, this.seal(id, [])],
    );
    return rowCount === 1;
  }

  /** All files were read, or some wait for a mapping. */
  async wasRead(tx: PoolClient, id: string, read: ReadImport): Promise<void> {
    await update(
      tx,
      id,
      `state = $2, kind = $3, files = $4, mentioned = $5, lost_providers = $6`,
      'true',
      read.state,
      read.kind,
      this.seal(id, read.files),
      read.mentioned,
      read.lostProviders,
    );
  }

  /** Some of the imports that have a next step: many may stand still, and must not hide the others. */
  due(): Promise<{ id: string }[]> {
    return this.prisma.$queryRawUnsafe(
      `SELECT id FROM imports WHERE ${IS_DUE} ORDER BY random() LIMIT ${QUEUE_LENGTH}`,
    );
  }

  /** A step failed. */
  async postpone(id: string): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      const [locked] = await tx.$queryRaw<{ now: Date; failures: number }[]>`
        SELECT clock_timestamp() AS now, failures FROM imports WHERE id = ${id}::uuid FOR NO KEY UPDATE`;
      if (!locked) return;
      const failures = locked.failures + 1;
      await tx.import.update({ where: { id }, data: { failures, dueAt: backoff(failures, locked.now) } });
    });
  }

  /** A step succeeded after failures. */
  async succeeded(id: string): Promise<void> {
    await this.prisma.import.update({ where: { id }, data: { failures: 0, dueAt: null } });
  }

  /**
   * Begins the plan of an import, and counts it as failed until it ends, so that a plan that kills its process counts.
   *
   * @param isCounted false if the last one ended because the database was unavailable
   * @returns the plans that failed so far, with this one; undefined if it is not the next one to plan, or is being planned
   */
  async beginPlan(id: string, isCounted: boolean): Promise<number | undefined> {
    const begun = `UPDATE imports SET failures = failures + $2::int WHERE id = (
        SELECT id FROM imports WHERE id = $1 AND state = 'staging' AND ${IS_NEXT_PLAN} FOR NO KEY UPDATE SKIP LOCKED)
      RETURNING failures`;
    const { rows } = await this.database.pool.query<{ failures: number }>(begun, [id, isCounted ? 1 : 0]);
    return rows[0]?.failures;
  }

  /** Stores the plan. @returns false if the import was cancelled */
  planned(tx: PoolClient, id: string, guards: Guard[], isApplied: boolean): Promise<boolean> {
    const planned = `state = CASE WHEN $2 THEN 'running' ELSE 'planned' END, guards = $3, failures = 0,
      applied_at = CASE WHEN $2 THEN clock_timestamp() END`;
    return update(tx, id, planned, `state = 'staging'`, isApplied, JSON.stringify(guards));
  }

  /** Locks an import. @returns undefined if the condition does not hold */
  async lock(tx: PoolClient, id: string, condition = 'true'): Promise<ImportRecord | undefined> {
    const sql = `SELECT 1 FROM imports WHERE id = $1 AND ${condition} FOR NO KEY UPDATE`;
    return (await tx.query(sql, [id])).rowCount === 1 ? this.find(id, tx) : undefined;
  }

  /** Locks an import whose outcomes may change. */
  lockAtWork(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    return this.lock(tx, id, IS_AT_WORK);
  }

  /** Cancels an import. What it stated is withdrawn by the next steps. */
  async cancel(tx: PoolClient, id: string): Promise<void> {
    await update(
      tx,
      id,
      `state = 'cancelled', withdraws = applied_at IS NOT NULL, finished_at = NULL, totals = NULL,
      failures = 0, due_at = NULL`,
    );
  }

  /** All that a cancelled import may withdraw is withdrawn. */
  async withdrawn(tx: PoolClient, id: string): Promise<void> {
    await update(tx, id, 'withdraws = false');
  }

  async enter(tx: PoolClient, id: string, state: ImportState): Promise<void> {
    const entered = `state = $2, finished_at = NULL, totals = NULL, failures = 0, due_at = NULL,
      applied_at = CASE WHEN $2 = 'running' THEN coalesce(applied_at, clock_timestamp()) ELSE applied_at END`;
    await update(tx, id, entered, 'true', state);
  }

  /** A corrected plan is recomputed, and then waits to be applied. */
  async replan(tx: PoolClient, id: string): Promise<void> {
    await update(tx, id, `state = 'staging', dry_run = true, failures = 0, due_at = NULL`);
  }

  /** Fails an import in one of some states. Its rows will be skipped. */
  async fail(
    tx: PoolClient,
    id: string,
    from: readonly ImportState[],
    { code, detail }: { code: string; detail: string },
  ): Promise<void> {
    const failed = `state = 'failed', error_code = $2, error_detail = $3`;
    await update(tx, id, failed, 'state = ANY ($4::text[])', code, detail, from);
  }

  /** Cancels an import that waited too long for a mapping. */
  async expire(id: string): Promise<void> {
    const detail = `No columns were chosen within ${MAPPING_HOURS} hours, so the stored records were deleted. Upload the files again.`;
    const expired = `state = 'cancelled', error_code = 'mapping-expired', error_detail = $2`;
    await update(this.database.pool, id, expired, IS_EXPIRED, detail);
  }

  /** Finishes an import with its final counts, and announces it. @returns its final state */
  async finish(tx: PoolClient, { id, state }: ImportRecord, totals: ImportTotals): Promise<ImportState> {
    const final = state === 'cancelled' || state === 'failed' ? state : 'completed';
    await update(tx, id, 'state = $2, totals = $3, finished_at = clock_timestamp()', 'true', final, totals);
    await this.feed.append(await this.prisma.in(tx), {
      type: 'import.finished',
      subject: `imports/${id}`,
      data: { id, state: final },
    });
    return final;
  }

  private seal(id: string, files: readonly ImportFile[]): Buffer {
    return this.vault.seal(filesPlace(id), JSON.stringify(files));
  }
}

function filesPlace(importId: string): SealedPlace {
  return { table: 'imports', column: 'files', row: importId };
}

/** Updates import $1 if the condition holds. @param values from $2 on @returns true if it holds */
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
