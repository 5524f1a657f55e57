import { randomUUID } from 'node:crypto';
import {
  chownSync,
  closeSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PostgresHome } from './embedded-postgres-home.js';
import { withFileLock } from './embedded-postgres-lock.js';
import { processRealm } from './embedded-postgres-realm.js';

const BEAT_MS = 2_000;
/** Milliseconds without a beat, by the waiting process's own clock, after which another realm's claim is taken over. */
const SILENT_MS = 10_000;
const LOOK_MS = 100;
/** Of several realms that take over at once the last one has it; by then each of them has written. */
const SETTLE_MS = 500;

/**
 * The right of one realm (the processes that see each other's numbers) to a server's folder. Two containers that share
 * it take each other's processes for dead: who is there is told by a file that those who hold the server keep touching.
 * Within a realm everybody has the claim, and the lock decides.
 */
export class HomeClaim {
  private readonly file: string;
  private readonly realm = processRealm();
  private timer: NodeJS.Timeout | undefined;
  /** Called at each beat for as long as another realm has the claim: it took it over, for none was heard of here. */
  onLost: () => void = () => {};

  constructor(
    private readonly home: PostgresHome,
    private readonly log: (line: string) => void = () => {},
  ) {
    this.file = path.join(home.folder, 'in-use');
  }

  /**
   * Runs `work` while this process alone, of all on this machine and in any other realm, has to do with the server, and
   * keeps the claim from then on. Waits for its own realm's processes, and for the next beat of another realm.
   *
   * @throws Error, one sentence, when that beat comes
   */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    await this.take();
    return withFileLock(path.join(this.home.folder, 'lock'), async () => {
      await this.take(); // whoever had the lock may have given it up
      return work();
    });
  }

  private async take(): Promise<void> {
    let seen: Claim | undefined;
    let seenAt = 0;
    while (!this.beat()) {
      const found = read(this.file);
      if (!found || found.realm === this.realm) continue;
      if (!seen) {
        [seen, seenAt] = [found, performance.now()];
        this.log(`another container or machine used ${this.home.folder}: waiting for a sign of it in ${this.file}`);
      }
      if (found.realm !== seen.realm || found.touchedAt !== seen.touchedAt) throw this.inUse();
      if (performance.now() - seenAt >= SILENT_MS) {
        this.write((draft) => renameSync(draft, this.file));
        await delay(SETTLE_MS);
        seen = undefined;
      } else await delay(LOOK_MS);
    }
    this.timer ??= setInterval(() => this.keep(), BEAT_MS).unref();
  }

  /** Says nothing any more: others of this realm may still hold the server. */
  leave(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Lets another realm have the folder at once: the server is stopped. To be called from `alone`. */
  giveUp(): void {
    this.leave();
    if (read(this.file)?.realm === this.realm) rmSync(this.file, { force: true });
  }

  private keep(): void {
    let kept = true;
    try {
      kept = this.beat();
    } catch {
      // A file system that fails now is the server's trouble, too; the next beat comes.
    }
    if (!kept) this.onLost();
  }

  /** A sign of life. @returns false when another realm has the claim */
  private beat(): boolean {
    const found = read(this.file);
    if (!found) return this.write((draft) => linkSync(draft, this.file));
    if (found.realm !== this.realm) return false;
    try {
      utimesSync(this.file, new Date(), new Date());
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // given up just now: the next one writes it
    }
    return true;
  }

  /** The file appears whole, or not at all. @returns whether it did */
  private write(publish: (draft: string) => void): boolean {
    const draft = `${this.file}.${randomUUID()}`;
    writeFileSync(draft, this.realm, { mode: 0o600 });
    try {
      if (this.home.user) chownSync(draft, this.home.user.uid, this.home.user.gid);
      publish(draft);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return read(this.file)?.realm === this.realm;
    } finally {
      rmSync(draft, { force: true });
    }
  }

  private inUse(): Error {
    return new Error(
      `The embedded PostgreSQL in ${this.home.folder} is in use from another container or machine, which keeps touching ${this.file}: stop that one, or set DATA_DIR to a folder of this one's own or DATABASE_URL to a PostgreSQL that both may use.`,
    );
  }
}

interface Claim {
  readonly realm: string;
  readonly touchedAt: number;
}

/** Opened anew each time, which makes a network file system look at the server's copy. */
function read(file: string): Claim | undefined {
  let opened: number;
  try {
    opened = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
  try {
    return { realm: readFileSync(opened, 'utf8'), touchedAt: fstatSync(opened).mtimeMs };
  } finally {
    closeSync(opened);
  }
}
