import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Tx } from '../../database/prisma.service.js';
import { operationUrl, urlDigest } from '../contract/addresses.js';
import { Contract } from '../contract/contract.js';
import { factsOf, type OperationName } from '../contract/operations.js';
import { apiOf, keysOf } from './apis.js';
import type { Pause, Pauses } from './pause-row.js';
import {
  type Ending,
  gateOf,
  isProbed,
  judge,
  type PausingCall,
  pauseAfter,
  probing,
  type Verdict,
} from './pause-rule.js';
import { PausesRepository } from './pauses.repository.js';

/** How long a success proves that the platform answers at a base URL. */
const PROOF_MS = 60_000;

/** How exactly the time of a success is kept, because each change of it would make calls wait for each other. */
const STEP_MS = 500;

/** A call as its pauses see it. */
export interface JudgedCall extends PausingCall {
  operation: OperationName;
  /** The latest refusal of the same subject, if any, and whether it has failed because of it. */
  refused: { operation: string; code: number; at: Date; hasFailed: boolean } | null;
}

/** What an answer means, and the end of the pause of a 429. */
export interface Judged {
  verdict: Verdict;
  limitedUntil: Date | null;
  /** As they were before. */
  pauses: Pauses;
}

/** Keeps the pauses: lets calls out, and judges their answers by what is known of their operation. Lock the subject before. */
@Injectable()
export class CallJudge {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly pauses: PausesRepository,
  ) {}

  /**
   * Lets a call go out, unless calls pause. When their time is over, one call probes; no other goes before it is answered.
   *
   * @param answerMs after which it is surely answered
   * @returns the keys of the pauses that it probes; undefined if it must not go
   */
  async admit(
    tx: Tx,
    pauses: Pauses,
    operation: OperationName,
    now: Date,
    answerMs: number,
  ): Promise<string[] | undefined> {
    if (gateOf(pauses, operation, now) === 'open') return [];
    const keys = [apiOf(operation), operation];
    const locked = await this.pauses.lock(tx, keys);
    if (gateOf(locked, operation, now) === 'closed') return undefined;
    const probed = keys.map((key) => locked.get(key) as Pause).filter(isProbed);
    for (const pause of probed) await this.pauses.save(tx, probing(pause, now, answerMs));
    return probed.map(({ key }) => key);
  }

  /** Judges an answer and stores what it changes, which is nothing for most. */
  async judge(tx: Tx, call: JudgedCall, ending: Ending, now: Date): Promise<Judged> {
    const judged = this.judged(await this.pauses.read(tx), call, ending, now);
    if (judged.changed.length === 0) return judged;
    const locked = await this.pauses.lock(tx, [apiOf(call.operation), call.operation]);
    const certain = this.judged(locked, call, ending, now);
    for (const pause of certain.changed) await this.pauses.save(tx, pause);
    return certain;
  }

  private judged(pauses: Pauses, call: JudgedCall, ending: Ending, now: Date): Judged & { changed: Pause[] } {
    const { operation } = call;
    const verdict = this.verdictOf(pauses, call, ending, now);
    const after = (key: string) => pauseAfter(pauses.get(key) as Pause, verdict, call, ending, now);
    const api = after(apiOf(operation));
    const own = this.counted(after(operation), operation, verdict, now);
    const changed = [api, own].filter((pause) => pause !== pauses.get(pause.key));
    return { verdict, limitedUntil: api.limitedUntil, pauses, changed };
  }

  private verdictOf(pauses: Pauses, { operation, refused }: JudgedCall, ending: Ending, now: Date): Verdict {
    const pause = pauses.get(operation) as Pause;
    const rule = this.contract.operations[operation];
    const facts = factsOf(operation);
    const isBuiltIn = rule.path === facts.path && rule.method === facts.method;
    const base = urlDigest(this.env.PLATFORM_BASE_URL);
    const isProven = keysOf(apiOf(operation)).some((key) => {
      const { succeededBase, succeededAt } = pauses.get(key) as Pause;
      return succeededBase === base && succeededAt !== null && now.getTime() - succeededAt.getTime() < PROOF_MS;
    });
    const hasSucceeded = pause.succeededUrl === operationUrl(this.contract, this.env.PLATFORM_BASE_URL, operation);
    const isSame = refused?.operation === operation && refused.code === ending.status;
    return judge(ending, {
      namesSubject: facts.parameters.length > 0,
      addressWorks: hasSucceeded || (isBuiltIn && isProven),
      isBuiltIn,
      isRepeated: isSame && (refused.hasFailed || (pause.succeededAt !== null && pause.succeededAt > refused.at)),
    });
  }

  /** Counts successes and refusals of an operation. */
  private counted(pause: Pause, operation: OperationName, verdict: Verdict, now: Date): Pause {
    if (verdict === 'refused') return { ...pause, refusals: pause.refusals + 1 };
    if (verdict !== 'ok') return pause;
    const base = this.env.PLATFORM_BASE_URL;
    const succeededUrl = operationUrl(this.contract, base, operation);
    const isRecent = pause.succeededAt !== null && now.getTime() - pause.succeededAt.getTime() < STEP_MS;
    if (isRecent && pause.succeededUrl === succeededUrl && pause.refusals === 0) return pause;
    return { ...pause, succeededAt: now, succeededUrl, succeededBase: urlDigest(base), refusals: 0 };
  }
}
