import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Bytes that are sent repeatedly, so that a large body costs its sender almost nothing. */
const CHUNK = Buffer.alloc(256 * 1024, 'sound of a session ');
const run = promisify(execFile);

interface UploadAnswer {
  status: number;
  body: string;
}

/** Starts a POST with a length, without sending its body. */
export function beginUpload(url: string, length: number, headers: Record<string, string> = {}): ClientRequest {
  return request(url, { method: 'POST', agent: false, headers: { ...headers, 'content-length': length } });
}

/** Writes this many bytes at the pace of the receiver. @param onWritten called with the number of bytes written so far */
export async function writeBytes(
  sending: ClientRequest,
  count: number,
  onWritten: (bytes: number) => void = () => {},
): Promise<void> {
  for (let left = count; left > 0; left -= CHUNK.length) {
    const more = sending.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK);
    onWritten(count - left + Math.min(left, CHUNK.length));
    if (!more) await once(sending, 'drain');
  }
}

/** Waits for the answer to a request. */
export async function answerTo(sending: ClientRequest): Promise<UploadAnswer> {
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') };
}

/** Sends a body of this many bytes. */
export async function uploadBytes(
  url: string,
  length: number,
  headers: Record<string, string> = {},
): Promise<UploadAnswer> {
  const sending = beginUpload(url, length, headers);
  const answer = answerTo(sending);
  await Promise.all([answer, writeBytes(sending, length).then(() => sending.end())]);
  return answer;
}

/** The current memory of a process, in MB (10⁶ bytes). */
export async function residentMb(pid: number): Promise<number> {
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]);
  return (Number(stdout.trim()) * 1024) / 1e6;
}

/** The maximum memory of a process during some work, in MB. */
export async function peakMbDuring<T>(pid: number, work: Promise<T>): Promise<{ peakMb: number; result: T }> {
  let peakMb = 0;
  let working = true;
  const watching = (async () => {
    while (working) {
      peakMb = Math.max(peakMb, await residentMb(pid));
      await delay(50);
    }
  })();
  try {
    const result = await work;
    return { peakMb, result };
  } finally {
    working = false;
    await watching;
  }
}
