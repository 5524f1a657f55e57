import type { HealthReport } from '../../operations/health-checks.js';
import type { CapabilityPageResponse } from '../../operations/overview/capabilities.dto.js';
import type { OverviewResponse } from '../../operations/overview/overview.dto.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { commandOf, withCommands } from '../api/commands-of-routes.js';

/** The overview counts up to this number. */
const MAX_COUNT = 1_000;

type Waiting = NonNullable<OverviewResponse['waitsForPerson']>;

/** A dry run waits for a user without being a fault. */
const isFault = ({ kind }: Waiting[number]) => kind !== 'import-dry-run';

/** Everything that `notebridge status` shows. */
export interface Status {
  health: HealthReport;
  capabilitiesOff: { name: string; missing: string[] }[];
  /** Null if the key may not read it, or PostgreSQL does not answer in time. */
  waiting: Waiting | null;
}

/** Reads the status from the service. @throws {CliFault} if it is unreachable or rejects the key */
export async function readStatus(api: Api): Promise<Status> {
  const health = (await (await api.send('GET', '/health/ready', undefined, { also: 503 })).json()) as HealthReport;
  const { items } = await api.get<CapabilityPageResponse>('/v1/capabilities');
  const capabilitiesOff = items.flatMap(({ name, on, missing }) => (on ? [] : { name, missing }));
  return { health, capabilitiesOff, waiting: await readWaiting(api) };
}

/** Reads only counts, because the audit log records a list of people as shown to the key. */
async function readWaiting(api: Api): Promise<Waiting | null> {
  try {
    return (await api.get<OverviewResponse>('/v1/overview')).waitsForPerson;
  } catch (error) {
    if (error instanceof CliFault && error.answer?.status === 403) return null;
    throw error;
  }
}

/** 0 if the service is healthy, 2 if something needs a user's attention, 1 if requests are not accepted. */
export function exitCodeOf({ health, waiting }: Status): 0 | 1 | 2 {
  if (health.status === 'down' || health.status === 'stopping') return 1;
  return health.status === 'degraded' || waiting?.some(isFault) ? 2 : 0;
}

/** A status in words. */
export function statusLines({ health, capabilitiesOff, waiting }: Status): string {
  const checks = Object.entries(health.checks);
  const ailing = checks.filter(([, { status }]) => status !== 'ok');
  return [
    `${health.status === 'ok' ? '✓' : '✗'} notebridge is ${health.status}: ${checks.length - ailing.length} of ${checks.length} parts are healthy`,
    ...ailing.map(
      ([name, { status, reason }]) => `  ✗ ${name} is ${status}: ${withCommands(reason ?? 'it does not say why')}`,
    ),
    capabilitiesOff.length === 0 ? '✓ every capability is on' : `– ${capabilitiesOff.length} capabilities are off`,
    ...capabilitiesOff.map(({ name, missing }) => `  – ${name}: set ${missing.join(', ')}`),
    ...waitingLines(waiting),
  ].join('\n');
}

function waitingLines(waiting: Waiting | null): string[] {
  if (!waiting) return ['– what waits for you is unknown: the key lacks the scope operations, or PostgreSQL is slow'];
  if (waiting.length === 0) return ['✓ nothing waits for you'];
  return [
    `${waiting.some(isFault) ? '✗' : '–'} waiting for you`,
    ...waiting.map((one) => {
      const { kind, count, list } = one;
      const command = commandOf(list) ?? 'status --json';
      const number = count > MAX_COUNT ? `${MAX_COUNT}+` : `${count}`;
      return `  ${isFault(one) ? '✗' : '–'} ${number.padStart(5)} ${kind}: npx notebridge ${command}`;
    }),
  ];
}
