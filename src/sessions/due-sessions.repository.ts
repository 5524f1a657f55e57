import { Injectable } from '@nestjs/common';
import { PrismaService } from '../database/prisma.service.js';
import { Contract } from '../platform/contract/contract.js';
import type { Gate } from '../platform/pauses/pause-rule.js';
import { type DueRow, QUEUE_LENGTH } from '../queue/work/feeder.js';
import { Sending } from '../sending/sending.js';
import { CallGate } from './fetch/call-gate.js';
import { ProcessingsRepository } from './processing/processings.repository.js';

/** SQL of the first due sessions of the platform, the longest due first. */
const first = (urgent: boolean) => `(SELECT id, ${urgent} AS urgent FROM sessions
  WHERE ${urgent ? '' : 'NOT '}urgent AND due_at <= now() AND session_id IS NOT NULL ORDER BY due_at LIMIT $1)`;
const FETCHES = `${first(true)} UNION ALL ${first(false)}`;

/**
 * SQL of the requests that are due, to be sent ($2) or without an answer in time, and of the sessions whose end has waited too
 * long for an answer: no call is made for these.
 */
const OTHERS = `
  (SELECT id, TRUE AS urgent FROM sessions
   WHERE state = 'Requested' AND due_at <= now() AND (attempted_at IS NOT NULL OR $2) ORDER BY due_at LIMIT $1)
  UNION ALL (SELECT id, TRUE FROM sessions WHERE publish_end_by <= now() ORDER BY publish_end_by LIMIT $1)`;

const lengthOf = (gate: Gate) => (gate === 'probe' ? 1 : QUEUE_LENGTH);

/** Finds the sessions about which something may be done now. */
@Injectable()
export class DueSessionsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly contract: Contract,
    private readonly gate: CallGate,
    private readonly sending: Sending,
    private readonly processings: ProcessingsRepository,
  ) {}

  /** @returns requests first, then ends to be published, fetches because of events, those of all since a given time, lookups */
  async due(): Promise<DueRow[]> {
    const gates = await this.gate.gates('getSession', 'createSession', 'getProcessingSession');
    const of = (operation: keyof typeof gates): Gate =>
      this.contract.canCall(operation) ? gates[operation] : 'closed';
    const [fetch, send, lookUp] = [of('getSession'), of('createSession'), of('getProcessingSession')];
    const [{ isHeld }] = await this.prisma.$queryRawUnsafe<[{ isHeld: boolean }]>(
      `SELECT ${this.sending.heldSql} AS "isHeld"`,
    );
    const others = await this.prisma.$queryRawUnsafe<DueRow[]>(OTHERS, lengthOf(send), !isHeld && send !== 'closed');
    const fetches = fetch === 'closed' ? [] : await this.prisma.$queryRawUnsafe<DueRow[]>(FETCHES, lengthOf(fetch));
    const lookups = lookUp === 'closed' ? [] : await this.processings.due(lengthOf(lookUp));
    return [...others, ...fetches, ...lookups];
  }
}
