import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { ResolvedPartiesRepository } from '../../people/store/resolved-parties.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { SentData } from '../../platform/clients/sent-data.js';
import { requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { platformProblem } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import { RefreshesRepository } from '../fetch/refreshes.repository.js';
import { factsAfter, shownBy } from '../model/apply-fetch.js';
import { NO_FACTS } from '../model/session-facts.js';
import { SessionSeal } from '../model/session-seal.js';
import type { SessionResponse } from '../model/session-view.js';
import { SessionReader } from '../read/session-reader.js';
import type { RefreshRequest } from '../read/sessions.dto.js';
import { readSpeakers, type UpdateSessionRequest, updateRequest } from './update-session.dto.js';
import { UpdatesRepository } from './updates.repository.js';

/** Updates sessions while the caller waits, and schedules lookups. An answer is returned; a fetch stores what it shows. */
@Injectable()
export class SessionUpdates {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly people: ResolvedPartiesRepository,
    private readonly platform: PlatformClient,
    private readonly refreshes: RefreshesRepository,
    private readonly updates: UpdatesRepository,
    private readonly reader: SessionReader,
    private readonly seal: SessionSeal,
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
    return one ? this.refreshes.one(one.id) : this.refreshes.since(new Date(since ?? 0));
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
    const { inputKind } = await this.reader.find(id);
    const body = updateRequest(dto, await this.usersOf(dto), inputKind ?? undefined);
    return this.change(id, 'updateSession', (sessionId) => this.platform.updateSession(sessionId, body));
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
    id: string,
    operation: OperationName,
    call: (sessionId: string) => Promise<SessionAnswer>,
  ): Promise<SessionResponse> {
    const row = await this.reader.find(id);
    const { sessionId, state, clients } = row;
    if (sessionId === null) {
      const detail = 'The platform does not have this session yet. Retry once the session has its id.';
      throw new Problem('no-session-yet', detail, { extensions: { state } });
    }
    await this.audit.commitIntent();
    const update = await this.updates.begin(row.id);
    const about = { client: clients, session: [row.id] };
    const answer = await this.sent
      .send(operation, about, () => call(sessionId))
      .catch(async (error: unknown) => {
        await this.updates.end(update, error);
        throw platformProblem(error);
      });
    await this.updates.end(update);
    const facts = factsAfter(answer, openIfReadable(() => this.seal.openFacts(row)) ?? NO_FACTS);
    return this.reader.view({ ...row, ...shownBy(row, answer), facts: this.seal.sealFacts(row.id, facts) });
  }
}
