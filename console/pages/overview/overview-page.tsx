import { useQuery } from '@tanstack/react-query';
import { useHealth } from '../../api/health.js';
import { OVERVIEW } from '../../api/live.js';
import { wordOf } from '../../api/words.js';
import { Head } from '../../parts/layout.js';
import { Loaded } from '../../parts/read.js';
import { StateOf } from '../../parts/state.js';
import { CallsCard } from './calls-card.js';
import { CapabilitiesCard, PartsCard } from './health-cards.js';
import { SendingCard } from './sending-card.js';
import { WaitingCard } from './waiting-card.js';
import { InboxCard, NotesCard, OldestWorkCard } from './work-cards.js';

/** The state of the service at a glance. `api/live.ts` keeps it up to date. */
export default function OverviewPage() {
  const health = useHealth().data;
  // Without the database the overview cannot be read, so its last figures would look healthy.
  if (health?.causes.some(({ status }) => status === 'down')) {
    return (
      <>
        <Head title="Overview" />
        <Status status={health.status} />
      </>
    );
  }
  return <Figures />;
}

function Status({ status }: { status: string }) {
  return (
    <p className="lead">
      <StateOf of="healthState" state={status} /> {wordOf('healthState', status)?.hint}
    </p>
  );
}

function Figures() {
  const query = useQuery(OVERVIEW);
  return (
    <>
      <Head title="Overview">{query.data && <span className="help">version {query.data.version}</span>}</Head>
      <Loaded query={query}>
        {(data) => (
          <>
            <Status status={data.status} />
            <WaitingCard decisions={data.decisions} />
            <CallsCard calls={data.calls} />
            <NotesCard lag={data.noteLag} />
            <div className="cards">
              <InboxCard inbox={data.inbox} />
              <OldestWorkCard work={data.oldestWork} />
              <CapabilitiesCard capabilities={data.capabilities} />
            </div>
            <SendingCard />
            <PartsCard parts={data.parts} causes={data.causes} />
          </>
        )}
      </Loaded>
    </>
  );
}
