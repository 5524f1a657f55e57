import type { PoolClient } from 'pg';
import { type Audit, BEGUN } from '../../audit/audit.js';
import type { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { RELEASE } from '../../due-rows/lease.js';
import { Problem } from '../../http/problem/problem.js';
import { type RequestTable, retryWhenTaken } from './request-rows.js';

/** The ways to resolve a request whose outcome is unknown. */
export type ResolveAction = 'link' | 'create' | 'abandon';

/** Requests that an operator may resolve. */
interface ResolvableRequests<Row> {
  readonly table: RequestTable;
  /** The answers to a link without an id, and to one with the id of another request. */
  readonly problems: { readonly idNeeded: Problem; readonly taken: Problem };
  /** SQL condition: the outcome is unknown, or the platform does not know what it made. */
  readonly unsettled: string;
  /** SQL condition of an unsettled request that may be sent again. Defaults to all. */
  readonly resendable?: string;
  /** SQL assignments of a request that is sent again. */
  readonly onResend: string;
  /** The detail of `wrong-state`: which requests can be resolved. */
  readonly onlyUnsettled: string;
  /** Checks a link before it is stored. @throws {Problem} */
  readonly check?: (row: Row, platformId: string, signal: AbortSignal) => Promise<void>;
  /** Gives a locked request the platform's id. @returns false if that belongs to another request */
  settle(tx: PoolClient, row: Row, platformId: string): Promise<boolean>;
  /** Ends a locked request. */
  abandon(tx: PoolClient, row: Row): Promise<void>;
}

/** Resolves requests. Each change and its audit entry are one transaction. */
export class RequestResolver<Row extends { id: string; state: string }> {
  constructor(
    private readonly requests: ResolvableRequests<Row>,
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly audit: Audit,
  ) {}

  /**
   * Sends an unsettled request again, links it to what the platform has, or abandons it; a pending one can be abandoned.
   *
   * @param platformId for `link`, as the operator wrote it
   * @throws {Problem} 409 `wrong-state`, `session-taken` or `job-taken`; 422 `session-id-needed` or `job-id-needed`
   */
  async resolve(id: string, action: ResolveAction, platformId: string | undefined, signal: AbortSignal): Promise<void> {
    if (action === 'link') return this.link(id, platformId, signal);
    const isDone = await this.database.transaction(async (tx) => {
      const isChanged = await (action === 'create' ? this.sendAgain(tx, id) : this.abandon(tx, id));
      if (isChanged) await this.audit.store(await this.prisma.in(tx), action === 'create' ? BEGUN : 'ok');
      return isChanged;
    });
    if (!isDone) throw await this.wrongState(id);
  }

  /** Not while an attempt is in flight. */
  private async abandon(tx: PoolClient, id: string): Promise<boolean> {
    const row = await this.lock(tx, id, `(${this.requests.unsettled} OR state = 'Requested' AND lease_owner IS NULL)`);
    if (row) await this.requests.abandon(tx, row);
    return row !== undefined;
  }

  private async sendAgain(tx: PoolClient, id: string): Promise<boolean> {
    const { table, unsettled, resendable = 'true', onResend } = this.requests;
    const { rowCount } = await tx.query(
      `UPDATE ${table.name} t SET state = 'Requested', lane = ${table.lane}, due_at = clock_timestamp(), attempted_at = NULL,
         failures = 0, fault = NULL, refused_at = NULL, lease_no = lease_no + 1, ${RELEASE}, ${onResend}
       WHERE id = $1 AND ${unsettled} AND ${resendable}`,
      [id],
    );
    return rowCount === 1;
  }

  private async link(id: string, platformId: string | undefined, signal: AbortSignal): Promise<void> {
    const { problems, unsettled, check, settle } = this.requests;
    if (platformId === undefined) throw problems.idNeeded;
    const known = await this.read(this.database.pool, id, unsettled);
    if (!known) throw await this.wrongState(id);
    await check?.(known, platformId, signal);
    const link = async (tx: PoolClient) => {
      const row = await this.lock(tx, id, unsettled);
      if (!row) return 'wrong-state';
      if (!(await settle(tx, row, platformId))) return 'taken';
      await this.audit.store(await this.prisma.in(tx));
      return 'linked';
    };
    const outcome = await retryWhenTaken(() => this.database.transaction(link));
    if (outcome === 'wrong-state') throw await this.wrongState(id);
    if (outcome === 'taken') throw problems.taken;
  }

  private lock(tx: PoolClient, id: string, condition: string): Promise<Row | undefined> {
    return this.read(tx, id, condition, 'FOR UPDATE');
  }

  private async read(
    sql: Pick<PoolClient, 'query'>,
    id: string,
    condition: string,
    lock = '',
  ): Promise<Row | undefined> {
    const { name, columns } = this.requests.table;
    const { rows } = await sql.query<Row>(`SELECT ${columns} FROM ${name} t WHERE id = $1 AND ${condition} ${lock}`, [
      id,
    ]);
    return rows[0];
  }

  private async wrongState(id: string): Promise<Problem> {
    // The row of an event may have taken its place since then.
    const { rows } = await this.database.pool.query<Pick<Row, 'state'>>(
      `SELECT state FROM ${this.requests.table.name} WHERE id = $1 OR shown_id = $1`,
      [id],
    );
    const state = rows[0]?.state;
    return new Problem('wrong-state', this.requests.onlyUnsettled, { extensions: { state } });
  }
}
