import { api } from '../../api/client.js';
import { Section } from '../../parts/layout.js';
import { List } from '../../parts/read.js';
import { COLUMNS, keyOf } from './person.js';

/** Clients per request. */
const PAGE = 10;

/** The clients of a provider, by external id. */
export function ClientsOf({ provider }: { provider: string }) {
  return (
    <Section title="Clients">
      <List
        name={['people', 'clients-of', provider]}
        read={(cursor) => api.GET('/v1/clients', { params: { query: { provider, limit: PAGE, cursor } } })}
        empty="This provider has no clients."
        caption="Clients of this provider"
        keyOf={keyOf}
        columns={COLUMNS.filter(([title]) => title !== 'Kind')}
      />
    </Section>
  );
}
