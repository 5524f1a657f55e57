import { CliFault } from '../src/cli/api/cli-fault.js';

/** A user on the simulated platform. */
interface PlatformUser {
  userId: string;
  providerUserIds: string[];
}

/** Counts of the simulated platform. */
interface CallStats {
  userManagement: { arrivals: number; rateLimited: number; largestWindow: { all: number } };
}

/** The admin API of the simulated platform. */
export class Platform {
  constructor(private readonly url: string) {}

  /** Creates a user as in the platform's own application. */
  async addUser(user: Record<string, unknown>): Promise<PlatformUser> {
    return this.call('POST', '/users', user);
  }

  /** All users on the platform. */
  async users(): Promise<PlatformUser[]> {
    return (await this.call<{ users: PlatformUser[] }>('GET', '/users')).users;
  }

  /** The user with this id, or undefined. */
  async user(userId: string | null): Promise<PlatformUser | undefined> {
    return (await this.users()).find((user) => user.userId === userId);
  }

  async stats(): Promise<CallStats> {
    return this.call('GET', '/stats');
  }

  /** Starts a session as a provider does in the platform's own application. @returns its sessionId */
  async startSession(session: Record<string, unknown>): Promise<string> {
    return (await this.call<{ sessionId: string }>('POST', '/sessions', session)).sessionId;
  }

  private async call<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T> {
    const content =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const answer = await fetch(`${this.url}/_simulator${path}`, { method, ...content });
    if (!answer.ok) throw new CliFault(`The simulator rejected ${method} ${path}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }
}
