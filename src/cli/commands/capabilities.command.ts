import type { Command } from 'commander';
import type { Capability } from '../../platform/contract/capabilities.js';
import type { Api, Page } from '../api/api.js';

/** `notebridge capabilities` */
export function addCapabilitiesCommand(program: Command, api: Api): void {
  program
    .command('capabilities')
    .description('say what the service can do, and which settings the rest lacks')
    .option('--json', 'print what the service answers')
    .action(async ({ json }: { json?: boolean }) => {
      const page = await api.get<Page<Capability>>('/v1/capabilities');
      console.log(json ? JSON.stringify(page, null, 2) : page.items.map(capabilityLine).join('\n'));
    });
}

/** One capability with what it lacks. */
export function capabilityLine({ name, on, missing }: Capability): string {
  return on ? `✓ ${name}` : `✗ ${name}: set ${missing.join(', ')}`;
}
