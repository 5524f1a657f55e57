import type { Contract } from './contract.js';
import { factsOf, type OperationName } from './operations.js';
import { notConfigured } from './platform-errors.js';

/** The settings outside the contract file that capabilities need. */
type CapabilityEnv = { PLATFORM_PARTNER_DOMAIN?: string | undefined };

/** The operations that each capability needs. */
export const CAPABILITY_OPERATIONS = {
  'user-mirroring': ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'],
  'session-create': ['createSession'],
  'session-read': ['getSession'],
  'processing-session-read': ['getProcessingSession'],
  'session-update': ['updateSession'],
  'note-templates-update': ['updateSessionTemplates'],
  'recording-upload': ['recordingUploadUrl'],
  'compliance-upload': ['complianceUploadUrl'],
  'compliance-submit': ['submitComplianceJob'],
  'compliance-result': ['getComplianceJob'],
  'compliance-polling': ['getComplianceJob'],
  recorder: ['initiateAuth'],
} as const satisfies Record<string, readonly OperationName[]>;

/** The operations of user management, which count towards the limit (spec, Limits). */
export const USER_OPERATIONS = CAPABILITY_OPERATIONS['user-mirroring'];

export type CapabilityName = keyof typeof CAPABILITY_OPERATIONS;
const CAPABILITY_NAMES = Object.keys(CAPABILITY_OPERATIONS) as CapabilityName[];

/**
 * Lists every capability with its missing settings, such as `PLATFORM_CONTRACT: operations.createSession.path`, and a hint
 * for an operation whose path the spec writes in two ways. Pure.
 */
export function capabilitiesOf(contract: Contract, env: CapabilityEnv) {
  return CAPABILITY_NAMES.map((name) => {
    const missing = missingFor(name, contract, env);
    return { name, on: missing.length === 0, missing, hint: hintFor(name, contract) };
  });
}

/** @throws {Problem} 501 `not-configured` with the missing settings of a capability, if any */
export function requireCapability(name: CapabilityName, contract: Contract, env: CapabilityEnv): void {
  const missing = missingFor(name, contract, env);
  if (missing.length > 0) throw notConfigured(missing);
}

function hintFor(name: CapabilityName, contract: Contract): string | null {
  const operation = CAPABILITY_OPERATIONS[name].find((each) => factsOf(each).otherPath);
  if (!operation) return null;
  const { path, otherPath } = factsOf(operation);
  const { method, path: used } = contract.operations[operation];
  const others = [path, otherPath].filter((each) => each !== used).join(' and ');
  return `${method} ${used} is called. The specification also writes ${others}: if the platform answers 404, set operations.${operation}.path in PLATFORM_CONTRACT.`;
}

function missingFor(name: CapabilityName, contract: Contract, env: CapabilityEnv): string[] {
  const settings = CAPABILITY_OPERATIONS[name].flatMap((operation) => contract.missingFor(operation));
  if (name === 'compliance-polling') {
    const { response, states } = contract.operations.getComplianceJob;
    if (response.state === undefined) settings.push('operations.getComplianceJob.response.state');
    if (!states) settings.push('operations.getComplianceJob.states');
  }
  const domain = name === 'recorder' && !env.PLATFORM_PARTNER_DOMAIN ? ['PLATFORM_PARTNER_DOMAIN'] : [];
  return [...new Set(settings.map((setting) => `PLATFORM_CONTRACT: ${setting}`)), ...domain];
}
