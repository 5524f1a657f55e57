import { RECORDER_VARIANTS, type RecorderVariant } from '../../src/platform/contract/wire-types.js';
import { isChoice } from '../body-fields.js';
import type { SimulatorState } from '../state.js';

/** The valid parameters of a recorder page. */
export interface Launch {
  variant: RecorderVariant;
  /** The client's userId. */
  contractId: string;
  providerUserId: string;
  redirectUrl?: string;
}

/**
 * Checks the recorder's query parameters (spec, Audio recorder web routes) without using up the token.
 *
 * @returns the launch, or a message for each fault, without values of parameters
 */
export function readLaunch(
  state: SimulatorState,
  query: Readonly<Record<string, unknown>>,
): Launch | { faults: string[] } {
  const { variant, contractId, sessionToken, redirectUrl } = query;
  const faults: string[] = [];
  if (!isChoice(variant, RECORDER_VARIANTS)) faults.push(`variant must be ${RECORDER_VARIANTS.join(' or ')}.`);
  const providerUserId = typeof sessionToken === 'string' ? state.recorderAccess.ownerOf(sessionToken) : undefined;
  if (providerUserId === undefined) {
    faults.push('sessionToken is missing, used or expired. Get a new one with initiate-auth.');
  }
  const client = typeof contractId === 'string' ? state.users.findAs('Client', contractId) : undefined;
  if (!client) faults.push('contractId must be the userId of a client.');
  if (client && providerUserId && !client.providerUserIds.includes(providerUserId)) {
    faults.push('The provider has no access to this client.');
  }
  if (redirectUrl !== undefined && !isFullUrl(redirectUrl)) faults.push('redirectUrl must be a fully formed URL.');
  if (faults.length > 0 || !client || !providerUserId || !isChoice(variant, RECORDER_VARIANTS)) return { faults };
  return {
    variant,
    contractId: client.userId,
    providerUserId,
    redirectUrl: typeof redirectUrl === 'string' ? redirectUrl : undefined,
  };
}

/** Only web pages: a script URL behind a button would run in the provider's browser. */
function isFullUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  return ['https:', 'http:'].includes(new URL(value).protocol);
}
