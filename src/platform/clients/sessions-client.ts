import { Injectable } from '@nestjs/common';
import * as v from 'valibot';
import { Metrics } from '../../http/server/metrics.js';
import { Contract } from '../contract/contract.js';
import {
  type CreateTherapySessionRequest,
  type CreateTherapySessionResponse,
  SESSION_PARTS,
  type Session,
  sessionCore,
  sessionDocument,
  type UpdateTherapySessionRequest,
} from '../contract/wire-types.js';
import type { PlatformAnswer } from '../http/platform-answer.js';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';
import { type FileToUpload, requestUploadTarget, type UploadTarget } from '../upload/upload-target.js';

type SessionPart = keyof typeof SESSION_PARTS;

/** A Session of the platform as far as it could be read. */
export interface SessionAnswer extends Session {
  /** True when some of its documents could not be read: `notes` is not all that the platform has. */
  notesIncomplete?: boolean;
}

/** The platform's answer about a processing id; the contract file says where its parts stand. */
export interface ProcessingSessionAnswer {
  sessionId: string | undefined;
  session: SessionAnswer | undefined;
  /** The whole answer, as it came. */
  raw: unknown;
}

/** Therapy sessions. All methods throw {@link PlatformError}. */
@Injectable()
export class SessionsClient {
  private readonly leftOut: ReturnType<typeof Metrics.prototype.counter<'part'>>;

  constructor(
    private readonly http: PlatformHttp,
    private readonly contract: Contract,
    metrics: Metrics,
  ) {
    this.leftOut = metrics.counter(
      'platform_session_parts_left_out_total',
      'Optional parts of sessions that could not be read, by the field; the rest of the session was taken',
      ['part'],
    );
  }

  /** Creates a session. An unreadable answer leaves the outcome unknown. */
  async createSession(
    body: CreateTherapySessionRequest,
    options: CallOptions = {},
  ): Promise<CreateTherapySessionResponse> {
    const answer = await this.http.call({ operation: 'createSession', body, ...options });
    return { sessionId: answer.requiredId('sessionId') };
  }

  /** Reads a session. */
  async getSession(sessionId: string, options: CallOptions = {}): Promise<SessionAnswer> {
    const answer = await this.http.call({ operation: 'getSession', parameters: { sessionId }, ...options });
    return this.sessionIn(answer);
  }

  /** Changes a session; what the body leaves out stays as it is. */
  async updateSession(
    sessionId: string,
    body: UpdateTherapySessionRequest,
    options: CallOptions = {},
  ): Promise<SessionAnswer> {
    const answer = await this.http.call({ operation: 'updateSession', parameters: { sessionId }, body, ...options });
    return this.sessionIn(answer);
  }

  /** Adds or reprocesses note templates (deprecated by the spec in favour of `updateSession`). */
  async updateSessionTemplates(
    sessionId: string,
    noteTemplateIds: string[],
    options: CallOptions = {},
  ): Promise<SessionAnswer> {
    const call = { operation: 'updateSessionTemplates', parameters: { sessionId }, body: { noteTemplateIds } } as const;
    return this.sessionIn(await this.http.call({ ...call, ...options }));
  }

  /** Reads what a webhook's processing id stands for. */
  async getProcessingSession(processingId: string, options: CallOptions = {}): Promise<ProcessingSessionAnswer> {
    const call = { operation: 'getProcessingSession', parameters: { processingId } } as const;
    const answer = await this.http.call({ ...call, ...options });
    const { response } = this.contract.operations.getProcessingSession;
    const session = response.session === undefined ? undefined : this.sessionIn(answer);
    const sessionId = response.sessionId === undefined ? session?.sessionId : answer.requiredId('sessionId');
    return { sessionId, session, raw: answer.body };
  }

  /** Asks for an address to which a recording is then sent. */
  recordingUploadUrl(file: FileToUpload, options: CallOptions = {}): Promise<UploadTarget> {
    return requestUploadTarget('recordingUploadUrl', file, { http: this.http, contract: this.contract, options });
  }

  private sessionIn(answer: PlatformAnswer): SessionAnswer {
    const reading = readSession(answer.value('session'));
    if ('fault' in reading) return answer.unreadable(`no Session: ${answer.placeOf('session', reading.fault)}`);
    for (const part of reading.leftOut) this.leftOut.inc({ part });
    return reading.session;
  }
}

/**
 * Reads a Session as the spec lists its fields (Resources, Session); fields that the spec does not name are kept as they
 * are. An optional part that does not fit counts as absent, and so does each document of its notes by itself: the rest
 * of the Session is worth having. A reading ends at the first fault, so that an answer full of them costs no more.
 *
 * @returns the Session and its parts that were left out, or the JSON Pointer of the required field that does not fit
 */
export function readSession(value: unknown): { session: SessionAnswer; leftOut: SessionPart[] } | { fault: string } {
  const core = v.safeParse(sessionCore, value, { abortEarly: true });
  if (!core.success) return { fault: (core.issues[0].path ?? []).map(({ key }) => `/${key}`).join('') };
  const session = { ...(value as SessionAnswer) };
  const leftOut = (Object.keys(SESSION_PARTS) as SessionPart[]).filter(
    (part) => !v.is(SESSION_PARTS[part], session[part]),
  );
  for (const part of leftOut) {
    if (part !== 'notes' || !Array.isArray(session.notes)) delete session[part];
    else {
      session.notes = session.notes.filter((document) => v.is(sessionDocument, document));
      session.notesIncomplete = true;
    }
  }
  return { session, leftOut };
}
