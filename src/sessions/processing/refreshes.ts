import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import { SessionReader } from '../read/session-reader.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { type PendingRefreshes, WantedRefreshes } from '../refresh/wanted-refreshes.repository.js';

/** Looking sessions up because somebody asks for it. */
@Injectable()
export class Refreshes {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly reader: SessionReader,
    private readonly wanted: WantedRefreshes,
    private readonly notifier: RefreshNotifier,
  ) {}

  /**
   * Makes one session due, or all that were heard of or changed since a moment.
   *
   * @returns how many
   * @throws {Problem} 400 `validation`, 404 `unknown-session`, 501 `not-configured`
   */
  async begin(wish: { since?: string | undefined; session?: string | undefined }): Promise<number> {
    if ((wish.since === undefined) === (wish.session === undefined)) {
      throw new Problem(400, 'validation', 'Name either since or session.', { pointer: '' });
    }
    requireCapability('session-read', this.contract, this.env);
    const count =
      wish.session === undefined
        ? await this.wanted.wantSince(new Date(wish.since ?? 0))
        : await this.wanted.wantOne((await this.reader.find(wish.session)).id);
    this.notifier.notify();
    return count;
  }

  /** Counts the sessions that have not been fetched since something was last heard of them. */
  pending(): Promise<PendingRefreshes> {
    return this.wanted.countWanted();
  }
}
