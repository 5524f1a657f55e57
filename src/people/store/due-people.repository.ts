import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { LOCKS } from '../../database/advisory-locks.js';
import { PrismaService } from '../../database/prisma.service.js';
import { isDatabaseUnavailable, isStatementTimeout } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import { USER_MANAGEMENT } from '../../platform/pauses/apis.js';
import type { Pause } from '../../platform/pauses/pause-row.js';
import { type Gate, gateOf, isProbed } from '../../platform/pauses/pause-rule.js';
import { PausesRepository } from '../../platform/pauses/pauses.repository.js';
import { type DueRow, QUEUE_LENGTH } from '../../queue/work/feeder.js';
import { Sending } from '../../sending/sending.js';
import { isReading } from '../rules/next-step.js';
import { OPERATIONS, type Operation } from '../rules/person.js';
import { DependentsRepository } from './dependents.repository.js';
import { PeopleRepository } from './people.repository.js';

/** How often to look for people who were left waiting. */
const SWEEP_MS = 10_000;

/** A person that is due. */
interface Due extends DueRow {
  urgent: boolean;
  isRefused: boolean;
  hasEmail: boolean;
}

const FIELDS = `p.id, p.urgent, p.step, p.due_at AS "dueAt", p.refused_at IS NOT NULL AS "isRefused",
  p.email_fingerprint IS NOT NULL AS "hasEmail"`;

/** SQL condition: no call is made for the people of an import, because it is paused, or withdraws some of them. */
export const isStandingStill = (importId: string): string =>
  `EXISTS (SELECT FROM imports i WHERE i.id = ${importId} AND (i.state = 'paused' OR i.withdraws))`;

/** SQL of the first due people of each step. @param condition of an index on step and time */
const firstOf = (condition: string): string => `
  SELECT d.* FROM unnest($1::text[]) AS s(step) CROSS JOIN LATERAL (
    SELECT ${FIELDS} FROM people p WHERE p.step = s.step AND ${condition} AND p.due_at IS NOT NULL AND p.due_at <= now()
    ORDER BY p.due_at LIMIT ${QUEUE_LENGTH}) AS d`;

/**
 * The first urgent people, then the first others of each import and of none. Each import is read by itself, so that hundreds of thousands of people of
 * a paused one do not stand in front of the others. The imports are those that the index of due people names.
 */
export const DUE = `
  (${firstOf('p.urgent')} ORDER BY d."dueAt" LIMIT ${QUEUE_LENGTH})
  UNION ALL
  (WITH RECURSIVE named(id) AS (
    (SELECT import_id FROM people WHERE due_at IS NOT NULL AND import_id IS NOT NULL ORDER BY import_id LIMIT 1)
    UNION ALL
    SELECT (SELECT import_id FROM people WHERE import_id > named.id AND import_id IS NOT NULL AND due_at IS NOT NULL ORDER BY import_id LIMIT 1)
    FROM named WHERE named.id IS NOT NULL),
  open AS (
    SELECT id FROM named WHERE id IS NOT NULL AND NOT ${isStandingStill('named.id')})
  SELECT * FROM (
    ${firstOf('p.import_id IS NULL AND NOT p.urgent')}
    UNION ALL
    SELECT e.* FROM open CROSS JOIN LATERAL (${firstOf('p.import_id = open.id AND p.import_id IS NOT NULL AND NOT p.urgent')}) AS e) AS d
  ORDER BY d."dueAt" LIMIT ${QUEUE_LENGTH})`;

/** Finds the people whose calls may go out now. */
@Injectable()
export class DuePeopleRepository {
  private readonly log = new Logger(DuePeopleRepository.name);
  private sweepAtMs = 0;

  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly pauses: PausesRepository,
    private readonly sending: Sending,
    private readonly clock: Clock,
  ) {}

  /**
   * A round of the feeder: wakes people who may go on, then finds those that are due.
   *
   * @returns up to 50 urgent people and 50 others, each the longest due first, of operations that may be called
   */
  async round(): Promise<DueRow[]> {
    const [{ at, isHeld, hasEvents }] = await this.prisma.$queryRawUnsafe<
      [{ at: Date; isHeld: boolean; hasEvents: boolean }]
    >(`SELECT clock_timestamp() AS at, ${this.sending.heldSql} AS "isHeld",
         EXISTS (SELECT FROM dependent_requeues) AS "hasEvents"`);
    const nowMs = this.clock.monotonicMs();
    const isSweep = nowMs >= this.sweepAtMs;
    if (isSweep) this.sweepAtMs = nowMs + SWEEP_MS;
    if (hasEvents || isSweep) await this.wake(isSweep);
    return this.due(at, isHeld);
  }

  /** One process at a time, because two would only wait for each other's locks. */
  private async wake(isSweep: boolean): Promise<void> {
    try {
      await this.prisma.transaction(async (tx) => {
        const [lock] = await tx.$queryRaw<
          [{ held: boolean }]
        >`SELECT pg_try_advisory_xact_lock(${LOCKS.roundOfPeople}) AS held`;
        if (!lock.held) return;
        await this.people.decideAll(tx, await this.dependents.next(tx));
        if (isSweep) await this.people.decideAll(tx, await this.dependents.overlooked(tx));
      });
    } catch (error) {
      // Someone locks a person for long. The next round tries again.
      if (isStatementTimeout(error)) return;
      if (isDatabaseUnavailable(error)) throw error;
      await this.wakeEach();
    }
  }

  /** Decides about each person by itself, so that one that throws stops no other. The sweep finds whom a crash leaves out. */
  private async wakeEach(): Promise<void> {
    const ids = await this.prisma.transaction((tx) => this.dependents.next(tx));
    for (const id of ids) {
      await this.prisma
        .transaction((tx) => this.people.decideAll(tx, [id]))
        .catch((error: unknown) =>
          this.log.error({ msg: 'a person could not be woken', person: id, ...errorTrace(error) }),
        );
    }
  }

  private async due(now: Date, isHeld: boolean): Promise<Due[]> {
    const pauses = await this.pauses.read();
    const operations = OPERATIONS.filter((operation) => !isHeld || isReading(operation));
    const at = (gate: Gate) => operations.filter((operation) => gateOf(pauses, operation, now) === gate);
    // Only one person goes while a probe decides, because the others would be refused and use up the limiter.
    if (isProbed(pauses.get(USER_MANAGEMENT) as Pause)) return probeAmong(await this.find(at('probe')));
    const probes: Due[] = [];
    for (const operation of at('probe')) probes.push(...probeAmong(await this.find([operation])));
    return [...probes, ...(await this.find(at('open')))];
  }

  /** The first due people of some operations. */
  private async find(operations: readonly Operation[]): Promise<Due[]> {
    return operations.length === 0 ? [] : this.prisma.$queryRawUnsafe<Due[]>(DUE, operations);
  }
}

/** The best person to probe with: one that was not refused before, and one with an email, whose lost create can be looked up. */
function probeAmong(due: readonly Due[]): Due[] {
  const rank = ({ isRefused, hasEmail, urgent }: Due): number =>
    (isRefused ? 4 : 0) + (hasEmail ? 0 : 2) + (urgent ? 0 : 1);
  const [best] = [...due].sort((one, other) => rank(one) - rank(other));
  return best ? [{ ...best, urgent: true }] : [];
}
