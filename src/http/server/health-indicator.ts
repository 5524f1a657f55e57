import { Reflector } from '@nestjs/core';

/** How a part of the service is: `degraded` works with restrictions, `down` does not work. */
export interface Health {
  status: 'ok' | 'degraded' | 'down';
  /** One sentence for an operator; required unless `ok`. */
  reason?: string;
  /** Numbers and words worth seeing; nothing personal. */
  facts?: Record<string, string | number | boolean | null>;
}

/**
 * Marks a method, `() => Health | Promise<Health>`, that `/health/ready` asks by this name: `down` when it throws or
 * takes over two seconds. Only a vital one that is down keeps requests away.
 */
export const HealthIndicator = Reflector.createDecorator<
  string | { name: string; vital: true },
  { name: string; vital: boolean }
>({ transform: (place) => (typeof place === 'string' ? { name: place, vital: false } : place) });

/** @param reasons for `degraded`, most important first, each with whether it holds */
export function healthOf(
  facts: NonNullable<Health['facts']>,
  reasons: Record<string, boolean | null | undefined>,
): Health {
  const [reason] = Object.keys(reasons).filter((sentence) => reasons[sentence]);
  return reason === undefined ? { status: 'ok', facts } : { status: 'degraded', reason, facts };
}
