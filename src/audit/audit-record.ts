import type { FastifyRequest } from 'fastify';
import { sourceAddress } from './source-address.js';

/** The kinds of an entry's subjects. `path` is the keyed fingerprint of a path that led to nothing. */
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
  'subscription',
  'compliance-job',
  'smart-edit-job',
  'processing-session',
  'path',
] as const;

export type SubjectKind = (typeof SUBJECT_KINDS)[number];

/** An id and what it is an id of; ids that are null or empty are ignored. */
export type Subject = readonly [SubjectKind, string | null | undefined];

/** Many ids of one kind. Only the smallest and the largest are known. */
export type SubjectRange = readonly [kind: SubjectKind, count: number, first: string, last: string];

/** Maximum ids of one kind that an entry names. Of more it keeps only the range. */
export const MAX_IDS = 50;

/** Maximum characters of an id, and of a value of a filter. */
const MAX_TEXT = 512;

/** Names of query parameters that hold ids, states and times. Others are not stored, because callers may send anything. */
const FILTERS =
  'kind mode state review outcome planned code order types subject client provider session appointment updatedSince keyId action after before patient.identifier patient:identifier date _lastUpdated'.split(
    ' ',
  );

/** The ids of one kind: up to 50, and the number and range of all if there are others. */
class NamedIds {
  readonly ids = new Set<string>();
  private first = '';
  private last = '';
  private others = 0;

  add(id: string): void {
    if (this.areTooMany) this.others += 1;
    else this.ids.add(id);
    this.extend(id, id);
  }

  /** Counts only the largest range, because ranges overlap: those of the log's own exports would double with each export. */
  addRange(count: number, first: string, last: string): void {
    this.others = Math.max(this.others, count);
    this.extend(first, last);
  }

  /** True if the ids are not kept one by one. */
  get areTooMany(): boolean {
    return this.ids.size > MAX_IDS;
  }

  /** Null if each id is kept. */
  get range(): [count: number, first: string, last: string] | null {
    const isPartial = this.areTooMany || this.others > 0;
    return isPartial ? [this.ids.size + this.others, this.first, this.last] : null;
  }

  private extend(first: string, last: string): void {
    if (this.last === '' || isBefore(first, this.first)) this.first = first;
    if (isBefore(this.last, last)) this.last = last;
  }
}

/** Compares as the collation "C" does, by UTF-8 bytes. JavaScript's order differs only for surrogates. */
function isBefore(a: string, b: string): boolean {
  return /[\ud800-\udfff]/.test(a + b) ? Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0 : a < b;
}

/** The subjects of an entry as it stores them. */
export interface KeptSubjects {
  subjects: [kind: string, id: string][];
  ranges: [kind: string, count: number, first: string, last: string][];
}

/** The subjects of one entry. */
export class AuditSubjects {
  private readonly kinds = new Map<SubjectKind, NamedIds>();

  /** Adds subjects of one kind. */
  add(kind: SubjectKind, ...ids: readonly (string | null | undefined)[]): void {
    for (const id of ids) if (id) this.named(kind).add(storable(id));
  }

  /** Adds subjects of any kind, and ranges as ranges, so that a search for an id within one finds this entry. */
  addAll(subjects: readonly (Subject | SubjectRange)[]): void {
    for (const subject of subjects) {
      if (subject.length === 2) this.add(...subject);
      else this.named(subject[0]).addRange(subject[1], subject[2], subject[3]);
    }
  }

  get isEmpty(): boolean {
    return this.kinds.size === 0;
  }

  kept(): KeptSubjects {
    const kept: KeptSubjects = { subjects: [], ranges: [] };
    for (const [kind, named] of this.kinds) {
      if (named.range) kept.ranges.push([kind, ...named.range]);
      if (!named.areTooMany) for (const id of named.ids) kept.subjects.push([kind, id]);
    }
    return kept;
  }

  private named(kind: SubjectKind): NamedIds {
    const named = this.kinds.get(kind) ?? new NamedIds();
    this.kinds.set(kind, named);
    return named;
  }
}

/** PostgreSQL stores neither a NUL nor the half of a character at a cut. */
function storable(text: string): string {
  return text.slice(0, MAX_TEXT).replace(/[\0\p{Cs}]/gu, '');
}

/** The actor of an entry. */
export interface Actor {
  /** Id of the API key, or `admin` for ADMIN_API_KEY; a person's id at the issuer. */
  id: string;
  name: string;
  /** The OpenID provider of a person; undefined for a key. */
  issuer?: string;
}

/** Identifies a caller for limits. A person's id may be that of a key, or of a person at another provider. */
export const callerOf = ({ id, issuer }: Actor): string => (issuer === undefined ? id : `${issuer} ${id}`);

/** The service itself, which acts without a request. */
export const SYSTEM: Actor = { id: 'system', name: 'system' };

/** Callers without a valid key or session. */
const UNKNOWN: Actor = { id: 'unknown', name: 'unknown' };

/** Refused requests without a valid key or session, counted by their source. */
export function failedAuthentication(source: string): AuditRecord {
  const refused = { action: 'authentication.failed', outcome: 'unauthenticated', stored: 'no' as const };
  return { by: UNKNOWN, subjects: new AuditSubjects(), source, ...refused };
}

/** The entry of one request, from its beginning on. Ids only: never a name, an address or a text. */
export interface AuditRecord {
  readonly by: Actor;
  readonly action: string;
  readonly subjects: AuditSubjects;
  outcome: string;
  /** The known parameters of the query, with which a range of subjects was selected. */
  readonly filter?: Record<string, string>;
  readonly onBehalfOf?: string;
  readonly purpose?: string;
  readonly requestId?: string;
  readonly source?: string;
  /** `with-change`: stored in the transaction of its change, which may still roll back. */
  stored: 'no' | 'with-change' | 'committed';
}

/** The record of a request whose caller is known. */
export function recordOf(by: Actor, request: FastifyRequest): AuditRecord {
  const { onBehalfOf, purpose, id: requestId } = request;
  const query = request.query as Record<string, unknown>;
  const given = FILTERS.filter((name) => query[name] !== undefined);
  return {
    ...{ by, action: routeOf(request), subjects: new AuditSubjects(), outcome: 'ok' },
    filter: Object.fromEntries(given.map((name) => [name, storable(String(query[name]))])),
    ...{ onBehalfOf, purpose, requestId, source: sourceAddress(request), stored: 'no' },
  };
}

/** A request as the audit log names it: its method and its route pattern. */
export function routeOf(request: Pick<FastifyRequest, 'method' | 'routeOptions'>): string {
  return `${request.method} ${request.routeOptions.url ?? 'unmatched'}`;
}
