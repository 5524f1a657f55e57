import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { UsersClient } from '../../platform/clients/users-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CallOptions } from '../../platform/http/platform-http.js';
import type { CallOutcome } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { PlainAnswer } from '../model/apply-answer.js';
import { type CallStep, isCreate } from '../model/next-step.js';
import { type Profile, ProfileSeal } from '../model/profile.js';
import type { PersonRow } from '../store/person-row.js';

/** What a call came to: for the person, for the log, and what is to be stored. */
export interface CallResult {
  /** As the platform gives it: whose user it names, and whose a refusal is, only the database knows. */
  answer: { kind: PlainKind } | { kind: 'exists' | 'created'; userId: string };
  outcome: CallOutcome;
  /** Shown as `sync.error.code` while the person is not settled. */
  errorCode?: string;
  /** The platform's words; may hold personal data. */
  errorText?: string;
  inviteUrl?: string | undefined;
}

type PlainKind = Exclude<PlainAnswer, 'forbidden' | 'refused-for-all'> | 'unauthorized' | 'wrong-address';

/** The result when the permit was too old to be used. */
export const NOT_SENT: CallResult = {
  answer: { kind: 'not-sent' },
  outcome: { outcome: 'not-sent', status: null, durationMs: 0, reached: false },
};

/** The result when the person's own data does not open: tried again later, as if the platform could not be reached. */
const UNREADABLE: CallResult = {
  answer: { kind: 'unreachable' },
  outcome: { ...NOT_SENT.outcome, outcome: 'unreadable' },
  errorCode: 'unreadable',
};

/** Makes a step's call and says what it came to; nothing is stored here, and no error leaves. */
@Injectable()
export class PlatformPeople {
  private readonly log = new Logger(PlatformPeople.name);

  constructor(
    private readonly contract: Contract,
    private readonly users: UsersClient,
    private readonly seal: ProfileSeal,
    private readonly clock: Clock,
  ) {}

  /** Whether the contract says how the API key is sent; without it every person stays pending. */
  get isConfigured(): boolean {
    return this.contract.apiKey !== undefined;
  }

  /** One HTTP attempt. @param connectWithinMs milliseconds left until it must be on its way, or not leave at all */
  async perform(row: PersonRow, step: CallStep, connectWithinMs: number): Promise<CallResult> {
    const profile = this.opened(row, step);
    if (!profile) return UNREADABLE;
    const started = this.clock.monotonicMs();
    try {
      const answered = await this.call(row, step, profile, { connectWithinMs });
      const durationMs = this.clock.monotonicMs() - started;
      return { ...answered, outcome: { outcome: answered.answer.kind, status: 200, durationMs, reached: true } };
    } catch (error) {
      return failed(step, error, this.clock.monotonicMs() - started);
    }
  }

  /** Whom the call is about; undefined when it does not open: then nothing was sent, and a key may come back. */
  private opened(row: PersonRow, { subject }: CallStep): Profile | undefined {
    try {
      const [primary] = row.context.providers;
      if (subject === 'primary' && primary && row.primaryProfile) {
        return this.seal.open({ kind: 'provider', externalId: primary.externalId }, row.primaryProfile);
      }
      return this.seal.open(row, (subject === 'attempted' && row.attemptProfile) || row.profile);
    } catch (error) {
      this.log.warn({ msg: 'a person could not be read; nothing was sent', person: row.id, ...errorTrace(error) });
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
        const userId = await this.users.checkUser({ email: email ?? '' }, options);
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

/** What each error means: the answer, the code that is shown, and whether anything may have reached the platform. */
const FAILURES: Record<PlatformError['kind'] | 'wrong-address', [PlainKind, code: string, reached?: false]> = {
  'wrong-address': ['wrong-address', 'platform-address'],
  'rate-limited': ['rate-limited', 'rate-limited'],
  unauthorized: ['unauthorized', 'platform-unauthorized'],
  'not-found': ['not-found', 'not-found'],
  rejected: ['rejected', 'rejected'],
  unreachable: ['unreachable', 'platform-unreachable', false],
  'not-configured': ['not-sent', 'not-configured', false],
  'unknown-outcome': ['unknown', 'platform-fault'],
};

/** What an error means for a person. One that is not the platform's is a fault of ours after sending: unknown. */
function failed(step: CallStep, error: unknown, durationMs: number): CallResult {
  const fault = error instanceof PlatformError ? error : undefined;
  const kind = fault?.kind ?? 'unknown-outcome';
  const [answer, errorCode, reached = true] = FAILURES[fault?.isWrongAddress ? 'wrong-address' : kind];
  const isConflict = kind === 'rejected' && fault?.status === 409 && isCreate(step);
  return {
    answer: { kind: isConflict ? 'conflict' : answer },
    outcome: {
      outcome: kind,
      status: fault?.status ?? null,
      durationMs,
      reached,
      ...(kind === 'rate-limited' && { rateLimited: { retryAfterMs: fault?.retryAfterMs } }),
    },
    errorCode,
    ...(kind === 'rejected' && fault?.platformMessage && { errorText: fault.platformMessage }),
  };
}
