import { Injectable } from '@nestjs/common';
import type { ProfileField } from '../../words/field-words.js';
import { PlatformHttp } from '../http/platform-http.js';

/** The fields of a profile, and the EHR's id, which webhooks repeat. */
type NewUser = { [Field in ProfileField | 'partnerUserId']?: string };

/** The HTTP status of a 2xx answer, and what it says. */
type Answered<Said = object> = Promise<{ status: number } & Said>;

/** User management, within the limiter of the queue of people. All methods throw {@link PlatformError}. */
@Injectable()
export class UsersClient {
  constructor(private readonly http: PlatformHttp) {}

  /** @returns the id of the user with this email; undefined if there is none */
  checkUser(body: { email: string }): Answered<{ userId: string | undefined }> {
    return this.http.call({ operation: 'checkUser', body }, (answer) => {
      const userId = answer.requiredBoolean('isUserExists') ? answer.requiredId('userId') : undefined;
      return { status: answer.status, userId };
    });
  }

  createProvider(body: NewUser): Answered<{ userId: string; inviteUrl?: string }> {
    return this.http.call({ operation: 'createProvider', body }, (answer) => {
      const inviteUrl = answer.value('inviteUrl');
      const isText = typeof inviteUrl === 'string' && inviteUrl.trim() !== '';
      return { status: answer.status, userId: answer.requiredId('userId'), ...(isText && { inviteUrl }) };
    });
  }

  /** @param body `therapistUserId` is the user id of the primary provider */
  createClient(body: NewUser & { therapistUserId: string }): Answered<{ userId: string }> {
    const call = { operation: 'createClient', body } as const;
    return this.http.call(call, (answer) => ({ status: answer.status, userId: answer.requiredId('userId') }));
  }

  /** Replaces the complete list of a client's providers. */
  setClientProviders(userId: string, providerUserIds: string[]): Answered {
    const call = { operation: 'setClientProviders', parameters: { userId }, body: { providerUserIds } } as const;
    return this.http.call(call, ({ status }) => ({ status }));
  }

  /** Deletes a user. Throws `not-found` if it no longer exists, and `rejected` if the platform kept it. */
  deleteUser(userId: string): Answered {
    return this.http.call({ operation: 'deleteUser', parameters: { userId } }, (answer) => {
      if (answer.locates('deleted') && !answer.requiredBoolean('deleted')) answer.rejected();
      return { status: answer.status };
    });
  }
}
