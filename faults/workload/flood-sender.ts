import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

/** The request that a flood repeats. */
export interface FloodRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The flood that a thread sends to a process. */
export interface FloodPlan {
  readonly port: number;
  readonly connections: number;
  /** The requests that each connection repeats, one after the other. */
  readonly requests: readonly FloodRequest[];
  /** The bytes of each body that are sent before its sender stalls; undefined if requests are complete. */
  readonly stallsAfter?: number;
}

const PART = Buffer.alloc(64 * 1024, ' ');
const statuses: Record<string, number> = {};
let stopped = false;

const count = (status: string) => {
  statuses[status] = (statuses[status] ?? 0) + 1;
};

/** Sends one complete request, and reads its answer. */
function send(agent: Agent, port: number, { method, path, headers, body }: FloodRequest): Promise<void> {
  return new Promise((resolve) => {
    const sent = request({ agent, port, host: '127.0.0.1', method, path, headers }, (answer) => {
      count(String(answer.statusCode));
      answer.resume().once('close', resolve);
    });
    sent.once('error', () => {
      count('error');
      setTimeout(resolve, 10);
    });
    sent.end(body);
  });
}

/** Sends the start of a body, and stalls until its connection closes. */
function stall(port: number, { method, path, headers, body = '' }: FloodRequest, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let left = bytes;
    const fill = () => {
      while (left > 0 && !stopped) {
        left -= PART.length;
        if (!socket.write(PART)) return;
      }
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n${body}`);
    socket.on('drain', fill).once('data', (answer: Buffer) => count(String(answer).slice(9, 12)));
    socket.on('error', () => undefined).once('close', () => resolve());
    fill();
    void whenStopped().then(() => socket.destroy());
  });
}

async function whenStopped(): Promise<void> {
  while (!stopped) await delay(100);
}

async function flood({ port, connections, requests, stallsAfter }: FloodPlan): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const one = async (first: number) => {
    for (let at = first; !stopped; at += 1) {
      const next = requests[at % requests.length] as FloodRequest;
      if (stallsAfter === undefined) await send(agent, port, next);
      else await stall(port, next, stallsAfter);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, at) => one(at)));
  agent.destroy();
}

parentPort?.once('message', () => {
  stopped = true;
});
void flood(workerData as FloodPlan).then(() => parentPort?.postMessage(statuses));
