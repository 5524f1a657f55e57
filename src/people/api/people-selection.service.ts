import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { PERSON_KINDS } from '../rules/person.js';
import { applyResolve, refusalOf } from '../rules/resolve-rule.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import { type ResolveSelectionRequest, type ResolveSelectionResponse, SELECTION_MAX } from './people.dto.js';

/** The people that a request selects and that accept its action. */
interface Selection {
  people: PersonRow[];
  more: boolean;
}

/** Resolves many people with one confirmed action. */
@Injectable()
export class PeopleSelection {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly audit: Audit,
  ) {}

  /**
   * Counts a selection (`dryRun`), or resolves exactly the counted people in one transaction. People that do not accept
   * the action are left out.
   *
   * @throws {Problem} 409 `plan-changed` if one of them has changed since; then no one is resolved
   */
  async resolve(request: ResolveSelectionRequest): Promise<ResolveSelectionResponse> {
    const { action, dryRun, plan } = request;
    if (dryRun || !plan) {
      const { people, more } = await this.select(request);
      return { dryRun: true, count: people.length, plan: planOf(people), more };
    }
    const more = await this.prisma.transaction(async (tx) => {
      const selection = await this.lock(tx, request);
      const current = planOf(selection.people);
      if (current.digest !== plan.digest) {
        const detail = 'The selection has changed since the dry run. Repeat the dry run.';
        throw new Problem('plan-changed', detail, { extensions: { planned: plan.count, count: current.count } });
      }
      for (const row of selection.people) {
        this.audit.about(row.kind, row.externalId);
        const fields = { wantedAt: row.context.now, wantedVersion: row.person.version + 1 };
        const { now } = row.context;
        if (action === 'create') await this.users.saveLost(tx, row);
        await this.people.update(tx, row, { ...applyResolve(row.person, action, now), wantedAt: now }, fields);
      }
      await this.audit.store(tx);
      return selection.more;
    }, 'bulk');
    return { dryRun: false, count: plan.count, plan, more };
  }

  /** Locks the selected people in the order of their ids, as others do that lock many, and reads them again. */
  private async lock(tx: Tx, request: ResolveSelectionRequest): Promise<Selection> {
    const { people } = await this.select(request, tx);
    await tx.$queryRaw`SELECT FROM people WHERE id = ANY (${people.map(({ id }) => id)}::uuid[]) ORDER BY id FOR UPDATE`;
    return this.select(request, tx);
  }

  private async select(request: ResolveSelectionRequest, tx?: Tx): Promise<Selection> {
    const { action, code, kind, externalIds = null } = request;
    const kinds = kind ? [kind] : PERSON_KINDS;
    const rows = await this.people.unsettled(kinds, code, externalIds, SELECTION_MAX + 1, tx);
    const accepting = rows.filter(({ state, person }) => refusalOf(action, state, person) === null);
    return { people: accepting.slice(0, SELECTION_MAX), more: rows.length > SELECTION_MAX };
  }
}

/** Names exactly these people in their current state. */
function planOf(people: readonly PersonRow[]): ResolveSelectionResponse['plan'] {
  const digest = createHash('sha256');
  for (const { id, updatedAt } of people) digest.update(`${id} ${updatedAt.getTime()}\n`);
  return { count: people.length, digest: digest.digest('base64url') };
}
