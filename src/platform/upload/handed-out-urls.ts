import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { Fingerprints } from '../../vault/fingerprints.js';

/** The purpose of a file. A URL is accepted only for its own. */
export type FileKind = 'recording' | 'compliance';

/**
 * The file URLs that the platform returned to us. They are accepted without a check of their host. Only their
 * fingerprints are stored.
 */
@Injectable()
export class HandedOutUrls {
  constructor(
    private readonly database: Database,
    private readonly fingerprints: Fingerprints,
  ) {}

  async remember(kind: FileKind, url: string): Promise<void> {
    await this.database.pool.query(
      `INSERT INTO handed_out_urls (fingerprint) VALUES ($1)
       ON CONFLICT (fingerprint) DO UPDATE SET handed_out_at = now()`,
      [this.fingerprints.of(purposeOf(kind), url)],
    );
  }

  /** Returns the URLs that were handed out. */
  async known(kind: FileKind, urls: readonly string[]): Promise<ReadonlySet<string>> {
    if (urls.length === 0) return new Set();
    const prints = new Map(urls.map((url) => [this.fingerprints.hex(purposeOf(kind), url), url]));
    const { rows } = await this.database.pool.query<{ fingerprint: Buffer }>(
      'SELECT fingerprint FROM handed_out_urls WHERE fingerprint = ANY ($1::bytea[])',
      [[...prints.keys()].map((hex) => Buffer.from(hex, 'hex'))],
    );
    return new Set(rows.flatMap(({ fingerprint }) => prints.get(fingerprint.toString('hex')) ?? []));
  }
}

const purposeOf = (kind: FileKind): string => `handed-out-${kind}`;
