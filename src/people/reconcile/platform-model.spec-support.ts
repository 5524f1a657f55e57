import type { RawAnswer } from '../model/interpret-answer.js';
import type { Operation, PersonKind } from '../model/person.js';

/** The fate of a call. `lost` and `late` leave the caller without an answer. */
export type Weather =
  | { kind: 'fair' }
  | { kind: 'rejected' | 'refused' | 'rate-limited' | 'unreachable' | 'not-sent' }
  | { kind: 'lost'; committed: boolean }
  /** The platform commits after the caller gave up, by this fraction of the grace period. */
  | { kind: 'late'; part: number };

/** A call as it reaches the platform. */
export interface Arrival {
  operation: Operation;
  role: PersonKind;
  partnerUserId: string;
  email: string | null;
  platformUserId: string | null;
  providerUserIds: string[];
}

/** An answer of the platform, or the lack of one. */
export type Reply = RawAnswer;

export interface ModelUser {
  id: string;
  role: PersonKind;
  email: string | null;
  /** Null for a user created in the platform's own application. */
  partnerUserId: string | null;
  providers: string[];
}

/** Thrown when a law is broken; the message names it. */
export class BrokenLaw extends Error {}

/** Throws unless a law holds. */
export function law(holds: boolean, text: string): asserts holds {
  if (!holds) throw new BrokenLaw(text);
}

/** The platform in memory, with unique emails and late commits. It checks the calls that it gets. */
export class PlatformModel {
  readonly users = new Map<string, ModelUser>();
  /** Users removed in the platform's own application. */
  readonly removedByOthers = new Set<string>();
  /** Users who signed up on their own, perhaps after a check of their email. */
  readonly newcomers = new Set<string>();
  private commits: { at: number; commit: () => void }[] = [];
  private createdUsers = 0;

  constructor(
    private readonly graceMs: number,
    existingEmails: string[],
  ) {
    for (const [n, email] of existingEmails.entries()) {
      this.make({ role: n % 2 === 0 ? 'provider' : 'client', email, partnerUserId: null, providers: [] });
    }
  }

  /** Processes a call. */
  arrive(arrival: Arrival, weather: Weather, now: number): Reply {
    switch (weather.kind) {
      case 'refused':
        return { kind: 'unauthorized' };
      case 'rejected':
        return { kind: 'rejected', status: 400 };
      case 'rate-limited':
        return { kind: 'rate-limited', retryAfterMs: undefined };
      case 'unreachable':
      case 'not-sent':
        return { kind: weather.kind };
      case 'lost':
        if (weather.committed) this.perform(arrival);
        return { kind: 'unknown' };
      case 'late':
        this.commits.push({ at: now + Math.floor(weather.part * this.graceMs), commit: () => this.perform(arrival) });
        return { kind: 'unknown' };
      case 'fair':
        return this.perform(arrival);
    }
  }

  /** The time of the next late commit, if any. */
  get nextCommitAt(): number | null {
    return this.commits.length === 0 ? null : Math.min(...this.commits.map(({ at }) => at));
  }

  /** Performs the late commits that are due. */
  commitUntil(now: number): void {
    const due = this.commits.filter(({ at }) => at <= now).sort((one, other) => one.at - other.at);
    this.commits = this.commits.filter(({ at }) => at > now);
    for (const { commit } of due) commit();
  }

  userOf(partnerUserId: string): ModelUser | undefined {
    return [...this.users.values()].find((user) => user.partnerUserId === partnerUserId);
  }

  /** Adds a user who signs up in the platform's own application. */
  signUp(email: string): void {
    if ([...this.users.values()].some((user) => user.email === email)) return;
    this.newcomers.add(this.make({ role: 'client', email, partnerUserId: null, providers: [] }));
  }

  /** Removes a user as the platform's own application does. */
  removeByOthers(id: string): void {
    if (this.users.delete(id)) this.removedByOthers.add(id);
  }

  private perform(arrival: Arrival): Reply {
    switch (arrival.operation) {
      case 'checkUser': {
        const found = [...this.users.values()].find((user) => user.email === arrival.email);
        return found ? { kind: 'exists', userId: found.id } : { kind: 'absent' };
      }
      case 'createProvider':
      case 'createClient':
        return this.create(arrival);
      case 'setClientProviders': {
        const user = this.users.get(arrival.platformUserId ?? '');
        if (!user) return { kind: 'not-found' };
        if (!arrival.providerUserIds.every((id) => this.users.has(id))) return { kind: 'rejected', status: 400 };
        user.providers = arrival.providerUserIds;
        return { kind: 'applied' };
      }
      case 'deleteUser': {
        const role = this.users.get(arrival.platformUserId ?? '')?.role;
        law(role === undefined || role === arrival.role, 'an account of another role was deleted');
        return { kind: this.users.delete(arrival.platformUserId ?? '') ? 'deleted' : 'not-found' };
      }
    }
  }

  private create({ role, email, partnerUserId, providerUserIds }: Arrival): Reply {
    if (!providerUserIds.every((id) => this.users.has(id))) return { kind: 'rejected', status: 400 };
    law(!this.userOf(partnerUserId), `a second user was created for ${partnerUserId}`);
    const holder = email === null ? undefined : [...this.users.values()].find((user) => user.email === email);
    if (holder && this.newcomers.has(holder.id)) return { kind: 'rejected', status: 409 };
    law(!holder, `${partnerUserId} was created although the platform knew the email`);
    return { kind: 'created', userId: this.make({ role, email, partnerUserId, providers: providerUserIds }) };
  }

  private make(user: Omit<ModelUser, 'id'>): string {
    const id = `user-${++this.createdUsers}`;
    this.users.set(id, { id, ...user });
    return id;
  }
}

/** The reply of another server: a web page, or a 404 that looks like the platform's. */
export function wrongServerReply(operation: Operation): Reply {
  return { kind: operation === 'deleteUser' || operation === 'setClientProviders' ? 'not-found' : 'wrong-url' };
}
