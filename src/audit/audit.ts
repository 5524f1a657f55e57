import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type pg from 'pg';
import { Clock } from '../config/clock.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { isDatabaseUnavailable } from '../errors/database-fault.js';
import { errorTrace } from '../errors/error-trace.js';
import { Problem } from '../http/problem/problem.js';
import { type Health, HealthIndicator, type Reason } from '../monitoring/health-indicator.js';
import { Fingerprints } from '../vault/fingerprints.js';
import { AuditRepository } from './audit.repository.js';
import {
  type Actor,
  type AuditRecord,
  AuditSubjects,
  callerOf,
  failedAuthentication,
  MAX_IDS,
  recordOf,
  type Subject,
  type SubjectKind,
  type SubjectRange,
  SYSTEM,
} from './audit-record.js';
import { GroupCommit } from './group-commit.js';
import { MinuteCounts } from './minute-counts.js';

/** Of entries that are stored outside a transaction: what arrives during a commit goes together in the next. */
const TOGETHER = {
  inFlight: 2,
  batch: { rows: 200, bytes: 1024 ** 2 },
  waiting: { rows: 5_000, bytes: 16 * 1024 ** 2 },
  deadlineMs: 5_000,
};

/** Bytes of an entry, about; and of one of its subjects. */
const ENTRY_BYTES = 500;
const SUBJECT_BYTES = 100;

/** Bytes of an entry about these subjects. */
const bytesOf = (subjects: AuditSubjects) => ENTRY_BYTES + subjects.kept().subjects.length * SUBJECT_BYTES;

/** How long a stream does not name a subject again. */
const REPEAT_MS = 60_000;

/** Outcome of an entry that is stored before data leaves. */
export const BEGUN = 'begun';

const RETRY_SECONDS = 5;
const FAILED: Reason = { code: 'audit-not-writable' };

/** Thrown when an entry cannot be stored: nothing is read or changed without one. */
export class AuditUnavailable extends Problem {
  constructor() {
    const detail = 'The audit log could not be written, so nothing was read or changed. Send the request again.';
    super('audit-unavailable', detail, { retryAfterSeconds: RETRY_SECONDS });
  }
}

/**
 * The log of who did and who saw what. The entry of a request begins with it, and code that decrypts a row names its
 * subject (`about`): the asynchronous context knows the request.
 */
@Injectable()
export class Audit implements OnModuleDestroy {
  private readonly log = new Logger(Audit.name);
  private readonly current = new AsyncLocalStorage<AuditRecord>();
  private readonly together: GroupCommit<AuditRecord>;
  /** Refusals of known callers, and of all others. */
  private readonly refusals: MinuteCounts<AuditRecord>;
  private readonly failures: MinuteCounts<AuditRecord>;
  private isFailing = false;

  constructor(
    private readonly prisma: PrismaService,
    private readonly entries: AuditRepository,
    private readonly fingerprints: Fingerprints,
    private readonly clock: Clock,
  ) {
    this.together = new GroupCommit<AuditRecord>(TOGETHER, {
      commit: (records) => this.append(this.prisma.pool, records),
      isUnavailable: isDatabaseUnavailable,
      now: () => clock.monotonicMs(),
    });
    this.refusals = new MinuteCounts(clock, (record, times) => this.commitCounted(record, times));
    this.failures = new MinuteCounts(clock, (record, times) => this.commitCounted(record, times));
  }

