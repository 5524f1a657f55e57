import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { PERSON_KINDS } from '../rules/person.js';
import { UNSETTLED_STATES } from '../rules/person-codes.js';
import type { PersonKey } from '../rules/profile.js';
import { applyResolve, endsByRetry, keepsFormerUser, refusalOf } from '../rules/resolve-rule.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import type { ResolveSelectionRequest, ResolveSelectionResponse, RetryQuery, RetryResponse } from './people.dto.js';

/** Maximum people of one transaction, so that none of them is locked for long. */
const BATCH = 500;

type Selected = Pick<ResolveSelectionRequest & RetryQuery, 'code' | 'kind' | 'state' | 'externalIds'>;
type Named = PersonKey & { id: string };

/**
 * Retries or resolves many people. They are counted first. Then each batch is one transaction, which leaves out people that
 * have changed meanwhile. After a crash, the same request finds those that are left.
 */
@Injectable()
export class PeopleSelection {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly audit: Audit,
  ) {}

  /**
   * Counts (`dryRun`) or retries the people with a code that a retry may end. Those that have succeeded since they were
   * counted do not stop it.
   *
   * @throws {Problem} 409 `plan-changed` if there are more than were counted; then no one is retried
   */
  async retry({ dryRun, count: counted, ...selected }: RetryQuery): Promise<RetryResponse> {
    const ids = endsByRetry(selected.code) ? await this.idsOf(selected) : [];
    if (dryRun) return { dryRun, count: ids.length };
    if (counted !== undefined && ids.length > counted) throw changed(counted, ids.length);
    const count = await this.inBatches(ids, async (tx, batch) => {
      const people = await lock(tx, batch, selected);
      const locked = people.map(({ id }) => id);
      await this.people.retryAll(tx, locked);
      return people;
    });
    return { dryRun, count };
  }

  /**
   * Counts (`dryRun`) or resolves the people of a selection that accept its action.
   *
   * @throws {Problem} 409 `plan-changed` if one of them has changed since they were counted; then no one is resolved
   */
  async resolve(request: ResolveSelectionRequest): Promise<ResolveSelectionResponse> {
    const { dryRun, plan } = request;
    const ids: string[] = [];
    const digest = createHash('sha256');
    for (const batch of batchesOf(await this.idsOf(request))) {
      for (const { id, updatedAt } of accepting(await this.people.readAll(this.prisma, batch), request)) {
        ids.push(id);
        digest.update(`${id} ${updatedAt.getTime()}\n`);
      }
    }
    const current = { count: ids.length, digest: digest.digest('base64url') };
    if (dryRun || !plan) return { dryRun: true, count: current.count, plan: current };
    if (current.digest !== plan.digest) throw changed(plan.count, current.count);
    const count = await this.inBatches(ids, (tx, batch) => this.resolveBatch(tx, batch, request));
    return { dryRun, count, plan };
  }

  private async resolveBatch(tx: Tx, ids: readonly string[], request: ResolveSelectionRequest): Promise<PersonRow[]> {
    const locked = await lock(tx, ids, request);
    const read = locked.map(({ id }) => id);
    const people = accepting(await this.people.lockAll(tx, read), request);
    for (const row of people) {
      const { person, context } = row;
      if (keepsFormerUser(request.action, person)) await this.users.saveLost(tx, row);
      const resolved = { ...applyResolve(person, request.action, context), wantedAt: context.now };
      await this.people.update(tx, row, resolved, { wantedAt: context.now, wantedVersion: person.version + 1 });
    }
    return people;
  }

  /** The selected people, ordered by id. */
  private async idsOf({ code, kind, state, externalIds }: Selected): Promise<string[]> {
    const where = {
      ...{
        kind: { in: kind ? [kind] : PERSON_KINDS },
        state: { in: state ? [state] : [...UNSETTLED_STATES] },
        errorCode: code,
      },
      ...(externalIds && { externalId: { in: externalIds } }),
    };
    const people = await this.prisma.person.findMany({ where, orderBy: { id: 'asc' }, select: { id: true } });
    return people.map(({ id }) => id);
  }

  /** @param work returns the people that it has changed @returns their number */
  private async inBatches(
    ids: readonly string[],
    work: (tx: Tx, batch: readonly string[]) => Promise<readonly PersonKey[]>,
  ): Promise<number> {
    let count = 0;
    for (const batch of batchesOf(ids)) {
      count += await this.prisma.transaction(async (tx) => {
        const people = await work(tx, batch);
        for (const { kind, externalId } of people) this.audit.about(kind, externalId);
        await this.audit.store(tx);
        return people.length;
      }, 'bulk');
    }
    return count;
  }
}

/** Locks those people that still have the code, in the order of their ids, as others do that lock many. */
function lock(tx: Tx, ids: readonly string[], { code }: Selected): Promise<Named[]> {
  return tx.$queryRaw<Named[]>`
    SELECT id, kind::text, external_id AS "externalId" FROM people
    WHERE id = ANY (${[...ids]}::uuid[]) AND error_code = ${code} AND state = ANY (${[...UNSETTLED_STATES]}::text[])
    ORDER BY id FOR UPDATE`;
}

const accepting = (rows: readonly PersonRow[], { action }: ResolveSelectionRequest): PersonRow[] =>
  rows.filter(({ state, person }) => refusalOf(action, state, person) === null);

function batchesOf<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / BATCH);
  return Array.from({ length: count }, (_, batch) => items.slice(batch * BATCH, (batch + 1) * BATCH));
}

function changed(planned: number, count: number): Problem {
  const detail = 'The selection has changed since the dry run. Repeat the dry run.';
  return new Problem('plan-changed', detail, { extensions: { planned, count } });
}
