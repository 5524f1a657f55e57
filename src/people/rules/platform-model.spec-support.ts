import type { Ending } from '../../platform/pauses/pause-rule.js';
import type { SentCall } from './apply-call.js';
import type { Said } from './call-result.js';
import type { Operation, PersonKind } from './person.js';

/** Thrown when a law is broken; the message names it. */
export class BrokenLaw extends Error {
  override readonly name = 'BrokenLaw';
}

export function law(holds: boolean, text: string): asserts holds {
  if (!holds) throw new BrokenLaw(text);
}

/** What happens to a call. `late`: the caller gets no answer, and the call takes effect after this part of the grace period. */
export type Weather =
  | 'fair'
  | { kind: Ending['kind']; status: number | null; isWrongAddress?: boolean }
  | { lost: 'before' | 'after' }
  | { late: number };

/** A call as it reaches the platform. */
export interface Arrival {
  call: SentCall;
  role: PersonKind;
  partnerUserId: string;
  platformUserId: string | null;
}

export type Reply = Ending & { said: Said | null };

interface User {
  id: string;
  role: PersonKind;
  email: string | null;
  /** Null for a user that someone else made. */
  partnerUserId: string | null;
  providers: readonly string[];
}

const LOST: Reply = { kind: 'unknown-outcome', status: null, said: null };
const said = (answer: Said): Reply => ({ kind: 'ok', status: 200, said: answer });
const refused = (status: number): Reply => ({ kind: status === 404 ? 'not-found' : 'rejected', status, said: null });

/** The platform in memory, with unique emails and late effects. It watches over the calls that it gets. */
export class PlatformModel {
  readonly users = new Map<string, User>();
  private effects: { at: number; perform: () => void }[] = [];
  private made = 0;

  constructor(
    private readonly graceMs: number,
    others: readonly string[],
  ) {
    for (const email of others) this.make({ role: 'client', email, partnerUserId: null, providers: [] });
  }

  arrive(arrival: Arrival, weather: Weather, now: number): Reply {
    if (weather === 'fair') return this.perform(arrival);
    if ('kind' in weather) return { ...weather, said: null };
    if ('late' in weather) {
      const perform = () => void this.perform(arrival);
      this.effects.push({ at: now + Math.floor(weather.late * this.graceMs), perform });
    } else if (weather.lost === 'after') this.perform(arrival);
    return LOST;
  }

  get nextEffectAt(): number {
    return Math.min(...this.effects.map(({ at }) => at));
  }

  /** Lets the late calls take effect whose time has come. */
  passTo(now: number): void {
    const due = this.effects.filter(({ at }) => at <= now).sort((one, other) => one.at - other.at);
    this.effects = this.effects.filter(({ at }) => at > now);
    for (const { perform } of due) perform();
  }

  userOf(partnerUserId: string): User | undefined {
    return [...this.users.values()].find((user) => user.partnerUserId === partnerUserId);
  }

  private perform({ call, role, partnerUserId, platformUserId }: Arrival): Reply {
    const { email, providerUserIds: providers = [] } = call;
    const user = this.users.get(platformUserId ?? '');
    const holder = email === null ? undefined : [...this.users.values()].find((other) => other.email === email);
    const operation: Operation = call.operation;
    switch (operation) {
      case 'checkUser':
        return said(holder ? { kind: 'exists', userId: holder.id } : { kind: 'absent' });
      case 'createProvider':
      case 'createClient':
        law(!this.userOf(partnerUserId), `a second user was created for ${partnerUserId}`);
        if (holder || !providers.every((id) => this.users.has(id))) return refused(422);
        return said({ kind: 'created', userId: this.make({ role, email, partnerUserId, providers }) });
      case 'setClientProviders':
        if (!user) return refused(404);
        if (!providers.every((id) => this.users.has(id))) return refused(422);
        user.providers = providers;
        return said({ kind: 'applied' });
      case 'deleteUser':
        if (!user) return refused(404);
        law(user.partnerUserId !== null, `a user was deleted that was found only by the email of ${partnerUserId}`);
        this.users.delete(user.id);
        return said({ kind: 'deleted' });
    }
  }

  private make(user: Omit<User, 'id'>): string {
    const id = `user-${++this.made}`;
    this.users.set(id, { id, ...user });
    return id;
  }
}
