import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { PERSON_KINDS } from '../rules/person.js';
import { UNSETTLED_STATES } from '../rules/person-codes.js';
import { applyResolve, endsByRetry, keepsFormerUser, refusalOf } from '../rules/resolve-rule.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import type { SelectionRequest, SelectionResponse } from './people.dto.js';

/** Maximum people of one transaction, so that none of them is locked for long. */
const BATCH = 500;

/**
 * Resolves many people. They are counted first. Then each batch is one transaction, which leaves out people that have
 * changed meanwhile. After a crash, the same request finds those that are left.
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
   * Counts (`dryRun`) or resolves the people of a selection that accept its action. Those that no longer match since they
   * were counted do not stop it.
   *
   * @throws {Problem} 409 `plan-changed` if there are more than were counted; then no one is resolved
   */
  async resolve(request: SelectionRequest): Promise<SelectionResponse> {
    const { dryRun, count: counted } = request;
    const ids: string[] = [];
    for (const batch of batchesOf(await this.idsOf(request))) {
      const people = accepting(await this.people.readAll(this.prisma, batch), request);
      ids.push(...people.map(({ id }) => id));
    }
    if (dryRun) return { dryRun, count: ids.length };
    if (ids.length > (counted ?? ids.length)) {
      const detail = 'The selection has changed since the dry run. Repeat the dry run.';
      throw new Problem('plan-changed', detail, { extensions: { planned: counted, count: ids.length } });
    }
    let count = 0;
    for (const batch of batchesOf(ids)) {
      count += await this.prisma.transaction((tx) => this.resolveBatch(tx, batch, request), 'bulk');
    }
    return { dryRun, count };
  }

  /** @returns the number of people resolved */
  private async resolveBatch(tx: Tx, ids: readonly string[], request: SelectionRequest): Promise<number> {
    const { action } = request;
    const people = accepting(await this.people.lockAll(tx, ids), request);
    for (const row of people) {
      this.audit.about(row.kind, row.externalId);
      if (action === 'retry') continue;
      const { person, context } = row;
      if (keepsFormerUser(action, person)) await this.users.saveLost(tx, row);
      const resolved = { ...applyResolve(person, action, context), wantedAt: context.now };
      await this.people.update(tx, row, resolved, { wantedAt: context.now, wantedVersion: person.version + 1 });
    }
    if (action === 'retry') {
      await this.people.retryAll(
        tx,
        people.map(({ id }) => id),
      );
    }
    await this.audit.store(tx);
    return people.length;
  }

  /** The selected people, ordered by id. */
  private async idsOf({ code, kind, state, externalIds }: SelectionRequest): Promise<string[]> {
    const where = {
      ...{ kind: { in: kind ? [kind] : PERSON_KINDS }, state: { in: state ? [state] : [...UNSETTLED_STATES] } },
      ...{ errorCode: code, ...(externalIds && { externalId: { in: externalIds } }) },
    };
    const people = await this.prisma.person.findMany({ where, orderBy: { id: 'asc' }, select: { id: true } });
    return people.map(({ id }) => id);
  }
}

/** Those that still stop for the reason of a selection, and accept its action. */
function accepting(rows: readonly PersonRow[], { action, code }: SelectionRequest): PersonRow[] {
  if (action === 'retry' && !endsByRetry(code)) return [];
  const isOpen = ({ state }: PersonRow) => UNSETTLED_STATES.some((unsettled) => unsettled === state);
  return rows.filter(
    (row) => row.errorCode === code && isOpen(row) && refusalOf(action, row.state, row.person) === null,
  );
}

function batchesOf<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / BATCH);
  return Array.from({ length: count }, (_, batch) => items.slice(batch * BATCH, (batch + 1) * BATCH));
}
