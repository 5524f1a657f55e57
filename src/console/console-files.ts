import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { projectPath } from '../config/version.js';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

class ConsoleFile {
  private compressed: Buffer | undefined;

  constructor(
    private readonly type: string,
    private readonly bytes: Buffer,
  ) {}

  /** Answers with the file, compressed for clients that accept it. */
  send({ headers }: FastifyRequest, reply: FastifyReply): void {
    reply.header('content-type', this.type).header('vary', 'accept-encoding');
    if (!/\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))) return void reply.send(this.bytes);
    this.compressed ??= gzipSync(this.bytes);
    reply.header('content-encoding', 'gzip').send(this.compressed);
  }
}

/** The files of the built console, read once, so that no path of a request reaches the file system. */
@Injectable()
export class ConsoleFiles {
  private readonly files = new Map<string, ConsoleFile>();

  constructor() {
    const folder = projectPath('dist/console');
    const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
    for (const name of names) {
      const type = TYPES[path.extname(name)];
      if (type === undefined) continue;
      this.files.set(name.replaceAll(path.sep, '/'), new ConsoleFile(type, readFileSync(path.join(folder, name))));
    }
  }

  /** @param name its path in the folder, such as `index.html`; the name of an asset holds a hash of its content */
  get(name: string): ConsoleFile | undefined {
    return this.files.get(name);
  }
}
