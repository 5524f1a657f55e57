import type { Schemas } from '../../api/client.js';
import { Section } from '../../parts/layout.js';
import { HEALTH, State } from '../../parts/state.js';

type Part = Schemas['PartResponse'];

/** The parts of the service, those that do not work first, one sentence each. */
export function PartsCard({ parts }: { parts: readonly Part[] }) {
  const isWell = ({ status }: Part) => status === 'ok';
  const sorted = [...parts.filter((part) => !isWell(part)), ...parts.filter(isWell)];
  return (
    <Section card title="What works, and what does not">
      <ul className="plain parts">
        {sorted.map(({ name, status, sentence }) => (
          <li key={name}>
            <State tone={HEALTH[status]}>{status}</State>
            <code>{name}</code>
            <span>{sentence}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Capabilities that are off with the settings that turn them on; those that are on by name alone. */
export function CapabilitiesCard({ capabilities }: { capabilities: readonly Schemas['CapabilityResponse'][] }) {
  const off = capabilities.filter(({ on }) => !on);
  const on = capabilities.filter((capability) => capability.on);
  return (
    <Section card title="Capabilities">
      {off.length === 0 && <p>All are on.</p>}
      <ul className="plain">
        {off.map(({ name, missing }) => (
          <li key={name}>
            <State tone="warn">off</State> <strong>{name}</strong>
            <div className="help">
              Set <code>{missing.join(', ')}</code>
            </div>
          </li>
        ))}
      </ul>
      {on.length > 0 && <p className="help">On: {on.map(({ name }) => name).join(', ')}.</p>}
    </Section>
  );
}
