import type { Schemas } from '../../api/client.js';
import { DataTable, Section } from '../../parts/layout.js';
import { State } from '../../parts/state.js';
import { Moment, number } from '../../parts/values.js';

type Call = Schemas['TracedCallResponse'];

/** The calls for a person, newest first. */
export function CallHistory({ calls }: { calls: readonly Call[] }) {
  return (
    <Section title="Calls to the platform">
      {calls.length === 0 ? (
        <p className="quiet">
          There are no calls for this person. Calls are removed after the days of CALLS_RETENTION_DAYS.
        </p>
      ) : (
        <DataTable
          caption="Calls to the platform, newest first"
          rows={calls}
          keyOf={(call) => `${call.at} ${call.operation}`}
          columns={[
            ['When', ({ at }) => <Moment at={at} exact />],
            ['Operation', ({ operation }) => <code>{operation}</code>],
            ['Outcome', (call) => <Outcome call={call} />],
            ['Status', ({ status }) => status, 'number'],
            ['Duration', ({ durationMs }) => `${number(durationMs)} ms`, 'number'],
          ]}
        />
      )}
    </Section>
  );
}

function Outcome({ call: { outcome, status } }: { call: Call }) {
  const isGood = status !== null && status < 400;
  return <State tone={isGood ? 'good' : 'warn'}>{outcome}</State>;
}
