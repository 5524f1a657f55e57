import { Injectable } from '@nestjs/common';
import type { ProfileField } from '../../words/field-words.js';
import { PlatformHttp } from '../http/platform-http.js';

/** The fields of a profile, and the EHR's id, which webhooks repeat. */
type NewUser = { [Field in ProfileField | 'partnerUserId']?: string };

/**
 * User management. The limiter of the queue of people keeps its calls within the limit of a minute. All
 * methods throw {@link PlatformError}. The outcome of a create with an unreadable answer is unknown.
 */
@Injectable()
export class UsersClient {
  constructor(private readonly http: PlatformHttp) {}

  /** @returns the id of the user with this email; undefined if there is none */
  async checkUser(body: { email: string }): Promise<string | undefined> {
    return this.http.call({ operation: 'checkUser', body }, (answer) => {
      return answer.requiredBoolean('isUserExists') ? answer.requiredId('userId') : undefined;
    });
  }

  async createProvider(body: NewUser): Promise<{ userId: string; inviteUrl?: string }> {
    return this.http.call({ operation: 'createProvider', body }, (answer) => {
      const inviteUrl = answer.value('inviteUrl');
      const isText = typeof inviteUrl === 'string' && inviteUrl.trim() !== '';
      return { userId: answer.requiredId('userId'), ...(isText && { inviteUrl }) };
    });
  }

  /** @param body `therapistUserId` is the user id of the primary provider */
  async createClient(body: NewUser & { therapistUserId: string }): Promise<{ userId: string }> {
    const call = { operation: 'createClient', body } as const;
    return this.http.call(call, (answer) => ({ userId: answer.requiredId('userId') }));
  }

  /** Replaces the complete list of a client's providers. */
  async setClientProviders(userId: string, providerUserIds: string[]): Promise<void> {
    const call = { operation: 'setClientProviders', parameters: { userId }, body: { providerUserIds } } as const;
    await this.http.call(call, () => undefined);
  }

  /** Deletes a user. Throws `not-found` if it no longer exists, and `rejected` if the platform kept it. */
  async deleteUser(userId: string): Promise<void> {
    await this.http.call({ operation: 'deleteUser', parameters: { userId } }, (answer) => {
      if (answer.locates('deleted') && !answer.requiredBoolean('deleted')) answer.rejected();
    });
  }
}
