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
import type { PersonRow } from '../model/person-row.js';
import { type Profile, ProfileSeal } from '../model/profile.js';

/** What a call came to: for the person, for the log, and what is to be stored. */
export interface CallResult {
  answer: CallAnswer;
  outcome: CallOutcome;
  /** Shown as `sync.error.code` while the person is not settled. */
  errorCode: string | null;
  /** The platform's words; may hold personal data. */
  errorText: string | null;
  inviteUrl: string | null;
}

/** An answer as the platform gives it: whose user it names, and whose a refusal is, only the database knows. */
export type CallAnswer =
  | { kind: Exclude<PlainAnswer, 'forbidden' | 'refused-for-all'> | 'unauthorized' | 'wrong-address' }
  | { kind: 'exists' | 'created'; userId: string };

const nothingSent = (kind: 'not-sent' | 'unreachable', outcome: string, errorCode: string | null): CallResult => ({
  answer: { kind },
  outcome: { outcome, status: null, durationMs: 0, reached: false },
  errorCode,
  errorText: null,
  inviteUrl: null,
});

/** The result when the permit was too old to be used. */
export const NOT_SENT = nothingSent('not-sent', 'not-sent', null);

/** The result when the person's own data does not open; tried again later, as if the platform could not be reached. */
const UNREADABLE = nothingSent('unreachable', 'unreadable', 'unreadable');

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
      const { answer, inviteUrl } = await this.call(row, step, profile, { connectWithinMs });
      const durationMs = this.clock.monotonicMs() - started;
      return {
        answer,
        outcome: { outcome: answer.kind, status: 200, durationMs, reached: true },
        errorCode: null,
        errorText: null,
        inviteUrl: inviteUrl ?? null,
      };
    } catch (error) {
      return failed(step, error, this.clock.monotonicMs() - started);
    }
  }

  /** Whom the call is about; undefined when it does not open: then nothing was sent, and a key may come back. */
  private opened(row: PersonRow, step: CallStep): Profile | undefined {
    const sealed = step.subject === 'attempted' ? row.sealed.attemptProfile : row.sealed.profile;
    try {
      const [primary] = row.context.providers;
      if (step.subject === 'primary' && primary && row.sealed.primaryProfile) {
        return this.seal.open({ kind: 'provider', externalId: primary.externalId }, row.sealed.primaryProfile);
      }
      return this.seal.open(row, sealed ?? row.sealed.profile);
    } catch (error) {
      this.log.warn({ msg: 'a person could not be read; nothing was sent', person: row.id, ...errorTrace(error) });
      return undefined;
    }
  }

  private async call(
    row: PersonRow,
    step: CallStep,
    { email, firstName, lastName }: Profile,
    options: CallOptions,
  ): Promise<{ answer: CallAnswer; inviteUrl?: string }> {
    const partnerUserId = row.externalId;
    switch (step.operation) {
      case 'checkUser': {
        const userId = await this.users.checkUser({ email: email ?? '' }, options);
        return { answer: userId === undefined ? { kind: 'absent' } : { kind: 'exists', userId } };
      }
      case 'createProvider': {
        const made = await this.users.createProvider(
          { email: email ?? '', firstName, lastName, partnerUserId },
          options,
        );
        return { answer: { kind: 'created', userId: made.userId }, inviteUrl: made.inviteUrl };
      }
      case 'createClient': {
        const therapistUserId = step.providerUserIds?.[0] ?? '';
        const person = { firstName, lastName, therapistUserId, partnerUserId, ...(email !== null && { email }) };
        const made = await this.users.createClient(person, options);
        return { answer: { kind: 'created', userId: made.userId } };
      }
      case 'setClientProviders':
        await this.users.setClientProviders(row.person.platformUserId ?? '', step.providerUserIds ?? [], options);
        return { answer: { kind: 'applied' } };
      case 'deleteUser':
        await this.users.deleteUser(row.person.platformUserId ?? '', options);
        return { answer: { kind: 'deleted' } };
    }
  }
}

/** What an error means for a person. One that is not the platform's is a fault of ours after sending: unknown. */
function failed(step: CallStep, error: unknown, durationMs: number): CallResult {
  const fault = error instanceof PlatformError ? error : undefined;
  const kind = fault?.kind ?? 'unknown-outcome';
  const failure = fault?.isWrongAddress ? WRONG_ADDRESS : FAILURES[kind];
  const isConflict = kind === 'rejected' && fault?.status === 409 && isCreate(step);
  return {
    answer: isConflict ? { kind: 'conflict' } : failure.answer,
    outcome: {
      outcome: kind,
      status: fault?.status ?? null,
      durationMs,
      reached: failure.reached ?? true,
      ...(kind === 'rate-limited' && { rateLimited: { retryAfterMs: fault?.retryAfterMs } }),
    },
    errorCode: failure.code,
    errorText: kind === 'rejected' ? (fault?.platformMessage ?? null) : null,
    inviteUrl: null,
  };
}

interface Failure {
  answer: CallAnswer;
  code: string;
  /** False when it is certain that nothing reached the platform. */
  reached?: false;
}

const WRONG_ADDRESS: Failure = { answer: { kind: 'wrong-address' }, code: 'platform-address' };

const FAILURES: Record<PlatformError['kind'], Failure> = {
  'rate-limited': { answer: { kind: 'rate-limited' }, code: 'rate-limited' },
  unauthorized: { answer: { kind: 'unauthorized' }, code: 'platform-unauthorized' },
  'not-found': { answer: { kind: 'not-found' }, code: 'not-found' },
  rejected: { answer: { kind: 'rejected' }, code: 'rejected' },
  unreachable: { answer: { kind: 'unreachable' }, code: 'platform-unreachable', reached: false },
  'not-configured': { answer: { kind: 'not-sent' }, code: 'not-configured', reached: false },
  'unknown-outcome': { answer: { kind: 'unknown' }, code: 'platform-fault' },
};
