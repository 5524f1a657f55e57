import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { HealthReport, PartReport } from '../../src/operations/overview/health-report.js';

/** Waits until a part has this health. On a stalled machine, a check without an answer counts as down. */
export const partIs = (
  service: Pick<Service, 'call'>,
  part: string,
  status: PartReport['status'],
): Promise<PartReport> =>
  until(`${part} is ${status}`, async () => {
    const health = (await service.call<HealthReport>('GET', '/health/ready')).body.checks[part];
    return health?.status === status ? health : undefined;
  });
