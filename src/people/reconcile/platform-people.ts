import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { errorTrace } from '../../http/problem/error-trace.js';
import { UsersClient } from '../../platform/clients/users-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { CallOptions } from '../../platform/http/platform-http.js';
import type { CallStep } from '../model/next-step.js';
import type { PersonRow } from '../model/person-row.js';
import { type Profile, ProfileSeal } from '../model/profile.js';
import type { CallAnswer, CallResult } from './results.repository.js';

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

  /** The result when the slot was too old to be used. */
  notSent(): CallResult {
    const outcome = { outcome: 'not-sent', status: null, durationMs: 0, reached: false };
    return { answer: { kind: 'not-sent' }, outcome, errorCode: null, errorText: null, inviteUrl: null };
  }

  /** Whom the call is about; undefined when it does not open: then nothing was sent, and a key may come back. */
  private opened(row: PersonRow, step: CallStep): Profile | undefined {
    const sealed = step.subject === 'attempted' ? row.sealed.attemptProfile : row.sealed.profile;
    try {
      const [primary] = row.around.providers;
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
        const found = await this.users.checkUser({ email: email ?? '' }, options);
        return { answer: found.exists ? { kind: 'exists', userId: found.userId } : { kind: 'absent' } };
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

/** The result when the person's own data does not open; tried again later, as if the platform could not be reached. */
const UNREADABLE: CallResult = {
  answer: { kind: 'unreachable' },
  outcome: { outcome: 'unreadable', status: null, durationMs: 0, reached: false },
  errorCode: 'unreadable',
  errorText: null,
  inviteUrl: null,
};

/** Names what an error means for a person. What is no platform error is a fault of ours after sending: unknown. */
function failed(step: CallStep, error: unknown, durationMs: number): CallResult {
  const fault = error instanceof PlatformError ? error : undefined;
  const kind = fault?.kind ?? 'unknown-outcome';
  const base = { errorText: null, inviteUrl: null };
  const outcome = { outcome: kind, status: fault?.status ?? null, durationMs, reached: true };
  if (fault?.isWrongAddress) {
    return { ...base, answer: { kind: 'wrong-address' }, outcome, errorCode: 'platform-address' };
  }
  const isConflict =
    fault?.status === 409 && (step.operation === 'createProvider' || step.operation === 'createClient');
  switch (kind) {
    case 'rate-limited':
      return {
        ...base,
        answer: { kind: 'rate-limited' },
        outcome: { ...outcome, rateLimited: { retryAfterMs: fault?.retryAfterMs } },
        errorCode: 'rate-limited',
      };
    case 'unauthorized':
      return { ...base, answer: { kind: 'unauthorized' }, outcome, errorCode: 'platform-unauthorized' };
    case 'not-found':
      return { ...base, answer: { kind: 'not-found' }, outcome, errorCode: 'not-found' };
    case 'rejected':
      return {
        ...base,
        answer: { kind: isConflict ? 'conflict' : 'rejected' },
        outcome,
        errorCode: 'rejected',
        errorText: fault?.platformMessage ?? null,
      };
    case 'unreachable':
      return {
        ...base,
        answer: { kind: 'unreachable' },
        outcome: { ...outcome, reached: false },
        errorCode: 'platform-unreachable',
      };
    case 'not-configured':
      return {
        ...base,
        answer: { kind: 'not-sent' },
        outcome: { ...outcome, reached: false },
        errorCode: 'not-configured',
      };
    case 'unknown-outcome':
      return { ...base, answer: { kind: 'unknown' }, outcome, errorCode: 'platform-fault' };
  }
}
