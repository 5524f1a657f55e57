import { Injectable } from '@nestjs/common';
import { Contract } from '../contract/contract.js';
import { readSession, type SessionAnswer } from '../contract/session-answer.js';
import {
  type CreateTherapySessionRequest,
  type SubmitComplianceJobRequest,
  type UpdateTherapySessionRequest,
} from '../contract/wire-types.js';
import type { PlatformAnswer } from '../http/platform-answer.js';
import { type CallOptions, fillHeaders, PlatformHttp } from '../http/platform-http.js';
import type { UploadAddressResponse } from './upload-address.dto.js';

/** The platform's answer about a processing id. The contract file locates its parts. */
export interface ProcessingSessionAnswer {
  sessionId: string | undefined;
  session: SessionAnswer | undefined;
  /** The whole answer, unchanged. */
  raw: unknown;
}

/** A file for the platform's store. Its name contains no personal data, because the platform gets it. */
export type UploadFile = {
  fileName: string;
  contentType: string;
  /** In bytes; 0 if unknown. */
  size: number;
};

/** The platform's answer about a compliance job. */
export interface ComplianceJob {
  /** `unknown` if the contract does not locate the state, or does not name the final ones. */
  state: 'running' | 'completed' | 'failed' | 'unknown';
  /** The whole answer, unchanged. */
  raw: unknown;
}

/** Every operation of the platform except user management. All methods throw {@link PlatformError}. */
@Injectable()
export class PlatformClient {
  constructor(
    private readonly http: PlatformHttp,
    private readonly contract: Contract,
  ) {}

  createSession(body: CreateTherapySessionRequest): Promise<{ sessionId: string }> {
    const call = { operation: 'createSession', body } as const;
    return this.http.call(call, (answer) => ({ sessionId: answer.requiredId('sessionId') }));
  }

  getSession(sessionId: string, options: CallOptions = {}): Promise<SessionAnswer> {
    return this.session('getSession', sessionId, options);
  }

  /** Changes a session. Absent fields stay unchanged. */
  updateSession(sessionId: string, body: UpdateTherapySessionRequest): Promise<SessionAnswer> {
    return this.session('updateSession', sessionId, { body });
  }

  /** Adds or reprocesses note templates (deprecated by the spec in favour of `updateSession`). */
  updateSessionTemplates(sessionId: string, noteTemplateIds: string[]): Promise<SessionAnswer> {
    return this.session('updateSessionTemplates', sessionId, { body: { noteTemplateIds } });
  }

  /** @param options an answer that names another session than `expectedSessionId`, if that is known, is unreadable */
  getProcessingSession(
    processingId: string,
    { expectedSessionId, ...options }: CallOptions & { expectedSessionId?: string | undefined } = {},
  ): Promise<ProcessingSessionAnswer> {
    return this.http.call({ operation: 'getProcessingSession', parameters: { processingId }, ...options }, (answer) => {
      const named = answer.locates('sessionId') ? answer.requiredId('sessionId') : undefined;
      if (named !== undefined && (expectedSessionId ?? named) !== named)
        answer.unreadableAt('sessionId', "another session's id");
      const session = answer.locates('session') ? sessionIn(answer, named ?? expectedSessionId) : undefined;
      return { sessionId: named ?? session?.sessionId, session, raw: answer.body };
    });
  }

  submitComplianceJob(body: SubmitComplianceJobRequest): Promise<{ jobId: string }> {
    const call = { operation: 'submitComplianceJob', body } as const;
    return this.http.call(call, (answer) => ({ jobId: answer.requiredId('jobId') }));
  }

  getComplianceJob(jobId: string, options: CallOptions = {}): Promise<ComplianceJob> {
    const { states } = this.contract.operations.getComplianceJob;
    return this.http.call({ operation: 'getComplianceJob', parameters: { jobId }, ...options }, (answer) => {
      const raw = answer.body;
      if (!states || !answer.locates('state')) return { state: 'unknown', raw };
      const state = answer.requiredText('state');
      if (states.completed.includes(state)) return { state: 'completed', raw };
      return { state: states.failed.includes(state) ? 'failed' : 'running', raw };
    });
  }

  /** Requests a URL to which a file can be sent. */
  uploadTarget(
    operation: 'recordingUploadUrl' | 'complianceUploadUrl',
    file: UploadFile,
    options: CallOptions = {},
  ): Promise<UploadAddressResponse> {
    const { method = 'PUT', headers = {} } = this.contract.operations[operation].upload ?? {};
    return this.http.call({ operation, parameters: file, ...options }, (answer) => ({
      uploadUrl: answer.requiredUrl('uploadUrl'),
      url: answer.requiredUrl('fileUrl'),
      method,
      // A signed URL accepts only the headers that it was signed with, which only the contract knows.
      headers: fillHeaders({ 'content-type': '{contentType}', ...headers }, file),
    }));
  }

  /** Fetches the single-use token that opens the recorder. @param userId of the provider on the platform */
  initiateAuth(userId: string, options: CallOptions = {}): Promise<string> {
    const call = { operation: 'initiateAuth', body: { userId }, ...options } as const;
    return this.http.call(call, (answer) => answer.requiredText('otpToken'));
  }

  private session(
    operation: 'getSession' | 'updateSession' | 'updateSessionTemplates',
    sessionId: string,
    more: CallOptions & { body?: object },
  ): Promise<SessionAnswer> {
    const call = { operation, parameters: { sessionId }, ...more };
    return this.http.call(call, (answer) => sessionIn(answer, sessionId));
  }
}

/** @param expectedId the session that the answer must be about, if that is known */
function sessionIn(answer: PlatformAnswer, expectedId: string | undefined): SessionAnswer {
  const reading = readSession(answer.value('session'));
  if ('fault' in reading) return answer.unreadableAt('session', 'no Session', reading.fault);
  const { session } = reading;
  // Otherwise the notes of one client could be stored for another.
  if ((expectedId ?? session.sessionId) !== session.sessionId)
    answer.unreadableAt('session', "another session's id", '/sessionId');
  return session;
}
