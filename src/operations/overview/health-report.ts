import type { Health, HealthPart, Reason } from '../../monitoring/health-indicator.js';
import { HEALTH_TEXTS, healthText, type ReasonCode } from '../../monitoring/health-texts.js';
import type { CodeOf } from '../../words/words.js';

/** The answer of a part. */
export interface Answer extends HealthPart {
  health: Health;
}

/** A fault of the service. Several parts may report it or follow from it. */
export interface Cause {
  code: ReasonCode;
  /** The part that reports it, the first of several. */
  part: string;
  status: 'degraded' | 'down';
  /** The fault, in a sentence. */
  cause: string;
  /** The action to take. */
  action: string;
  /** When it began, or else when this process first saw it. */
  since: Date;
  /** True if `since` is when it began. */
  hasKnownStart: boolean;
  /** The other parts that report it, or that cannot work because of it. */
  affects: string[];
}

/** The health of a part. */
export interface PartReport extends Pick<Health, 'status' | 'facts'> {
  /** The fault, and the action to take. */
  reason?: string;
  /** The part whose fault is the reason. */
  causedBy?: string;
}

/** The answer of `/health/ready`. */
export interface HealthReport {
  /** `down` and `stopping` mean: send no requests. */
  status: CodeOf<'healthState'>;
  causes: Cause[];
  checks: Record<string, PartReport>;
}

const CODES = Object.keys(HEALTH_TEXTS) as ReasonCode[];

/**
 * Groups what the parts report by cause: each once, with everything that follows from it. A part without a reason of its
 * own follows from the part that it needs and that fails. The service is down if a vital part is.
 *
 * @param sinceOf since when a cause is known, for a reason without a time
 */
export function reportOf(answers: readonly Answer[], sinceOf: (code: ReasonCode) => Date): HealthReport {
  const byName = new Map(answers.map((answer) => [answer.name, answer]));
  const rootOf = (name: string): Answer | undefined => {
    for (const need of byName.get(name)?.needs ?? []) {
      const needed = byName.get(need);
      const root = rootOf(need) ?? (needed?.health.status === 'ok' ? undefined : needed);
      if (root) return root;
    }
    return undefined;
  };
  const parts = answers.map((answer) => {
    const { vital, health } = answer;
    const root = rootOf(answer.name);
    const own = (health.reasons ?? []).filter(({ follows }) => !(follows && root));
    const isFollowing = root !== undefined && own.length === 0 && !(vital && health.status === 'ok');
    return { answer, own, root: isFollowing ? root : undefined };
  });

  const reporting = parts.flatMap(({ answer, own }) => own.map((reason) => ({ answer, reason })));
  const causes = CODES.flatMap((code) => {
    const [first, ...others] = reporting.filter(({ reason }) => reason.code === code);
    if (!first) return [];
    const reporters = [first, ...others].map(({ answer }) => answer);
    const followers = parts.filter(({ root }) => root && reporters.includes(root)).map(({ answer }) => answer);
    const affects = [...new Set([...reporters, ...followers].map(({ name }) => name))];
    const reasons = [first, ...others].map(({ reason }) => reason);
    const began = earliest(reasons.flatMap(({ since }) => since ?? []));
    const [cause, action] = healthText(
      code,
      reasons.map(({ values = {} }) => values),
    );
    return {
      code,
      part: first.answer.name,
      status: reporters.some(({ health }) => health.status === 'down') ? ('down' as const) : ('degraded' as const),
      cause,
      action,
      since: began ?? sinceOf(code),
      hasKnownStart: began !== undefined,
      affects: affects.filter((name) => name !== first.answer.name),
    };
  });
  // Stable, so that the order of the texts stays within each status.
  causes.sort((one, other) => Number(other.status === 'down') - Number(one.status === 'down'));

  const checks = Object.fromEntries(
    parts.map(({ answer: { name, health }, own, root }) => [name, partReport(name, health, own, root)]),
  );
  const isDown = answers.some(({ vital, health }) => vital && health.status === 'down');
  const isHealthy = Object.values(checks).every(({ status }) => status === 'ok');
  return { status: isDown ? 'down' : isHealthy ? 'ok' : 'degraded', causes, checks };

  function partReport(
    name: string,
    { status, facts }: Health,
    own: readonly Reason[],
    root: Answer | undefined,
  ): PartReport {
    const shown = facts && { facts };
    if (root) return { status: root.health.status, causedBy: root.name, ...shown };
    const told = own.flatMap(({ code }) => causes.find((cause) => cause.code === code) ?? []);
    const [first] = told;
    if (first && told.every(({ part }) => part !== name)) return { status, causedBy: first.part, ...shown };
    const reason = told.map(({ cause, action }) => `${cause} ${action}`).join(' ');
    return { status, ...(reason !== '' && { reason }), ...shown };
  }
}

function earliest(dates: readonly Date[]): Date | undefined {
  return dates.reduce<Date | undefined>((first, date) => (first && first <= date ? first : date), undefined);
}
