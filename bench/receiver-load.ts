// Sends signed webhooks over raw keep-alive sockets. It gets an order as a message, and replies with its measurements.
import { randomUUID } from 'node:crypto';
import { createConnection, type Socket } from 'node:net';
import { signWebhook } from '../src/webhooks/receive/webhook-signature.js';
import { percentile } from './bench-row.js';

const CONNECTIONS = 64;

/** An order: the webhooks to send. */
export interface LoadOrder {
  port: number;
  secret: string;
  seconds: number;
  /** Requests per second, without waiting for answers; undefined: each connection sends the next one after an answer. */
  rate?: number;
  /** Number of requests to sign before the measurement, which ends when they are used up. */
  requests: number;
}

/** The measurements. */
export interface LoadReport {
  accepted: number;
  refused: number;
  seconds: number;
  /** Milliseconds from the time when each request was due until its answer. */
  p50: number;
  p99: number;
  worst: number;
}

function prepare({ port, secret, requests }: LoadOrder): Buffer[] {
  const timestamp = String(Date.now());
  return Array.from({ length: requests }, () => {
    const body = JSON.stringify({
      eventType: 'SESSION_PROCESSING_NOTES_COMPLETED',
      sessionId: randomUUID(),
      providerUserId: randomUUID(),
      partnerAppointmentId: randomUUID(),
      aiNotesEnabled: true,
    });
    const signature = signWebhook(secret, timestamp, Buffer.from(body));
    return Buffer.from(
      `POST /webhooks/platform HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
        `User-Agent: Service Webhook\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
        `x-service-signature: ${signature}\r\nx-service-timestamp: ${timestamp}\r\n\r\n${body}`,
    );
  });
}

const connect = (port: number) =>
  new Promise<Socket>((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket));
    socket.once('error', reject);
  });

const NO_CONTENT = Buffer.from('HTTP/1.1 204');

async function run(order: LoadOrder): Promise<LoadReport> {
  const requests = prepare(order);
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(order.port)));
  const waits: number[] = [];
  let accepted = 0;
  let refused = 0;
  let next = 0;
  const start = performance.now();
  const end = start + order.seconds * 1000;
  const idle: Socket[] = [];
  const due: number[] = [];

  await new Promise<void>((resolve) => {
    let open = 0;
    let over = false;
    const since = new Map<Socket, number>();
    const finish = () => {
      over = true;
      if (open === 0) resolve();
    };
    const send = (socket: Socket, dueAt: number) => {
      const request = requests[next];
      if (!request) return finish();
      next += 1;
      open += 1;
      since.set(socket, dueAt);
      socket.write(request);
    };
    const rest = (socket: Socket) => {
      const now = performance.now();
      if (over || now >= end) return finish();
      if (order.rate === undefined) return send(socket, now);
      const dueAt = due.shift();
      if (dueAt === undefined) idle.push(socket);
      else send(socket, dueAt);
    };
    for (const socket of sockets) {
      socket.on('error', finish);
      socket.on('data', (chunk) => {
        open -= 1;
        waits.push(performance.now() - (since.get(socket) ?? 0));
        if (chunk.subarray(0, NO_CONTENT.length).equals(NO_CONTENT)) accepted += 1;
        else refused += 1;
        rest(socket);
      });
    }
    if (order.rate === undefined) {
      for (const socket of sockets) send(socket, performance.now());
      return;
    }
    idle.push(...sockets);
    const everyMs = 1000 / order.rate;
    let dueAt = start;
    const tick = () => {
      for (; dueAt <= performance.now() && dueAt < end; dueAt += everyMs) {
        const socket = idle.pop();
        if (socket) send(socket, dueAt);
        else due.push(dueAt);
      }
      if (dueAt < end) setTimeout(tick, 1);
      else finish();
    };
    tick();
  });
  const seconds = (performance.now() - start) / 1000;
  for (const socket of sockets) socket.destroy();
  const worst = waits.reduce((most, wait) => Math.max(most, wait), 0);
  return { accepted, refused, seconds, p50: percentile(waits, 0.5), p99: percentile(waits, 0.99), worst };
}

process.on('message', (order: LoadOrder) => {
  void run(order).then((report) => process.send?.(report));
});
process.send?.({ ready: true });
