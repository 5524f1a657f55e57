import type { Health } from '../http/server/health-indicator.js';

/** What `/health/ready` answers. */
export interface HealthReport {
  /** `down` and `stopping` mean: send no requests. */
  status: 'ok' | 'degraded' | 'down' | 'stopping';
  checks: Record<string, Health>;
}

/** What one part answered. */
export interface HealthAnswer {
  name: string;
  vital: boolean;
  health: Health;
}

/** The service is down when a vital part is, degraded when anything else is not well. */
export function reportOf(answers: readonly HealthAnswer[]): HealthReport {
  const isDown = answers.some(({ vital, health }) => vital && health.status === 'down');
  const isWell = answers.every(({ health }) => health.status === 'ok');
  return {
    status: isDown ? 'down' : isWell ? 'ok' : 'degraded',
    checks: Object.fromEntries(answers.map(({ name, health }) => [name, health])),
  };
}
