import { Injectable } from '@nestjs/common';
import { Contract } from './contract.js';
import type { PlatformAnswer } from './platform-answer.js';
import { type CallOptions, PlatformHttp } from './platform-http.js';
import { sessionShape } from './session-shape.js';
import { type FileToUpload, type UploadTarget, uploadParameters, uploadTarget } from './upload-target.js';
import type {
  CreateSessionRequest,
  CreateSessionResponse,
  Session,
  UpdateSessionRequest,
  UpdateSessionTemplatesRequest,
} from './wire-types.js';

/** What the platform tells of a processing id; what it is made of is the contract file's to say. */
export interface ProcessingSessionAnswer {
  sessionId: string | undefined;
  session: Session | undefined;
  /** The whole answer, as it came. */
  raw: unknown;
}

/** Therapy sessions. All methods throw {@link PlatformError}. */
@Injectable()
export class SessionsClient {
  constructor(
    private readonly http: PlatformHttp,
    private readonly contract: Contract,
  ) {}

  /** Creates a session. An unreadable answer leaves the outcome unknown. */
  async createSession(body: CreateSessionRequest, options: CallOptions = {}): Promise<CreateSessionResponse> {
    const answer = await this.http.call({ operation: 'createSession', body, ...options });
    return { sessionId: answer.requiredText('sessionId') };
  }

  /** Reads a session. */
  async getSession(sessionId: string, options: CallOptions = {}): Promise<Session> {
    const answer = await this.http.call({ operation: 'getSession', parameters: { sessionId }, ...options });
    return sessionIn(answer);
  }

  /** Changes a session; what the body leaves out stays as it is. */
  async updateSession(sessionId: string, body: UpdateSessionRequest, options: CallOptions = {}): Promise<Session> {
    const answer = await this.http.call({ operation: 'updateSession', parameters: { sessionId }, body, ...options });
    return sessionIn(answer);
  }

  /** Adds or reprocesses note templates (deprecated by the spec in favour of `updateSession`). */
  async updateSessionTemplates(
    sessionId: string,
    noteTemplateIds: string[],
    options: CallOptions = {},
  ): Promise<Session> {
    const body: UpdateSessionTemplatesRequest = { noteTemplateIds };
    const call = { operation: 'updateSessionTemplates', parameters: { sessionId }, body } as const;
    return sessionIn(await this.http.call({ ...call, ...options }));
  }

  /** Reads what a webhook's processing id stands for. */
  async getProcessingSession(processingId: string, options: CallOptions = {}): Promise<ProcessingSessionAnswer> {
    const call = { operation: 'getProcessingSession', parameters: { processingId } } as const;
    const answer = await this.http.call({ ...call, ...options });
    const { response } = this.contract.operations.getProcessingSession;
    const session = response.session === undefined ? undefined : sessionIn(answer);
    const sessionId = response.sessionId === undefined ? session?.sessionId : answer.requiredText('sessionId');
    return { sessionId, session, raw: answer.body };
  }

  /** Asks for an address to which a recording is then sent. */
  async recordingUploadUrl(file: FileToUpload, options: CallOptions = {}): Promise<UploadTarget> {
    const parameters = uploadParameters(file);
    const answer = await this.http.call({ operation: 'recordingUploadUrl', parameters, ...options });
    return uploadTarget(answer, this.contract.operations.recordingUploadUrl.upload, parameters);
  }
}

function sessionIn(answer: PlatformAnswer): Session {
  const session = answer.value('session');
  const fault = sessionShape(session);
  return fault === undefined
    ? (session as Session)
    : answer.unreadable(`no Session: ${answer.placeOf('session', fault)}`);
}
