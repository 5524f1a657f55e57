import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import { errorTrace } from '../errors/error-trace.js';
import { UsersClient } from '../platform/clients/users-client.js';
import { Contract } from '../platform/contract/contract.js';
import { PlatformError } from '../platform/contract/platform-errors.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import type { SentCall } from './rules/apply-call.js';
import type { CallResult } from './rules/call-result.js';
import type { Profile } from './rules/person-field-rules.js';
import { ProfileSeal } from './rules/profile.js';
import type { TakenCall } from './store/calls.repository.js';
import { PeopleRepository } from './store/people.repository.js';

/** Looked up if no email is known, only to learn whether the platform answers. The domain is reserved (RFC 2606). */
const RESERVED_EMAIL = 'nobody@example.invalid';

/** Makes the one call of a step and returns its result. Stores nothing and never throws. */
@Injectable()
export class PeopleCalls {
  private readonly log = new Logger(PeopleCalls.name);

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

  /** Decrypts what a call sends; undefined if it cannot be decrypted. */
  async open({ row, call }: TakenCall): Promise<Profile | undefined> {
    const { operation, subject } = call;
    if (operation === 'deleteUser' || operation === 'setClientProviders') return {};
    if (subject === 'any') {
      const provider = await this.people.anyProvider().catch(() => undefined);
      return (provider && openIfReadable(() => this.seal.open(provider, provider.profile))) ?? {};
    }
    try {
      const sealed = subject === 'attempted' ? row.unsettledProfile : row.profile;
      return sealed ? this.seal.open(row, sealed) : {};
    } catch (error) {
      this.log.warn({ msg: 'a person could not be decrypted; nothing was sent', person: row.id, ...errorTrace(error) });
      return undefined;
    }
  }

  /** Makes one HTTP attempt, which connects within two seconds or is not sent. */
  async perform(taken: TakenCall, profile: Profile): Promise<CallResult> {
    const started = this.clock.monotonicMs();
    try {
      const answered = await this.call(taken, profile);
      const durationMs = this.clock.monotonicMs() - started;
      return { ...answered, kind: 'ok', durationMs, reason: null };
    } catch (error) {
      return failureResult(error, this.clock.monotonicMs() - started);
    }
  }

  private async call(
    { row, call }: TakenCall,
    profile: Profile,
  ): Promise<Pick<CallResult, 'status' | 'said' | 'inviteUrl'>> {
    const { externalId: partnerUserId } = row;
    const { platformUserId } = row.person;
    const { operation, providerUserIds = [] }: SentCall = call;
    switch (operation) {
      case 'checkUser': {
        const { status, userId } = await this.users.checkUser({ email: profile.email ?? RESERVED_EMAIL });
        return { status, said: userId === undefined ? { kind: 'absent' } : { kind: 'exists', userId } };
      }
      case 'createProvider': {
        const { status, userId, inviteUrl } = await this.users.createProvider({ ...profile, partnerUserId });
        return { status, said: { kind: 'created', userId }, inviteUrl };
      }
      case 'createClient': {
        const [therapistUserId = ''] = providerUserIds;
        const { status, userId } = await this.users.createClient({ ...profile, therapistUserId, partnerUserId });
        return { status, said: { kind: 'created', userId } };
      }
      case 'setClientProviders':
        return {
          ...(await this.users.setClientProviders(platformUserId ?? '', providerUserIds)),
          said: { kind: 'applied' },
        };
      case 'deleteUser':
        return { ...(await this.users.deleteUser(platformUserId ?? '')), said: { kind: 'deleted' } };
    }
  }
}

/** Converts an error to a result. Except for a PlatformError, it may occur after sending, so the outcome is unknown. */
function failureResult(error: unknown, durationMs: number): CallResult {
  const fault = error instanceof PlatformError ? error : undefined;
  const kind = fault?.kind ?? 'unknown-outcome';
  const { status = null, retryAfterMs, reason = null, isWrongAddress = false } = fault ?? {};
  return {
    ...{ kind, status, retryAfterMs, isWrongAddress, said: null, durationMs, reason },
    ...(kind === 'not-configured' && { errorCode: kind }),
    ...(kind === 'rejected' && { errorText: fault?.platformMessage }),
  };
}
