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
  /** Milliseconds between two requests of a connection. */
  readonly pauseMs?: number;
  /** If bodies never end: what is sent of each before its sender stalls. Undefined if requests are complete. */
  readonly unfinished?: UnfinishedBody;
}

/** A body that arrives in parts and never ends. */
export interface UnfinishedBody {
  readonly bytes: number;
  /** Bytes of a part. */
  readonly part: number;
  /** Milliseconds between two parts. */
  readonly everyMs: number;
  /** True if each byte is a chunk of its own (RFC 9112 §7.1): a process that keeps chunks needs a hundred times the memory. */
  readonly inChunks?: boolean;
}

const CHUNK_OF_ONE = '1\r\n \r\n';
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
function stall(port: number, { method, path, headers, body = '' }: FloodRequest, slow: UnfinishedBody): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const part = Buffer.from((slow.inChunks ? CHUNK_OF_ONE : ' ').repeat(slow.part));
    let left = slow.bytes;
    const fill = async () => {
      while (left > 0 && !stopped && !socket.destroyed) {
        await delay(slow.everyMs);
        if (socket.writableNeedDrain) continue;
        left -= slow.part;
        socket.write(part);
      }
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n${body}`);
    socket.once('data', (answer: Buffer) => count(String(answer).slice(9, 12)));
    socket.on('error', () => undefined).once('close', () => resolve());
    void fill();
    void whenStopped().then(() => socket.destroy());
  });
}

async function whenStopped(): Promise<void> {
  while (!stopped) await delay(100);
}

async function flood({ port, connections, requests, pauseMs = 0, unfinished }: FloodPlan): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const one = async (first: number) => {
    for (let at = first; !stopped; at += 1) {
      const next = requests[at % requests.length] as FloodRequest;
      if (unfinished) await stall(port, next, unfinished);
      else await send(agent, port, next);
      if (pauseMs > 0) await delay(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, at) => one(at)));
  agent.destroy();
}

parentPort?.once('message', () => {
  stopped = true;
});
void flood(workerData as FloodPlan).then(() => parentPort?.postMessage(statuses));
