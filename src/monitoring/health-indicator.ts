import { Reflector } from '@nestjs/core';
import type { ReasonCode } from './health-texts.js';

/** Why a part is not healthy. Reasons of several parts with the same code are one cause. */
export interface Reason {
  code: ReasonCode;
  /** Fill in the text. Nothing personal. */
  values?: Readonly<Record<string, string | number>>;
  /** When it began, if the part knows. */
  since?: Date;
  /** It may follow from the fault of a part that this one needs, such as work that is late. */
  follows?: boolean;
}

/** The health of a part of the service: `degraded` works with restrictions, `down` does not work. */
export interface Health {
  status: 'ok' | 'degraded' | 'down';
  /** The most important first; required unless `ok`. */
  reasons?: readonly Reason[];
  /** Relevant figures and words; nothing personal. */
  facts?: Record<string, string | number | boolean | null>;
}

/** The declaration of a part. */
export interface HealthPart {
  name: string;
  /** Requests are kept away while it is down. Its check does real work, so its `ok` holds even if other parts fail. */
  vital?: boolean;
  /** Parts that this one needs: if they fail, it cannot work, and its check may be wrong. */
  needs?: readonly string[];
}

/**
 * Marks a method, `() => Health | Promise<Health>`, that `/health/ready` asks by this name: `down` when it throws or
 * takes over two seconds.
 */
export const HealthIndicator = Reflector.createDecorator<HealthPart>();

/** @param reasons the most important first, or false for one that does not hold @param facts shown in any state */
export function healthOf(reasons: readonly (Reason | false | null | undefined)[], facts?: Health['facts']): Health {
  const holding = reasons.filter((reason) => !!reason);
  const shown = facts && { facts };
  return holding.length === 0 ? { status: 'ok', ...shown } : { status: 'degraded', reasons: holding, ...shown };
}

/** Maximum names in a sentence of health. */
const NAMED_MAX = 5;

/** The first of some names, and how many more there are. */
export function namesOf(names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  return names.slice(0, NAMED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