  /** Stores the refusals that were counted in this minute. */
  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.refusals.reportAll(), this.failures.reportAll()]);
  }

  /** Adds subjects to the current request, once they are known to exist. */
  about(kind: SubjectKind, ...ids: readonly (string | null | undefined)[]): void {
    this.current.getStore()?.subjects.add(kind, ...ids);
  }

  /** Adds what an answer shows of subjects, which may be ranges. */
  aboutAll(subjects: readonly (Subject | SubjectRange)[]): void {
    this.current.getStore()?.subjects.addAll(subjects);
  }

  /**
   * Stores the entry of the current request in the transaction of its change: both are committed, or neither. Without a
   * current request, it does nothing.
   *
   * @param outcome a more precise word than `ok`, if there is one
   * @throws {AuditUnavailable}
   */
  async store(tx: Tx, outcome = 'ok'): Promise<void> {
    const record = this.current.getStore();
    if (!record || record.stored === 'committed') return;
    record.outcome = outcome;
    await this.append(this.prisma.sql(tx), [record]);
    record.stored = 'with-change';
  }

  /** Commits the entry of the current request immediately, as streamed answers need. @throws {AuditUnavailable} */
  async commit(): Promise<void> {
    const record = this.current.getStore();
    if (record) await this.commitRecord(record);
  }

  /**
   * Commits the entry of the current request before a call that cannot be undone. A request that fails
   * afterwards leaves a second entry.
   *
   * @throws {AuditUnavailable}
   */
  async commitIntent(): Promise<void> {
    const record = this.current.getStore();
    if (record?.stored === 'no') await this.commitRecord(Object.assign(record, { outcome: BEGUN }));
  }

  /**
   * Records a streamed answer part by part: an entry about what a part shows is committed before the part leaves. The first
   * part is read immediately, and its entry is that of the request. A small part that only shows subjects named within the
   * last minute adds none.
   *
   * @param about the subjects of a part
   * @throws {AuditUnavailable}
   */
  async parts<T>(
    parts: AsyncIterable<T>,
    about: (part: T) => readonly (Subject | SubjectRange)[],
  ): Promise<AsyncIterable<T>> {
    const request = this.current.getStore();
    if (!request) return parts;
    const { subjects: usual } = request.subjects.kept();
    let named = new Set<string>();
    let namedUntilMs = 0;
    const record = async (part: T) => {
      const nowMs = this.clock.monotonicMs();
      if (nowMs >= namedUntilMs) [named, namedUntilMs] = [new Set(), nowMs + REPEAT_MS];
      const shown = about(part).filter(([, id]) => id);
      const isNew = shown.length > MAX_IDS || shown.some((subject) => !named.has(subject.join(' ')));
      if (!isNew && request.stored !== 'no') return;
      if (shown.length <= MAX_IDS) for (const subject of shown) named.add(subject.join(' '));
      const subjects = new AuditSubjects();
      subjects.addAll([...(usual as Subject[]), ...shown]);
      await this.commitRecord({ ...request, subjects, stored: 'no' });
      request.stored = 'committed';
    };
    const source = parts[Symbol.asyncIterator]();
    const first = await source.next();
    if (first.done) await this.commitRecord(request);
    else await record(first.value);
    return (async function* () {
      try {
        for (let next = first; !next.done; next = await source.next()) {
          if (next !== first) await record(next.value);
          yield next.value;
        }
      } finally {
        await source.return?.();
      }
    })();
  }

  /** Leaves no entry for the current request, because it shows no personal data. */
  skipEntry(): void {
    const record = this.current.getStore();
    if (record) record.stored = 'committed';
  }

  /**
   * Records what the service does without a request.
   *
   * @param action a word such as `retention.deliveries`
   * @param about subjects by their kinds
   * @param tx makes the entry stand or fall with what it records
   */
  async system(
    action: string,
    about: Partial<Record<SubjectKind, readonly string[]>>,
    outcome = 'ok',
    tx?: Tx,
  ): Promise<void> {
    const subjects = new AuditSubjects();
    for (const [kind, ids] of Object.entries(about)) subjects.add(kind as SubjectKind, ...ids);
    const record = { by: SYSTEM, action, subjects, outcome, stored: 'no' as const };
    if (tx) await this.append(this.prisma.sql(tx), [record]);
    else await this.commitRecord(record);
  }

  /** Records that a caller was refused before anything was looked up. @param outcome a problem's type */
  async deny(by: Actor, request: FastifyRequest, outcome: string): Promise<void> {
    await this.commitRefusal(this.failed(recordOf(by, request), request, outcome));
  }

  /** Counts a request without a valid key or session. @param source its address or network */
  countFailure(source: string): void {
    this.failures.count([source, failedAuthentication(source)], ['others', failedAuthentication('others')]);
  }

  /**
   * Commits the entry of the first refusal of its kind in a minute, with its details. Repetitions get one entry with their
   * number when the minute ends, because otherwise any key could fill the disk.
   *
   * @throws {AuditUnavailable}
   */
  async commitRefusal(record: AuditRecord): Promise<void> {
    const { by, action, outcome } = record;
    const kind = `${callerOf(by)} ${action} ${outcome}`;
    const alike = { by, action, outcome, subjects: new AuditSubjects(), stored: 'no' as const };
    const others = { ...alike, action: 'others', outcome: 'refused' };
    if (!this.refusals.isFirst([kind, alike], [callerOf(by), others])) return;
    await this.commitRecord(record).catch((error: unknown) => {
      this.refusals.forget(kind);
      throw error;
    });
  }

  /** Runs the work of a request whose entry it is. */
  run<T>(record: AuditRecord, work: () => T): T {
    return this.current.run(record, work);
  }

  /** Commits the entry of a request that ended well, unless it is stored. @throws {AuditUnavailable} */
  async commitRecord(record: AuditRecord): Promise<void> {
    if (record.stored !== 'no') return;
    await this.together.add(record, bytesOf(record.subjects)).catch(() => {
      throw new AuditUnavailable();
    });
    record.stored = 'committed';
  }

  /** The record of a failed request, to be stored again. If it has no subjects, it names the fingerprint of the path. */
  failed(record: AuditRecord, request: FastifyRequest, outcome: string): AuditRecord {
    if (record.subjects.isEmpty && Object.keys(request.params as object).length > 0) {
      const [path = ''] = request.originalUrl.split('?', 1);
      record.subjects.add('path', this.fingerprints.hex('audit-path', path));
    }
    return Object.assign(record, { outcome, stored: 'no' as const });
  }

  @HealthIndicator({ name: 'audit', needs: ['database'] })
  health(): Health {
    return this.isFailing ? { status: 'down', reasons: [FAILED] } : { status: 'ok' };
  }

  /** Keeps the number in the service's own log if the entry cannot be stored, because no caller waits for it. */
  private async commitCounted(record: AuditRecord, times: number): Promise<void> {
    await this.commitRecord({ ...record, outcome: `${record.outcome}, ${times} times` }).catch(() => {
      const { by, action, source, outcome } = record;
      const msg = 'rejected requests could not be recorded in the audit log';
      this.log.error({ msg, keyId: by.id, action, source, outcome, times });
    });
  }

  private async append(sql: Pick<pg.Pool, 'query'>, records: readonly AuditRecord[]): Promise<void> {
    try {
      await this.entries.append(sql, records);
      this.isFailing = false;
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      this.isFailing = true;
      this.log.error({ msg: 'an audit entry could not be stored', ...errorTrace(error) });
      throw new AuditUnavailable();
    }
  }
}
