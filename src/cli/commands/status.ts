import { healthText } from '../../monitoring/health-texts.js';
import type { CapabilityPageResponse } from '../../operations/overview/capabilities.dto.js';
import type { Api } from '../api/api.js';
import { CliFault } from '../api/cli-fault.js';
import { withCommands } from '../api/commands-of-routes.js';
import { causeLines, type ServiceHealth } from '../output/causes.js';

/** Everything that `notebridge status` shows. */
export interface Status {
  health: ServiceHealth;
  /** Null while the service is down or cannot answer, which its health explains. */
  capabilitiesOff: { name: string; missing: string[] }[] | null;
}

/** Reads the status from the service. @throws {CliFault} if it is unreachable or rejects the key */
export async function readStatus(api: Api): Promise<Status> {
  const health = (await (await api.send('GET', '/health/ready', undefined, { also: 503 })).json()) as ServiceHealth;
  return { health, capabilitiesOff: health.status === 'down' ? null : await readCapabilitiesOff(api) };
}

async function readCapabilitiesOff(api: Api): Promise<Status['capabilitiesOff']> {
  try {
    const { items } = await api.get<CapabilityPageResponse>('/v1/capabilities');
    return items.flatMap(({ name, on, missing }) => (on ? [] : { name, missing }));
  } catch (error) {
    if (error instanceof CliFault && error.answer?.status === 503) return null;
    throw error;
  }
}

/** 0 if the service is healthy, 2 if something needs attention, 1 if requests are not accepted. */
export function exitCodeOf({ health: { status } }: Status): 0 | 1 | 2 {
  if (status === 'down' || status === 'stopping') return 1;
  return status === 'degraded' ? 2 : 0;
}

/** A status in words: each cause with what to do and what it affects. */
export function statusLines({ health, capabilitiesOff }: Status): string {
  const off = capabilitiesOff ?? [];
  return [
    `${health.status === 'ok' ? '✓' : '✗'} notebridge is ${health.status}`,
    ...causeLines(health).flatMap(([cause, ...more]) => [
      `  ✗ ${cause}`,
      ...more.map((line) => `    ${withCommands(line)}`),
    ]),
    ...optionalDecisions(health),
    ...(off.length > 0 ? [`– capabilities that are off: ${off.length}`] : []),
    ...off.map(({ name, missing }) => `  – ${name}: set ${missing.join(', ')}`),
  ].join('\n');
}

/** A dry run needs a decision but is not a fault. */
function optionalDecisions({ checks }: ServiceHealth): string[] {
  const count = Number(checks.decisions?.facts?.['import-dry-run'] ?? 0);
  return count === 0 ? [] : [`  – ${healthText('import-dry-run', [{ count }]).join(' ')}`];
}
