import { Injectable } from '@nestjs/common';
import { Problem } from '../../http/problem/problem.js';
import { SessionsClient } from '../../platform/clients/sessions-client.js';
import { platformProblem } from '../../platform/contract/platform-problem.js';
import { SessionReader } from './session-reader.js';

/** Where a session's recording can be heard for a while; the address is never stored. */
@Injectable()
export class RecordingUrl {
  constructor(
    private readonly reader: SessionReader,
    private readonly sessions: SessionsClient,
  ) {}

  /**
   * Asks the platform now.
   *
   * @throws {Problem} 404 `unknown-session`, `no-recording`, `not-on-platform`; 501 `not-configured`; 503; 504
   */
  async fetch(id: string, signal: AbortSignal): Promise<string> {
    const { session_id: sessionId } = await this.reader.find(id);
    if (sessionId === null) throw noRecording();
    const session = await this.sessions.getSession(sessionId, { signal }).catch((error: unknown) => {
      throw platformProblem(error, 'this session');
    });
    if (!session.recordingUrl) throw noRecording();
    return session.recordingUrl;
  }
}

function noRecording(): Problem {
  return new Problem(404, 'no-recording', 'The platform has no recording of this session.');
}
