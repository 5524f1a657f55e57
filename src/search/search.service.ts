import { Injectable } from '@nestjs/common';
import type { Scope } from '../access/identity/scope.js';
import { Audit } from '../audit/audit.js';
import { JobsRepository } from '../compliance/jobs.repository.js';
import { Problem } from '../http/problem/problem.js';
import { UUID } from '../http/request/uuid-param.js';
import { ImportsRepository } from '../imports/model/imports.repository.js';
import { PeopleLookup } from '../people/api/people-lookup.service.js';
import { SessionReader } from '../sessions/read/session-reader.js';
import { DeliveriesService } from '../webhooks/admin/deliveries.service.js';
import type { FindResponse, FoundResponse } from './search.dto.js';

/** Maximum results. */
const MAX_FOUND = 10;

/** Finds everything with exactly this id or email. Each lookup is that of the route of its kind, by an index. */
@Injectable()
export class Search {
  /** The lookups by the scope that each needs. */
  private readonly lookups: readonly [Scope, (text: string) => Promise<FoundResponse[]>][] = [
    ['people:read', (text) => this.people(text)],
    ['sessions:read', (text) => this.session(text)],
    ['sessions:read', (text) => this.sessionsOfAppointment(text)],
    ['compliance', (text) => this.job(text)],
    ['imports', (text) => this.import(text)],
    ['webhooks', (text) => this.delivery(text)],
  ];

  constructor(
    private readonly lookup: PeopleLookup,
    private readonly sessions: SessionReader,
    private readonly jobs: JobsRepository,
    private readonly imports: ImportsRepository,
    private readonly deliveries: DeliveriesService,
    private readonly audit: Audit,
  ) {}

  /** One lookup after the other, so that a search takes only one connection. */
  async find(text: string, scopes: ReadonlySet<Scope>): Promise<FindResponse> {
    const found = new Map<string, FoundResponse>();
    for (const [scope, lookup] of this.lookups) {
      if (!scopes.has(scope)) continue;
      for (const item of await lookup(text)) {
        const key = `${item.kind} ${item.id}`;
        if (!found.has(key)) found.set(key, item);
      }
    }
    const items = [...found.values()];
    return { items: items.slice(0, MAX_FOUND), more: items.length > MAX_FOUND };
  }

  private async people(text: string): Promise<FoundResponse[]> {
    const found = await this.lookup.named(text);
    return found.map(({ matched, person: { kind, externalId, sync } }) => {
      return { kind, id: externalId, matched, state: sync.state, updatedAt: sync.updatedAt };
    });
  }

  private async session(text: string): Promise<FoundResponse[]> {
    const session = await this.sessions.show(text).catch(undefinedIfUnknown);
    if (!session) return [];
    const { id, sessionId, state, updatedAt } = session;
    const matched = text === sessionId ? 'platform-id' : 'id';
    return [{ kind: 'session', id, matched, state, updatedAt }];
  }

  private async sessionsOfAppointment(appointment: string): Promise<FoundResponse[]> {
    const { items } = await this.sessions.list({ appointment, limit: MAX_FOUND + 1, order: 'newest-first' });
    return items.map(({ id, state, updatedAt }) => {
      return { kind: 'session', id, matched: 'appointment', state, updatedAt };
    });
  }

  private async job(text: string): Promise<FoundResponse[]> {
    const job = await this.jobs.find(text);
    if (!job) return [];
    const { id, jobId, state, updatedAt } = job;
    this.audit.about('compliance-job', id);
    const matched = text === jobId ? 'platform-id' : 'id';
    return [{ kind: 'compliance-job', id, matched, state, updatedAt }];
  }

  private async import(text: string): Promise<FoundResponse[]> {
    const found = UUID.test(text) ? await this.imports.find(text) : undefined;
    if (!found) return [];
    const { id, state, createdAt: updatedAt } = found;
    this.audit.about('import', id);
    return [{ kind: 'import', id, matched: 'id', state, updatedAt }];
  }

  private async delivery(text: string): Promise<FoundResponse[]> {
    const delivery = await this.deliveries.find(text).catch(undefinedIfUnknown);
    if (!delivery) return [];
    const { id, state, receivedAt: updatedAt } = delivery;
    return [{ kind: 'delivery', id, matched: 'id', state, updatedAt }];
  }
}

function undefinedIfUnknown(error: unknown): undefined {
  if (error instanceof Problem && error.status === 404) return undefined;
  throw error;
}
