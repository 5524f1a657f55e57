import { Injectable, Logger } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import { errorTrace } from '../../errors/error-trace.js';
import { Problem } from '../../http/problem/problem.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { PlatformError, platformProblem } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { SentData } from '../../platform/send/sent-data.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from '../read/session-reader.js';
import type { RefreshRequest } from '../read/sessions.dto.js';
import { RefreshRepository } from '../refresh/refresh.repository.js';
import { type PendingUpdate, RefreshScheduler } from '../refresh/refresh-scheduler.repository.js';
import { readSpeakers, type UpdateSessionRequest, updateRequest } from './update-session.dto.js';

/**
 * Updates sessions while the caller waits, and schedules lookups. The session in the platform's answer is stored like a
 * fetched one.
 */
@Injectable()
export class SessionUpdates {
  private readonly log = new Logger(SessionUpdates.name);

  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly database: Database,
    private readonly people: ResolvedPartiesRepository,
    private readonly platform: PlatformClient,
    private readonly refreshes: RefreshRepository,
    private readonly scheduler: RefreshScheduler,
    private readonly reader: SessionReader,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
    private readonly sent: SentData,
  ) {}

  /**
   * Makes sessions due.
   *
   * @returns the number of sessions
   * @throws {Problem} 400 `validation`; 404 `unknown-session`; 501 `not-configured`
   */
  async refresh({ since, session }: RefreshRequest): Promise<number> {
    if ((since === undefined) === (session === undefined)) {
      throw new Problem('validation', 'Send either since or session.', { pointer: '' });
    }
    requireCapability('session-read', this.contract, this.env);
    const one = session === undefined ? undefined : await this.reader.find(session);
    await this.audit.commitIntent();
    const sessions = one
      ? await this.scheduler.scheduleRefresh(one.id)
      : await this.scheduler.scheduleRefreshesSince(new Date(since ?? 0));
    this.notifier.notify('sessions');
    return sessions;
  }

  /**
   * Updates the sources of a session's notes; omitted fields stay unchanged.
   *
   * @param id our id or the platform's
   * @throws {Problem} 400 `validation` or `platform-rejected`; 404 `unknown-session` or `not-on-platform`; 409
   *   `no-session-yet`; 409 or 422 for a speaker without a platform user; 501 `not-configured`; 503; 504
   *   `platform-unclear`
   */
  async update(id: string, dto: UpdateSessionRequest): Promise<SessionResponse> {
    requireCapability('session-update', this.contract, this.env);
    const { shownId, inputKind } = await this.reader.find(id);
    const body = updateRequest(dto, await this.usersOf(dto), inputKind ?? undefined);
    return this.change(shownId, 'updateSession', (sessionId) => this.platform.updateSession(sessionId, body));
  }

  /** The platform users of the speakers by their labels. */
  private async usersOf({ speakerMapping }: UpdateSessionRequest): Promise<Record<string, string>> {
    const users: Record<string, string> = {};
    for (const [label, speaker] of readSpeakers(speakerMapping)) {
      if (typeof speaker === 'string') users[label] = speaker;
      else {
        users[label] = await this.people.userOf(speaker, `/speakerMapping/${label}`);
        this.audit.about(speaker.kind, speaker.externalId);
      }
    }
    return users;
  }

  /** Adds or reprocesses note templates by the platform's deprecated operation. @throws {Problem} as {@link update} */
  async updateNoteTemplates(id: string, noteTemplateIds: string[]): Promise<SessionResponse> {
    requireCapability('note-templates-update', this.contract, this.env);
    return this.change(id, 'updateSessionTemplates', (sessionId) =>
      this.platform.updateSessionTemplates(sessionId, noteTemplateIds),
    );
  }

  /** The call has no abort signal: a caller that disconnects must not make its outcome unknown. */
  private async change(
    idOrPlatformId: string,
    operation: OperationName,
    call: (sessionId: string) => Promise<SessionAnswer>,
  ): Promise<SessionResponse> {
    const { id, shownId, sessionId, state, clients } = await this.reader.find(idOrPlatformId);
    if (sessionId === null) {
      const detail = 'The platform does not have this session yet. Retry once the session has its id.';
      throw new Problem('no-session-yet', detail, { extensions: { state } });
    }
    await this.audit.commitIntent();
    const update = await this.scheduler.beginUpdate(id);
    let session: SessionAnswer | undefined;
    try {
      session = await this.sent.send(operation, { client: clients, session: [shownId] }, () => call(sessionId));
      return await this.store(update, session);
    } catch (error) {
      await this.lookAgain(update, error);
      if (!session) throw platformProblem(error);
      this.log.error({ msg: 'the answer to an update could not be stored', ...errorTrace(error) });
      // The update took effect, so it must not be sent again.
      throw new Problem(
        'platform-unclear',
        'The update took effect, but could not be stored here. Read the session later.',
      );
    } finally {
      this.notifier.notify('sessions');
    }
  }

  private store(update: PendingUpdate, session: SessionAnswer): Promise<SessionResponse> {
    return this.database.transaction(async (tx) => {
      await this.scheduler.endUpdate(tx, update);
      await this.refreshes.storeAnswer(tx, update.id, { ticket: update.ticket, session });
      return this.reader.show(update.id, tx);
    });
  }

  /**
   * After a lost answer the update may still take effect, so the session is fetched now, and again when it no longer can.
   * Without the database, only the latter.
   */
  private async lookAgain(update: PendingUpdate, error: unknown): Promise<void> {
    const mayBeLate = error instanceof PlatformError && error.kind === 'unknown-outcome';
    const stored = mayBeLate
      ? this.scheduler.scheduleRefresh(update.id)
      : this.scheduler.endUpdate(this.database.pool, update);
    await stored.catch((fault: unknown) =>
      this.log.warn({ msg: 'the end of an update could not be stored', ...errorTrace(fault) }),
    );
  }
}
