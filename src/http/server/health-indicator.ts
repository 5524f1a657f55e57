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
 * Marks a method of a provider, `() => Health | Promise<Health>`, that `/health/ready` asks by this name. The service must
 * not be sent requests while a vital one is `down`; any other only degrades it. Whoever throws or takes longer than two
 * seconds is taken for `down`.
 */
export const HealthIndicator = Reflector.createDecorator<
  string | { name: string; vital: true },
  { name: string; vital: boolean }
>({ transform: (place) => (typeof place === 'string' ? { name: place, vital: false } : place) });
