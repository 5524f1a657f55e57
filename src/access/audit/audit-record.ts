import type { FastifyRequest } from 'fastify';
import { sourceAddress } from '../../http/request/source-address.js';
import type { Principal } from '../identity/scopes.js';

/** What an entry of the trail can be about. `path` is the keyed fingerprint of a path that led to nothing. */
export const SUBJECT_KINDS = [
  'client',
  'provider',
  'session',
  'platform-session',
  'platform-user',
  'import',
  'delivery',
  'api-key',
  'browser-session',
  'compliance-job',
  'smart-edit-job',
  'processing-session',
  'path',
] as const;

export type SubjectKind = (typeof SUBJECT_KINDS)[number];

/** Ids of one kind that an entry keeps; of more it keeps the count. */
const MOST_IDS = 50;

/** Characters of an id that the trail keeps: an EHR's own has fewer. */
const LONGEST_ID = 512;

/** Whom and what one entry is about. */
export class AuditSubjects {
  private readonly ids = new Map<SubjectKind, Set<string>>();

  /** Adds subjects of one kind; what is null or empty is none, and one that is named twice is one. */
  add(kind: SubjectKind, ...ids: readonly (string | null | undefined)[]): void {
    const known = this.ids.get(kind) ?? new Set<string>();
    for (const id of ids) if (id) known.add(keepable(id));
    if (known.size > 0) this.ids.set(kind, known);
  }

  get isEmpty(): boolean {
    return this.ids.size === 0;
  }

  /** @returns ids with their kinds, and the numbers of those that are too many to be kept one by one */
  kept(): { pairs: [SubjectKind, string][]; counts: Record<string, number> | null } {
    const kinds = [...this.ids];
    const few = kinds.filter(([, ids]) => ids.size <= MOST_IDS);
    const many = kinds.filter(([, ids]) => ids.size > MOST_IDS).map(([kind, ids]) => [kind, ids.size]);
    return {
      pairs: few.flatMap(([kind, ids]) => [...ids].map((id): [SubjectKind, string] => [kind, id])),
      counts: many.length === 0 ? null : Object.fromEntries(many),
    };
  }
}

/** The database keeps neither a NUL nor the half of a character at a cut. */
function keepable(id: string): string {
  return id.slice(0, LONGEST_ID).replace(/[\0\p{Cs}]/gu, '');
}

/** Who acts. */
export type Actor = Pick<Principal, 'id' | 'name'>;

/** The service itself, which acts without a request. */
export const SYSTEM: Actor = { id: 'system', name: 'system' };

/** The entry of one request, from its beginning on. Ids only: never a name, an address or a text. */
export interface AuditRecord {
  readonly by: Actor;
  readonly action: string;
  readonly subjects: AuditSubjects;
  outcome: string;
  readonly onBehalfOf?: string;
  readonly purpose?: string;
  readonly requestId?: string;
  readonly source?: string;
  /** Whether it is in the database: in a transaction of its change, which may still be taken back, or for good. */
  stored: 'no' | 'with-change' | 'committed';
}

/** The record of a request whose caller is known. */
export function recordOf(by: Actor, request: FastifyRequest): AuditRecord {
  const { onBehalfOf, purpose, id: requestId } = request;
  const action = routeOf(request);
  return {
    ...{ by, action, subjects: new AuditSubjects(), outcome: 'ok' },
    ...{ onBehalfOf, purpose, requestId, source: sourceAddress(request), stored: 'no' },
  };
}

/** A request as the trail names it: its method and its route pattern. */
export function routeOf(request: Pick<FastifyRequest, 'method' | 'routeOptions'>): string {
  return `${request.method} ${request.routeOptions.url ?? 'unmatched'}`;
}
