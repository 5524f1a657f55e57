import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import type { Import } from '../../generated/prisma/client.js';
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

/** SQL condition: the worker has something to do for the import. */
const IS_AT_WORK = `state IN ('staging', 'running', 'paused', 'cancelled', 'failed') AND finished_at IS NULL`;
const IS_EXPIRED = `state = 'needs-mapping' AND created_at < clock_timestamp() - interval '${MAPPING_HOURS} hours'`;

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

  /** SQL for the poller: when an import needs the worker. */
  nextDue(): string {
    return `least((SELECT now() FROM imports WHERE ${IS_AT_WORK} LIMIT 1),
      (SELECT min(created_at) + interval '${MAPPING_HOURS} hours' FROM imports WHERE state = 'needs-mapping'))`;
  }

  /** The ids of imports for the worker, in the order in which they were opened. */
  async atWork(...states: ImportState[]): Promise<string[]> {
    const sql = `SELECT id FROM imports WHERE ${IS_AT_WORK} AND state = ANY ($1::text[]) ORDER BY opened_at`;
    return (await this.database.pool.query<{ id: string }>(sql, [states])).rows.map(({ id }) => id);
  }

  /**
   * Begins to plan the next import, and counts the attempt, so that one that kills the process counts, too.
   *
   * @returns undefined if none waits, or if another process plans it
   */
  async beginPlan(tx: PoolClient): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE imports SET attempts = attempts + 1 WHERE id = (
         SELECT id FROM imports WHERE state = 'staging' AND id = (
           SELECT id FROM imports WHERE state = 'staging' ORDER BY opened_at LIMIT 1) FOR NO KEY UPDATE SKIP LOCKED)
       RETURNING id`,
    );
    return rows[0] && this.find(rows[0].id, tx);
  }

  /** Does not count an attempt that ended because the database was unavailable. */
  async forgetAttempt(id: string): Promise<void> {
    await update(this.database.pool, id, 'attempts = greatest(0, attempts - 1)');
  }

  /** Stores the plan. @returns false if the import was cancelled */
  planned(tx: PoolClient, id: string, guards: Guard[], isApplied: boolean): Promise<boolean> {
    const planned = `state = CASE WHEN $2 THEN 'running' ELSE 'planned' END, guards = $3, attempts = 0,
      applied_at = CASE WHEN $2 THEN clock_timestamp() END`;
    return update(tx, id, planned, `state = 'staging'`, isApplied, JSON.stringify(guards));
  }

  /** Locks an import. @returns undefined if the condition does not hold */
  async lock(tx: PoolClient, id: string, condition = 'true', how = ''): Promise<ImportRecord | undefined> {
    const sql = `SELECT 1 FROM imports WHERE id = $1 AND ${condition} FOR NO KEY UPDATE ${how}`;
    return (await tx.query(sql, [id])).rowCount === 1 ? this.find(id, tx) : undefined;
  }

  /** Locks an import that the worker has something to do for, unless another process does it. */
  lockAtWork(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    return this.lock(tx, id, IS_AT_WORK, 'SKIP LOCKED');
  }

  async enter(tx: PoolClient, id: string, state: ImportState): Promise<void> {
    const entered = `state = $2, finished_at = NULL, totals = NULL,
      applied_at = CASE WHEN $2 = 'running' THEN coalesce(applied_at, clock_timestamp()) ELSE applied_at END`;
    await update(tx, id, entered, 'true', state);
  }

  /** A corrected plan is recomputed, and then waits to be applied. */
  async replan(tx: PoolClient, id: string): Promise<void> {
    await update(tx, id, `state = 'staging', dry_run = true, attempts = 0`);
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

  /** Cancels imports that waited too long for a mapping. */
  async cancelExpired(tx: PoolClient): Promise<void> {
    const detail = `No columns were chosen within ${MAPPING_HOURS} hours, so the stored records were deleted. Upload the files again.`;
    await tx.query(
      `UPDATE imports SET state = 'cancelled', error_code = 'mapping-expired', error_detail = $1 WHERE ${IS_EXPIRED}`,
      [detail],
    );
  }

  /** Finishes an import with its final counts, and announces it. */
  async finish(tx: PoolClient, { id, state }: ImportRecord, totals: ImportTotals): Promise<void> {
    const final = state === 'cancelled' || state === 'failed' ? state : 'completed';
    await update(tx, id, 'state = $2, totals = $3, finished_at = clock_timestamp()', 'true', final, totals);
    await this.feed.append(await this.prisma.in(tx), {
      type: 'import.finished',
      subject: `imports/${id}`,
      data: { id, state: final },
    });
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
