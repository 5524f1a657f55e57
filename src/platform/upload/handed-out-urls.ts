import { Injectable } from '@nestjs/common';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import { Fingerprints } from '../../vault/fingerprints.js';

/** The purpose of a file. A URL is accepted only for its own. */
export type FileKind = 'recording' | 'compliance';

/** Fingerprints of the file URLs that the platform returned to us, which are accepted without a check of their host. */
@Injectable()
export class HandedOutUrls {
  constructor(
    private readonly prisma: PrismaService,
    private readonly fingerprints: Fingerprints,
  ) {}

  async remember(kind: FileKind, url: string): Promise<void> {
    await this.prisma.$executeRaw`INSERT INTO handed_out_urls (fingerprint) VALUES (${this.fingerprintOf(kind, url)})
      ON CONFLICT (fingerprint) DO UPDATE SET handed_out_at = excluded.handed_out_at`;
  }

  /** Returns the URLs that were handed out. */
  async known(kind: FileKind, urls: readonly string[]): Promise<ReadonlySet<string>> {
    const rowOf = (fingerprint: Uint8Array<ArrayBuffer>) =>
      this.prisma.handedOutUrl.findUnique({ where: { fingerprint } });
    const rows = await Promise.all(urls.map((url) => rowOf(this.fingerprintOf(kind, url))));
    return new Set(urls.filter((_url, at) => rows[at] !== null));
  }

  private fingerprintOf(kind: FileKind, url: string) {
    return toBytes(this.fingerprints.of(`handed-out-${kind}`, url));
  }
}
