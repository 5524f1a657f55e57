import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { KEEP_ALIVE_MS, type ServerSentEvent } from '../../access/guard/event-streams.js';
import { pollUntil } from '../../http/request/waiting.js';
import type { ImportResponse } from './import-view.js';
import { ImportsService } from './imports.service.js';

/** Milliseconds between two looks for a watcher; and the least rest after one, in times of what it took. */
const LOOK_MS = 500;
const LOOK_REST = 10;

/** Live progress of imports, by waiting and by server-sent events (WHATWG HTML §9.2). */
@Injectable()
export class ImportProgress {
  constructor(private readonly imports: ImportsService) {}

  /** Shows an import once it has ended, or waits for a decision. @param seconds to wait at most @throws {Problem} 404 */
  async awaitRest(id: string, seconds: number, signal?: AbortSignal): Promise<ImportResponse> {
    // Counting many rows again and again would slow down the work that is waited for.
    if (seconds > 0) await pollUntil(seconds, () => this.imports.find(id), isAtRest, signal);
    return this.imports.show(id);
  }

  /** `progress` events, one for each change, until the import ends. @throws {Problem} 404 */
  async stream(id: string, signal: AbortSignal): Promise<AsyncGenerator<ServerSentEvent>> {
    return this.events(await this.imports.show(id), signal);
  }

  private async *events(first: ImportResponse, signal: AbortSignal): AsyncGenerator<ServerSentEvent> {
    let view = first;
    let tookMs = 0;
    let sent = '';
    let sentAt = performance.now();
    for (;;) {
      const shown = JSON.stringify(view);
      if (shown !== sent || performance.now() - sentAt > KEEP_ALIVE_MS) {
        yield shown === sent ? undefined : { event: 'progress', data: view };
        sentAt = performance.now();
      }
      sent = shown;
      if (signal.aborted || ['completed', 'cancelled', 'failed'].includes(view.state)) return;
      await delay(Math.max(LOOK_MS, tookMs * LOOK_REST), undefined, { signal }).catch(() => undefined);
      const begunAt = performance.now();
      view = await this.imports.show(first.id);
      tookMs = performance.now() - begunAt;
    }
  }
}

function isAtRest(view: Pick<ImportResponse, 'state'>): boolean {
  return view.state !== 'staging' && view.state !== 'running';
}
