import type { PersonKind, PersonState } from '../rules/person.js';
import type { ResolveAction } from '../rules/resolve-rule.js';

export class TracedProviderResponse {
  externalId!: string;
  /** True if clients' lists on the platform can name it */
  mirrored!: boolean;
}

export class WantedResponse {
  /** False if it must be deleted */
  present!: boolean;
  hasEmail!: boolean;
  /** Clients only; the first is the primary */
  providers!: TracedProviderResponse[];
}

export class UnsettledCreateResponse {
  hasEmail!: boolean;
  /** No lookup before this time, because the create may still take effect */
  lookUpAt!: Date;
}

export class KnownResponse {
  platformUserId!: string | null;
  /** Its other users on the platform, such as those of clients merged into it; they are deleted with the person */
  otherPlatformUserIds!: string[];
  /** A create that may have reached the platform, without an answer */
  unsettledCreate!: UnsettledCreateResponse | null;
  /** When the platform last reported the email as unknown */
  checkedAbsentAt!: Date | null;
  /** Platform ids of the providers in a client's list, as last applied */
  appliedProviders!: string[] | null;
  /** True if this person may use its email on the platform; null if it has none */
  emailClaim!: 'held' | 'free' | 'taken' | null;
  /** Consecutive transient faults */
  failures!: number;
}

export class NextStepResponse {
  /** A call, or `none` */
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
  status!: number | null;
  outcome!: string;
  durationMs!: number;
}

/** Explains the state of a person. */
export class TraceResponse {
  externalId!: string;
  kind!: PersonKind;
  state!: PersonState;
  wanted!: WantedResponse;
  known!: KnownResponse;
  nextStep!: NextStepResponse;
  /** The ways to resolve a person that needs a review or has failed */
  choices!: ResolveChoiceResponse[];
  /** At most 100 calls, newest first */
  history!: TracedCallResponse[];
}
