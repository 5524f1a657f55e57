import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A file of a web page as it is answered. */
export class StaticFile {
  private compressed: Buffer | undefined;

  constructor(
    private readonly type: string,
    private readonly bytes: Buffer,
  ) {}

  /** Answers with the file, compressed for whoever takes that. */
  send({ headers }: FastifyRequest, reply: FastifyReply): void {
    reply.header('content-type', this.type).header('vary', 'accept-encoding');
    if (!/\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))) return void reply.send(this.bytes);
    this.compressed ??= gzipSync(this.bytes);
    reply.header('content-encoding', 'gzip').send(this.compressed);
  }
}

/**
 * The files of a folder by their paths within it, read once: some megabytes at most, and no path of a request ever
 * reaches the file system.
 *
 * @param folder none are found where there is none
 */
export function readStaticFiles(folder: string): ReadonlyMap<string, StaticFile> {
  const served = namesIn(folder).flatMap((name): [string, StaticFile][] => {
    const type = TYPES[path.extname(name)];
    if (type === undefined) return [];
    return [[name.replaceAll(path.sep, '/'), new StaticFile(type, readFileSync(path.join(folder, name)))]];
  });
  return new Map(served);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
}
