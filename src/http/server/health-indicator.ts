import { type CustomDecorator, SetMetadata } from '@nestjs/common';

/** How a part of the service is: `degraded` works with restrictions, `down` does not work. */
export interface Health {
  status: 'ok' | 'degraded' | 'down';
  /** One sentence for an operator; required unless `ok`. */
  reason?: string;
  /** Numbers and words worth seeing; nothing personal. */
  facts?: Record<string, string | number | boolean | null>;
}

/** Where an indicator stands in `/health/ready`. */
export interface IndicatorPlace {
  name: string;
  /** True when the service must not be sent requests while this is down; otherwise `down` only degrades it. */
  vital: boolean;
}

/** Metadata key of methods that report the health of their module. */
export const HEALTH_INDICATOR = Symbol('notebridge:health-indicator');

/**
 * Marks a method of a provider, `() => Health | Promise<Health>`, that `/health/ready` asks. Whoever throws or takes
 * longer than two seconds is taken for `down`.
 */
export function HealthIndicator(name: string, options: { vital?: boolean } = {}): CustomDecorator<symbol> {
  const place: IndicatorPlace = { name, vital: options.vital ?? false };
  return SetMetadata(HEALTH_INDICATOR, place);
}
