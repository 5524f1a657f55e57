import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { errorTrace } from '../../errors/error-trace.js';
import { UsersClient } from '../../platform/clients/users-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CallOptions } from '../../platform/http/platform-http.js';
import type { CallOutcome } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { RawAnswer } from '../model/interpret-answer.js';
import type { CallStep } from '../model/next-step.js';
import { type Profile, ProfileSeal } from '../model/profile.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';

/** The outcome of a call: for the person, for the log, and the texts to store. */
export interface CallResult {
  answer: RawAnswer;
  outcome: CallOutcome;
  /** Shown as `sync.error.code` while the person is not settled. */
  errorCode?: string;
  /** The message of the platform, which may contain personal data. */
  errorText?: string;
  inviteUrl?: string | undefined;
}

/** The result if the permit was too old to use. */
export const NOT_SENT: CallResult = {
  answer: { kind: 'not-sent' },
  outcome: { outcome: 'not-sent', status: null, durationMs: 0, reached: false },
};

/** The result if the person's data cannot be decrypted. It is retried with increasing backoff. */
const UNREADABLE: CallResult = {
  answer: { kind: 'unreadable' },
  outcome: { ...NOT_SENT.outcome, outcome: 'unreadable' },
  errorCode: 'unreadable',
};

/** The profile of a call that sends none. */
const NO_PROFILE: Profile = { email: null, firstName: '', lastName: '' };

/** Looked up if no email is known, only to learn whether the platform answers. The domain is reserved (RFC 2606). */
const RESERVED_EMAIL = 'nobody@example.invalid';

/** Makes the call of a step and returns its result. Stores nothing and never throws. */
@Injectable()
export class PlatformPeople {
  private readonly log = new Logger(PlatformPeople.name);

  constructor(
    private readonly contract: Contract,
    private readonly users: UsersClient,
    private readonly people: PeopleRepository,
    private readonly seal: ProfileSeal,
    private readonly clock: Clock,
  ) {}

  /** True if the contract defines how to send the API key. Without it, every person stays pending. */
  get isConfigured(): boolean {
    return this.contract.apiKey !== undefined;
  }

  /** Makes one HTTP attempt. @param connectWithinMs maximum time to connect; after it nothing is sent */
  async perform(row: PersonRow, step: CallStep, connectWithinMs: number): Promise<CallResult> {
    const profile = await this.openProfile(row, step);
    if (!profile) return UNREADABLE;
    const started = this.clock.monotonicMs();
    try {
      const answered = await this.call(row, step, profile, { connectWithinMs });
      const durationMs = this.clock.monotonicMs() - started;
      return { ...answered, outcome: { outcome: answered.answer.kind, status: 200, durationMs, reached: true } };
    } catch (error) {
      return failureResult(error, this.clock.monotonicMs() - started);
    }
  }

  /** Decrypts the profile that the call is about; undefined if it cannot be decrypted. */
  private async openProfile(row: PersonRow, { operation, subject }: CallStep): Promise<Profile | undefined> {
    if (operation === 'deleteUser' || operation === 'setClientProviders') return NO_PROFILE;
    try {
      if (subject === 'any') {
        const provider = await this.people.anyProvider();
        return provider ? this.seal.open(provider, provider.profile) : NO_PROFILE;
      }
      const sealed = subject === 'attempted' ? row.attemptProfile : row.profile;
      return sealed ? this.seal.open(row, sealed) : NO_PROFILE;
    } catch (error) {
      this.log.warn({ msg: 'a person could not be decrypted; nothing was sent', person: row.id, ...errorTrace(error) });
      return undefined;
    }
  }

  private async call(
    { externalId: partnerUserId, person: { platformUserId } }: PersonRow,
    { operation, providerUserIds = [] }: CallStep,
    { email, firstName, lastName }: Profile,
    options: CallOptions,
  ): Promise<Pick<CallResult, 'answer' | 'inviteUrl'>> {
    switch (operation) {
      case 'checkUser': {
        const userId = await this.users.checkUser({ email: email ?? RESERVED_EMAIL }, options);
        return { answer: userId === undefined ? { kind: 'absent' } : { kind: 'exists', userId } };
      }
      case 'createProvider': {
        const provider = { email: email ?? '', firstName, lastName, partnerUserId };
        const { userId, inviteUrl } = await this.users.createProvider(provider, options);
        return { answer: { kind: 'created', userId }, inviteUrl };
      }
      case 'createClient': {
        const [therapistUserId = ''] = providerUserIds;
        const client = { firstName, lastName, therapistUserId, partnerUserId, ...(email !== null && { email }) };
        const { userId } = await this.users.createClient(client, options);
        return { answer: { kind: 'created', userId } };
      }
      case 'setClientProviders':
        await this.users.setClientProviders(platformUserId ?? '', providerUserIds, options);
        return { answer: { kind: 'applied' } };
      case 'deleteUser':
        await this.users.deleteUser(platformUserId ?? '', options);
        return { answer: { kind: 'deleted' } };
    }
  }
}

/** For each error: the answer, the code shown, and whether the call may have reached the platform. */
const FAILURES: Record<
  PlatformError['kind'] | 'wrong-url',
  [RawAnswer['kind'], code: string | undefined, reached?: false]
> = {
  'wrong-url': ['wrong-url', 'platform-address'],
  'rate-limited': ['rate-limited', 'rate-limited'],
  unauthorized: ['unauthorized', 'platform-unauthorized'],
  'not-found': ['not-found', 'platform-address'],
  rejected: ['rejected', 'rejected'],
  unreachable: ['unreachable', 'platform-unreachable', false],
  held: ['not-sent', undefined, false],
  'not-configured': ['not-sent', 'not-configured', false],
  'unknown-outcome': ['unknown', 'platform-fault'],
};

/** Converts an error to a result. Except for a PlatformError, it may occur after sending, so the outcome is unknown. */
function failureResult(error: unknown, durationMs: number): CallResult {
  const fault = error instanceof PlatformError ? error : undefined;
  const kind = fault?.kind ?? 'unknown-outcome';
  const [answer, errorCode, reached = true] = FAILURES[fault?.isWrongAddress ? 'wrong-url' : kind];
  const { status = null, retryAfterMs, reason } = fault ?? {};
  return {
    answer: { kind: answer, status: status ?? 0, retryAfterMs } as RawAnswer,
    outcome: { outcome: kind, status, durationMs, reached, reason },
    ...(errorCode && { errorCode }),
    ...(kind === 'rejected' && fault?.platformMessage && { errorText: fault.platformMessage }),
  };
}
