import type { PersonKind, PersonState } from '../model/person.js';
import type { ResolveAction } from '../model/resolve-rule.js';

export class TracedProviderResponse {
  externalId!: string;
  /** Whether clients' lists can name it on the platform */
  mirrored!: boolean;
}

export class WantedResponse {
  /** False: to be deleted */
  present!: boolean;
  hasEmail!: boolean;
  /** Of a client; the first is the primary */
  providers!: TracedProviderResponse[];
}

export class UnsettledCreateResponse {
  hasEmail!: boolean;
  /** Before this moment looking proves nothing */
  lookUpAt!: Date;
}

export class KnownResponse {
  platformUserId!: string | null;
  /** A create that may have reached the platform and got no answer */
  unsettledCreate!: UnsettledCreateResponse | null;
  /** When the platform last said that the email is unknown to it */
  checkedAbsentAt!: Date | null;
  /** A client's list there, as last applied; ids of the platform */
  appliedProviders!: string[] | null;
  /** Whether this person may speak to the platform about its email; null: it has none */
  emailClaim!: 'held' | 'free' | 'taken' | null;
  /** Transient faults in a row */
  failures!: number;
}

export class NextStepResponse {
  /** A call, `claim`, or `none` */
  what!: string;
  why!: string;
  notBefore!: Date | null;
}

export class ResolveChoiceResponse {
  action!: ResolveAction;
  does!: string;
}

export class TracedCallResponse {
  at!: Date;
  operation!: string;
  lane!: string;
  status!: number | null;
  /** Null while it is under way */
  outcome!: string | null;
  durationMs!: number | null;
}

/** Why a person stands where it stands. */
export class TraceResponse {
  externalId!: string;
  kind!: PersonKind;
  state!: PersonState;
  wanted!: WantedResponse;
  known!: KnownResponse;
  nextStep!: NextStepResponse;
  /** How one that needs a review or has failed may be resolved */
  choices!: ResolveChoiceResponse[];
  /** At most a hundred calls, the newest first */
  history!: TracedCallResponse[];
}
