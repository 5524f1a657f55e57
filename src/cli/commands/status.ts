import type { HealthReport } from '../../operations/health-checks.js';
import type { CapabilityPageResponse } from '../../operations/overview/capabilities.dto.js';
import type { OverviewResponse } from '../../operations/overview/overview.dto.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';

/** The overview counts no further. */
const MOST_COUNTED = 1_000;

/** The command that shows what stands at a path. */
const COMMANDS: Record<string, string> = {
  '/v1/providers': 'people --kind provider',
  '/v1/clients': 'people --kind client',
  '/v1/sessions': 'sessions',
  '/v1/compliance/jobs': 'compliance',
  '/v1/webhook-deliveries': 'deliveries',
  '/v1/imports': 'imports',
};

type Waiting = NonNullable<OverviewResponse['waitsForPerson']>;

/** What somebody asked for and may leave as it is: it waits, and nothing is wrong. */
const OPTIONAL = new Set(['import-dry-run']);
const isWrong = ({ kind }: Waiting[number]) => !OPTIONAL.has(kind);

/** How the service is, at a glance. */
export interface Status {
  health: HealthReport;
  capabilitiesOff: { name: string; missing: string[] }[];
  /** Null: the key may not see it, or PostgreSQL does not tell it in time. */
  waiting: Waiting | null;
}

/** Gathers what the service's own endpoints tell. @throws {CliFault} when it is not there, or does not know the key */
export async function readStatus(api: Api): Promise<Status> {
  const health = (await (await api.send('GET', '/health/ready', undefined, { also: 503 })).json()) as HealthReport;
  const { items } = await api.get<CapabilityPageResponse>('/v1/capabilities');
  const capabilitiesOff = items.flatMap(({ name, on, missing }) => (on ? [] : { name, missing }));
  return { health, capabilitiesOff, waiting: await readWaiting(api) };
}

/** Counts alone: lists of people would be on record as shown to the key. */
async function readWaiting(api: Api): Promise<Waiting | null> {
  try {
    return (await api.get<OverviewResponse>('/v1/overview')).waitsForPerson;
  } catch (error) {
    if (error instanceof CliFault && error.status === 403) return null;
    throw error;
  }
}

/** 0: all is well; 2: something needs somebody; 1: requests are not taken. */
export function exitCodeOf({ health, waiting }: Status): 0 | 1 | 2 {
  if (health.status === 'down' || health.status === 'stopping') return 1;
  return health.status === 'degraded' || waiting?.some(isWrong) ? 2 : 0;
}

/** A status in words. */
export function statusLines({ health, capabilitiesOff, waiting }: Status): string {
  const checks = Object.entries(health.checks);
  const ailing = checks.filter(([, { status }]) => status !== 'ok');
  return [
    `${health.status === 'ok' ? '✓' : '✗'} notebridge is ${health.status}: ${checks.length - ailing.length} of ${checks.length} parts are well`,
    ...ailing.map(([name, { status, reason }]) => `  ✗ ${name} is ${status}: ${reason ?? 'it does not say why'}`),
    capabilitiesOff.length === 0 ? '✓ every capability is on' : `– ${capabilitiesOff.length} capabilities are off`,
    ...capabilitiesOff.map(({ name, missing }) => `  – ${name}: set ${missing.join(', ')}`),
    ...waitingLines(waiting),
  ].join('\n');
}

function waitingLines(waiting: Waiting | null): string[] {
  if (!waiting) return ['– what waits for you is not known: the key lacks the scope operations, or PostgreSQL is late'];
  if (waiting.length === 0) return ['✓ nothing waits for you'];
  return [
    `${waiting.some(isWrong) ? '✗' : '–'} waiting for you`,
    ...waiting.map((one) => {
      const { kind, count, list } = one;
      const [path = '', query] = list.split('?');
      const state = new URLSearchParams(query).get('state');
      const command = `${COMMANDS[path] ?? 'status --json'}${state === null ? '' : ` --state ${state}`}`;
      const number = count > MOST_COUNTED ? `${MOST_COUNTED}+` : `${count}`;
      return `  ${isWrong(one) ? '✗' : '–'} ${number.padStart(5)} ${kind}: npx notebridge ${command}`;
    }),
  ];
}
