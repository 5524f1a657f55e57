import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { Health } from '../../src/http/server/health-indicator.js';
import type { HealthReport } from '../../src/operations/health-checks.js';

/** Waits until a part says that it is so: one that a stalled machine kept from its answer counts as down for that look. */
export const partIs = (service: Pick<Service, 'call'>, part: string, status: Health['status']): Promise<Health> =>
  until(`${part} is ${status}`, async () => {
    const health = (await service.call<HealthReport>('GET', '/health/ready')).body.checks[part];
    return health?.status === status ? health : undefined;
  });
