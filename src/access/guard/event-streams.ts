import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { callerOf } from '../../audit/audit-record.js';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { preferredType } from '../../http/request/accept.js';
import type { Principal } from '../identity/scopes.js';
import { StreamedAnswers } from './streamed-answers.js';

/** An event of a stream. An id alone moves the position from which the reader resumes. */
type ServerSentEvent = { id?: string; event: string; data: object } | { id: string };

/** Events that are sent together; none at all are a comment, which keeps an idle connection open. */
export type SentTogether = readonly ServerSentEvent[];

/** How long a stream is idle before it sends a comment, so that no proxy closes it. */
export const KEEP_ALIVE_MS = 15_000;

/** `Retry-After` of a rejected reader. */
const RETRY_SECONDS = 5;

/** The body of a stream in OpenAPI. */
export const EVENT_STREAM = { 'text/event-stream': { schema: { type: 'string' } } };

/** True if the caller prefers a stream to a JSON document. */
export const prefersStream = (accept: string | undefined): boolean =>
  preferredType(accept, ['application/json', 'text/event-stream']) === 'text/event-stream';

/** Answers with server-sent events (WHATWG HTML §9.2), and limits how many streams each caller has open in this process. */
@Injectable()
export class EventStreams {
  /** How many are open, by caller. */
  private readonly open = new Map<string, number>();

  constructor(
    private readonly env: Env,
    private readonly answers: StreamedAnswers,
  ) {}

  /** Sends a stream until the connection ends. @throws {Problem} 429 `too-many-streams`, before `events` is called */
  async send(
    reply: FastifyReply,
    by: Principal,
    events: () => AsyncIterable<SentTogether> | Promise<AsyncIterable<SentTogether>>,
  ): Promise<void> {
    const caller = callerOf(by);
    const open = this.open.get(caller) ?? 0;
    if (open >= this.env.EVENT_STREAMS_PER_KEY) {
      const detail = `This caller has ${open} streams of events open, which is the maximum. Close one, or share it among its readers.`;
      throw new Problem('too-many-streams', detail, { retryAfterSeconds: RETRY_SECONDS });
    }
    if (reply.raw.closed) return;
    this.open.set(caller, open + 1);
    reply.raw.once('close', () => {
      const left = (this.open.get(caller) ?? 0) - 1;
      if (left > 0) this.open.set(caller, left);
      else this.open.delete(caller);
    });
    const text = textOf(await events());
    reply.header('content-type', 'text/event-stream').header('x-accel-buffering', 'no');
    await this.answers.send(reply, by, text);
  }
}

async function* textOf(events: AsyncIterable<SentTogether>): AsyncGenerator<string> {
  for await (const sent of events) yield sent.length === 0 ? ': still here\n\n' : sent.map(eventText).join('');
}

function eventText(sent: ServerSentEvent): string {
  const id = sent.id === undefined ? '' : `id: ${sent.id}\n`;
  return 'event' in sent ? `${id}event: ${sent.event}\ndata: ${JSON.stringify(sent.data)}\n\n` : `${id}\n`;
}
