import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import type { Principal } from '../identity/scopes.js';

/** An event of a stream; `undefined` in its place is a comment, which keeps an idle connection open. */
export type ServerSentEvent = { id?: string; event: string; data: object } | undefined;

/** Milliseconds after which an idle stream sends a comment, so that no proxy closes it. */
export const KEEP_ALIVE_MS = 15_000;

/** Seconds after which a reader that was refused may try again. */
const RETRY_SECONDS = 5;

/** Answers with server-sent events (WHATWG HTML §9.2): so many streams at once for each key, in this process. */
@Injectable()
export class EventStreams {
  private readonly open = new Map<string, number>();

  constructor(private readonly env: Env) {}

  /** Sends a stream until the connection ends. @throws {Problem} 429 `too-many-streams`, before `events` is called */
  async send(
    reply: FastifyReply,
    { id }: Principal,
    events: () => AsyncIterable<ServerSentEvent> | Promise<AsyncIterable<ServerSentEvent>>,
  ): Promise<void> {
    const open = this.open.get(id) ?? 0;
    if (open >= this.env.EVENT_STREAMS_PER_KEY) {
      const detail = `This key has ${open} streams of events open, and may have no more; close one, or share it among its readers.`;
      throw new Problem(429, 'too-many-streams', detail, { retryAfterSeconds: RETRY_SECONDS });
    }
    if (reply.raw.closed) return;
    this.open.set(id, open + 1);
    reply.raw.once('close', () => this.release(id));
    const stream = Readable.from(textOf(await events()), { objectMode: false });
    await reply.header('content-type', 'text/event-stream').header('x-accel-buffering', 'no').send(stream);
  }

  private release(id: string): void {
    const left = (this.open.get(id) ?? 1) - 1;
    if (left > 0) this.open.set(id, left);
    else this.open.delete(id);
  }
}

async function* textOf(events: AsyncIterable<ServerSentEvent>): AsyncGenerator<string> {
  for await (const sent of events) {
    const id = sent?.id === undefined ? '' : `id: ${sent.id}\n`;
    yield sent ? `${id}event: ${sent.event}\ndata: ${JSON.stringify(sent.data)}\n\n` : ': still here\n\n';
  }
}
