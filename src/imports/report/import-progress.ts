import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { pollUntil } from '../../http/request/poll-until.js';
import type { ImportResponse } from './import-view.js';
import { ImportsService } from './imports.service.js';

/** Milliseconds between two looks for a watcher; and the least rest after one, in times of what it took. */
const LOOK_MS = 500;
const LOOK_REST = 10;

/** Milliseconds after which a silent stream sends a comment, so that nothing between closes it. */
const SILENCE_MS = 15_000;

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

  /** A stream of `progress` events, one for each change, until the import ends. @throws {Problem} 404 */
  async stream(id: string, signal: AbortSignal): Promise<Readable> {
    const first = await this.imports.show(id);
    return Readable.from(this.events(first, signal), { objectMode: false });
  }

  private async *events(first: ImportResponse, signal: AbortSignal): AsyncGenerator<string> {
    let view = first;
    let tookMs = 0;
    let sent = '';
    let sentAt = performance.now();
    for (;;) {
      const data = JSON.stringify(view);
      if (data !== sent) yield `event: progress\ndata: ${data}\n\n`;
      else if (performance.now() - sentAt > SILENCE_MS) yield ': still here\n\n';
      if (data !== sent || performance.now() - sentAt > SILENCE_MS) sentAt = performance.now();
      sent = data;
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
