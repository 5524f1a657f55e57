import type { operations } from '../../client/schema.js';
import type { Schemas } from '../api/client.js';
import { labelOf, type Vocabulary } from '../api/words.js';

export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'quiet';

/** A state as a word; the colour only repeats it. */
export function State({ tone = 'quiet', children }: { tone?: Tone | undefined; children: string }) {
  return (
    <span className="state" data-tone={tone}>
      {children}
    </span>
  );
}

type Tones<S extends string> = Readonly<Record<S, Tone>>;

/** The states of people. */
export const PERSON: Tones<Schemas['SyncResponse']['state']> = {
  pending: 'busy',
  waiting: 'busy',
  synced: 'good',
  failed: 'bad',
  'needs-review': 'warn',
  deleting: 'busy',
  deleted: 'quiet',
};

/** The states that the specification or notebridge names. The platform may have others. */
type SessionState = NonNullable<NonNullable<operations['Sessions.list']['parameters']['query']>['state']>;

export const SESSION: Tones<SessionState> = {
  Requested: 'busy',
  InProgress: 'busy',
  Processing: 'busy',
  Done: 'good',
  Error: 'bad',
  Rejected: 'bad',
  Unknown: 'warn',
};

const REQUEST: Tones<Schemas['TimelineRequestResponse']['state']> = {
  Requested: 'busy',
  Settled: 'good',
  Rejected: 'bad',
  Abandoned: 'bad',
};

export const DELIVERY: Tones<Schemas['DeliveryResponse']['state']> = {
  received: 'busy',
  processed: 'good',
  ignored: 'quiet',
  'not-understood': 'warn',
  failed: 'warn',
  dead: 'bad',
};

const SUBSCRIPTION: Tones<Schemas['SubscriptionResponse']['state']> = {
  active: 'good',
  retrying: 'warn',
  paused: 'bad',
  'cursor-expired': 'bad',
};

const IMPORT: Tones<Schemas['ImportResponse']['state']> = {
  staging: 'busy',
  'needs-mapping': 'warn',
  planned: 'warn',
  running: 'busy',
  paused: 'warn',
  completed: 'good',
  cancelled: 'quiet',
  failed: 'bad',
};

/** The states of compliance jobs. */
export const JOB: Tones<Schemas['ComplianceJobResponse']['state']> = {
  Uploading: 'busy',
  Submitting: 'busy',
  Submitted: 'busy',
  Completed: 'good',
  Failed: 'bad',
  Rejected: 'bad',
  Abandoned: 'quiet',
  Unknown: 'warn',
};

/** The states of the service and of its parts. */
const HEALTH: Tones<Schemas['OverviewResponse']['status']> = {
  ok: 'good',
  degraded: 'warn',
  down: 'bad',
  stopping: 'busy',
};

const TONES = {
  personState: PERSON,
  sessionState: SESSION,
  requestState: REQUEST,
  deliveryState: DELIVERY,
  subscriptionState: SUBSCRIPTION,
  importState: IMPORT,
  complianceState: JOB,
  healthState: HEALTH,
} satisfies Partial<Record<Vocabulary, Partial<Record<string, Tone>>>>;

/** A state in the words of the service. */
export function StateOf(props: { of: keyof typeof TONES; state: string }) {
  const tones: Partial<Record<string, Tone>> = TONES[props.of];
  return <State tone={tones[props.state]}>{labelOf(props.of, props.state)}</State>;
}

/** The words of a table, such as the states that a list can be asked for. */
export const wordsOf = <W extends string>(table: Readonly<Record<W, unknown>>): W[] => Object.keys(table) as W[];

/** The text as a word of a table, such as a state in the URL; undefined if it is none. */
export const wordIn = <W extends string>(
  table: Readonly<Record<W, unknown>>,
  text: string | undefined,
): W | undefined => wordsOf(table).find((word) => word === text);
