import { Injectable } from '@nestjs/common';
import type {
  CheckUserRequest,
  CreateClientRequest,
  CreateProviderRequest,
  SetClientProvidersRequest,
} from '../contract/wire-types.js';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';

export type CheckedUser = { exists: true; userId: string } | { exists: false };
export interface CreatedProvider {
  userId: string;
  inviteUrl?: string;
}

/**
 * User management. Every call counts against the platform's limit of calls a minute: only who holds a slot of the call
 * log may call. All methods throw {@link PlatformError}.
 */
@Injectable()
export class UsersClient {
  constructor(private readonly http: PlatformHttp) {}

  /** Asks whether a user with this email exists. */
  async checkUser(body: CheckUserRequest, options: CallOptions = {}): Promise<CheckedUser> {
    const answer = await this.http.call({ operation: 'checkUser', body, ...options });
    const exists = answer.value('isUserExists');
    if (exists === true) return { exists, userId: answer.requiredId('userId') };
    if (exists === false) return { exists };
    return answer.unreadable(`no boolean at ${answer.placeOf('isUserExists')}`);
  }

  /** Creates a provider. An unreadable answer leaves the outcome unknown. */
  async createProvider(body: CreateProviderRequest, options: CallOptions = {}): Promise<CreatedProvider> {
    const answer = await this.http.call({ operation: 'createProvider', body, ...options });
    const inviteUrl = answer.optionalText('inviteUrl');
    return { userId: answer.requiredId('userId'), ...(inviteUrl !== undefined && { inviteUrl }) };
  }

  /** Creates a client of the primary provider that it names. An unreadable answer leaves the outcome unknown. */
  async createClient(body: CreateClientRequest, options: CallOptions = {}): Promise<{ userId: string }> {
    const answer = await this.http.call({ operation: 'createClient', body, ...options });
    return { userId: answer.requiredId('userId') };
  }

  /** Replaces the complete list of a client's providers. */
  async setClientProviders(userId: string, providerUserIds: string[], options: CallOptions = {}): Promise<void> {
    const body: SetClientProvidersRequest = { providerUserIds };
    await this.http.call({ operation: 'setClientProviders', parameters: { userId }, body, ...options });
  }

  /** Deletes a user; `not-found` says that it is gone already. */
  async deleteUser(userId: string, options: CallOptions = {}): Promise<void> {
    await this.http.call({ operation: 'deleteUser', parameters: { userId }, ...options });
  }
}
