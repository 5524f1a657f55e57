import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/**
 * SHA-256 of a body that passes by in chunks. A multipart boundary is left out of it: clients draw a new one for every
 * attempt, and the form is the same.
 */
export class BodyDigest {
  private readonly hash: Hash = createHash('sha256');
  private readonly boundary: Buffer;
  private tail: Buffer = Buffer.alloc(0);

  /** @param contentType of the body */
  constructor(contentType: string | undefined) {
    const match = /^multipart\/.*;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType ?? '');
    this.boundary = Buffer.from(match?.[1] ?? match?.[2] ?? '', 'latin1');
  }

  update(chunk: Buffer): void {
    if (this.boundary.length === 0) {
      this.hash.update(chunk);
      return;
    }
    let rest = this.tail.length > 0 ? Buffer.concat([this.tail, chunk]) : chunk;
    for (let at = rest.indexOf(this.boundary); at >= 0; at = rest.indexOf(this.boundary)) {
      this.hash.update(rest.subarray(0, at));
      rest = rest.subarray(at + this.boundary.length);
    }
    // A boundary may go on in the next chunk.
    const kept = Math.min(rest.length, this.boundary.length - 1);
    this.hash.update(rest.subarray(0, rest.length - kept));
    this.tail = Buffer.from(rest.subarray(rest.length - kept));
  }

  /** The digest in hex; nothing may come after it. */
  end(): string {
    return this.hash.update(this.tail).digest('hex');
  }
}

/**
 * Digests a request's body alongside its reader, at the reader's pace.
 *
 * @returns answers the digest once the body was read to its end, undefined before
 */
export function digestAlongside(body: IncomingMessage): () => string | undefined {
  const digest = new BodyDigest(body.headers['content-type']);
  // Without this the listener would start the flow before the reader is there.
  body.pause();
  body.on('data', (chunk: Buffer) => digest.update(chunk));
  let result: string | undefined;
  body.once('end', () => {
    result = digest.end();
  });
  return () => result;
}

/** Reads a body to its end and digests it. */
export async function digestOf(body: IncomingMessage): Promise<string> {
  const digest = new BodyDigest(body.headers['content-type']);
  for await (const chunk of body) digest.update(chunk as Buffer);
  return digest.end();
}
