import type { Schemas } from '../../api/client.js';
import { Section } from '../../parts/layout.js';
import { State, StateOf } from '../../parts/state.js';

type Part = Schemas['PartResponse'];

/** The parts of the service: first the causes of bad health, then what follows from each, then what works. */
export function PartsCard({ parts, causes }: Pick<Schemas['OverviewResponse'], 'parts' | 'causes'>) {
  const rankOf = ({ name, status, causedBy }: Part) => {
    if (status === 'ok') return causes.length + 1;
    return causedBy ? causes.length : causes.findIndex(({ part }) => part === name);
  };
  const sorted = [...parts].sort((one, other) => rankOf(one) - rankOf(other));
  return (
    <Section card title="System health">
      <ul className="plain parts">
        {sorted.map(({ name, status, sentence }) => (
          <li key={name}>
            <StateOf of="healthState" state={status} />
            <code>{name}</code>
            <span>{sentence}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Capabilities that are off, with the settings that turn them on, and the names of the others. */
export function CapabilitiesCard({ capabilities }: { capabilities: readonly Schemas['CapabilityResponse'][] }) {
  const off = capabilities.filter(({ on }) => !on);
  const on = capabilities.filter((capability) => capability.on);
  return (
    <Section card title="Capabilities">
      <ul className="plain">
        {off.map(({ name, missing }) => (
          <li key={name}>
            <State tone="warn">off</State> <strong>{name}</strong>
            <div className="help">
              To turn it on, set <code>{missing.join(', ')}</code> and restart
            </div>
          </li>
        ))}
      </ul>
      {on.length > 0 && <p className="help">On: {on.map(({ name }) => name).join(', ')}.</p>}
    </Section>
  );
}
