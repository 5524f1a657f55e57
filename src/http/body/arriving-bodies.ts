import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Env } from '../../config/env.js';
import { Problem } from '../problem/problem.js';
import { isReadIntoMemory } from './body-policy.js';

type Limits = Pick<Env, 'BODY_TIMEOUT_SECONDS' | 'ARRIVING_BODIES_LIMIT'>;

/** A body that is on its way into memory. */
interface Arriving {
  bytes: number;
  /** Answers its sender, and takes no more of it. */
  refuse(problem: Problem): void;
}

/**
 * The bodies that are on their way into memory: each has to be there in time, and together they have so much room. When
 * it is full, whoever began first gives way: senders who stall can't keep out those who don't.
 */
export class ArrivingBodies {
  /** In the order in which they began. */
  private readonly arriving = new Set<Arriving>();
  private total = 0;

  constructor(private readonly limits: Limits) {}

  /** Bytes in memory of bodies that are not complete. */
  get bytes(): number {
    return this.total;
  }

  /** Counts a body while it arrives; its reader has to begin in the same turn of the event loop. */
  watch(payload: NodeJS.ReadableStream, refuse: (problem: Problem) => void): void {
    const body: Arriving = {
      bytes: 0,
      refuse: (problem) => {
        leave();
        refuse(problem);
      },
    };
    const count = (chunk: Buffer) => {
      body.bytes += chunk.length;
      this.total += chunk.length;
      this.makeRoom();
    };
    const leave = () => {
      clearTimeout(timer);
      payload.off('data', count).off('end', leave).off('close', leave);
      if (this.arriving.delete(body)) this.total -= body.bytes;
    };
    const timer = setTimeout(() => body.refuse(tooSlow()), this.limits.BODY_TIMEOUT_SECONDS * 1_000);
    this.arriving.add(body);
    payload.on('data', count).once('end', leave).once('close', leave);
  }

  private makeRoom(): void {
    for (const oldest of this.arriving) {
      if (this.total <= this.limits.ARRIVING_BODIES_LIMIT) return;
      oldest.refuse(noRoom());
    }
  }
}

/** The rest of the body never comes: the connection goes with the answer. */
const CLOSING = { connection: 'close' };

function tooSlow(): Problem {
  return new Problem(408, 'request-timeout', 'The body did not arrive in time; send it again.', { headers: CLOSING });
}

function noRoom(): Problem {
  const detail = 'Too many bodies are arriving at once, and this one was among the slowest; send it again.';
  return new Problem(503, 'busy', detail, { retryAfterSeconds: 1, headers: CLOSING });
}

/** Watches every body that is read into memory, and the rest of those that were answered before they were complete. */
export function installArrivingBodies(fastify: FastifyInstance, limits: Limits): ArrivingBodies {
  const bodies = new ArrivingBodies(limits);
  fastify.addHook('preParsing', (request, reply, payload, done) => {
    if (!request.raw.complete && isReadIntoMemory(request)) {
      bodies.watch(payload, (problem) => void reply.send(problem));
    }
    done(null, payload);
  });
  fastify.addHook('onResponse', (request, _reply, done) => {
    if (!request.raw.complete) cutLater(request.raw, limits.BODY_TIMEOUT_SECONDS);
    done();
  });
  return bodies;
}

/** Node reads the rest of a body that nobody reads, for as long as it takes. */
function cutLater(raw: IncomingMessage, seconds: number): void {
  const timer = setTimeout(() => raw.destroy(), seconds * 1_000);
  raw.once('close', () => clearTimeout(timer));
}
