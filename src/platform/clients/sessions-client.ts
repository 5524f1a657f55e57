import { Injectable } from '@nestjs/common';
import { Metrics } from '../../http/server/metrics.js';
import { Contract } from '../contract/contract.js';
import type {
  CreateSessionRequest,
  CreateSessionResponse,
  UpdateSessionRequest,
  UpdateSessionTemplatesRequest,
} from '../contract/wire-types.js';
import type { PlatformAnswer } from '../http/platform-answer.js';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';
import { type FileToUpload, type UploadTarget, uploadParameters, uploadTarget } from '../upload/upload-target.js';
import { readSession, type SessionAnswer } from './session-shape.js';

/** What the platform tells of a processing id; what it is made of is the contract file's to say. */
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
  async createSession(body: CreateSessionRequest, options: CallOptions = {}): Promise<CreateSessionResponse> {
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
    body: UpdateSessionRequest,
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
    const body: UpdateSessionTemplatesRequest = { noteTemplateIds };
    const call = { operation: 'updateSessionTemplates', parameters: { sessionId }, body } as const;
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
  async recordingUploadUrl(file: FileToUpload, options: CallOptions = {}): Promise<UploadTarget> {
    const parameters = uploadParameters(file);
    const answer = await this.http.call({ operation: 'recordingUploadUrl', parameters, ...options });
    return uploadTarget(answer, this.contract.operations.recordingUploadUrl.upload, parameters);
  }

  private sessionIn(answer: PlatformAnswer): SessionAnswer {
    const reading = readSession(answer.value('session'));
    if ('fault' in reading) return answer.unreadable(`no Session: ${answer.placeOf('session', reading.fault)}`);
    for (const { part } of reading.leftOut) this.leftOut.inc({ part });
    return reading.session;
  }
}
