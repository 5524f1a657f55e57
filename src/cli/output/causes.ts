import { utc } from '../../monitoring/health-texts.js';
import type { HealthReport } from '../../operations/overview/health-report.js';

/** A report as it comes over HTTP. */
export type ServiceHealth = Pick<HealthReport, 'status' | 'checks'> & {
  causes: (Omit<HealthReport['causes'][number], 'since'> & { since: string })[];
};

/** The causes in the words of the service, each followed by what to do and what follows from it. */
export function causeLines({ causes }: ServiceHealth): [cause: string, ...more: string[]][] {
  return causes.map(({ cause, action, since, hasKnownStart, affects }) => [
    cause,
    `${action} ${hasKnownStart ? 'Since' : 'First seen'} ${utc(new Date(since))}.`,
    ...(affects.length > 0 ? [`Affected: ${affects.join(', ')}.`] : []),
  ]);
}
