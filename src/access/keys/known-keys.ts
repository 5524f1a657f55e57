import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { PrismaService } from '../../database/prisma.service.js';
import { failureCode } from '../../errors/error-trace.js';
import { hashOf } from './key-format.js';

/** How long a key or session that another process created may count as unknown. */
const RELOAD_MS = 5_000;

/**
 * The hashes of the keys and browser sessions that are probably valid, in memory. They decide only how a request is
 * counted: the database decides whether its key is valid.
 */
@Injectable()
export class KnownKeys implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(KnownKeys.name);
  private hashes = new Set<string>();
  /** Those that were seen to be valid since the last reload began, which may have missed them. */
  private recent = new Set<string>();
  private readonly admin: string | undefined;
  private cancelReload = (): void => undefined;
  private isStopped = false;

  constructor(
    { adminKey }: Env,
    private readonly clock: Clock,
    private readonly prisma: PrismaService,
  ) {
    this.admin = adminKey && hashOf(adminKey).toString('hex');
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.reload();
  }

  onModuleDestroy(): void {
    this.isStopped = true;
    this.cancelReload();
  }

  /** @param hash the SHA-256 of a key or session token, in hex */
  has(hash: string): boolean {
    return hash === this.admin || this.hashes.has(hash);
  }

  /** Remembers a key or session token that is valid. */
  add(shown: string): void {
    const hash = hashOf(shown).toString('hex');
    this.hashes.add(hash);
    this.recent.add(hash);
  }

  /** Forgets a key or session token that is not valid. */
  forget(shown: string): void {
    const hash = hashOf(shown).toString('hex');
    this.hashes.delete(hash);
    this.recent.delete(hash);
  }

  /** Reads the hashes, again and again. While that fails, the earlier ones count. */
  private async reload(): Promise<void> {
    const recent = new Set<string>();
    this.recent = recent;
    try {
      const rows = await this.prisma.$queryRaw<{ hash: string }[]>`
        SELECT encode(hash, 'hex') AS hash FROM api_keys
        WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
        UNION ALL SELECT encode(token_hash, 'hex') FROM browser_sessions WHERE ends_at > clock_timestamp()`;
      this.hashes = new Set([...rows.map(({ hash }) => hash), ...recent]);
    } catch (error) {
      this.log.warn(`the valid keys could not be reloaded, so new ones are limited by address: ${failureCode(error)}`);
    }
    if (!this.isStopped) this.cancelReload = this.clock.after(RELOAD_MS, () => void this.reload());
  }
}
