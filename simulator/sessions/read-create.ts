import { createHash } from 'node:crypto';
import {
  CLIENT_PRONOUNS,
  COUPLE_SESSION_TYPES,
  RECORDING_CONTENTS,
  SESSION_TYPES,
  TREATMENT_PLAN_MAX_LENGTH,
} from '../../src/platform/contract/wire-types.js';
import {
  type Fields,
  isChoice,
  isIsoDate,
  isUuid,
  objectOf,
  optionalChoice,
  optionalText,
  requiredText,
  requiredTexts,
} from '../body-fields.js';
import { invalid } from '../refusal.js';
import type { UserDirectory } from '../users/user-directory.js';
import type { NewSession, SimulatedInput } from './session.js';

/**
 * Reads a create request of either form (spec, Therapy session creation request).
 *
 * @param now the default date of the session
 * @throws Refusal 400 that names the field and the rule
 */
export function readCreate(body: unknown, users: UserDirectory, now: Date): NewSession {
  const fields = objectOf(body);
  const providerUserId = requiredText(fields, 'providerUserId');
  if (!users.findAs('HealthcareProvider', providerUserId)) {
    throw invalid('providerUserId must be the platform userId of a provider.');
  }
  const clientUserId = readClient(fields, users, providerUserId);
  const clientPronouns = optionalChoice(fields, 'clientPronouns', CLIENT_PRONOUNS);
  if (clientUserId !== undefined && clientPronouns !== undefined) {
    throw invalid('clientPronouns must not be sent together with clientUserId.');
  }
  const date = optionalText(fields, 'date');
  if (date !== undefined && !isIsoDate(date)) throw invalid('date must be an ISO 8601 date and time.');
  return {
    providerUserId,
    clientUserIds: clientUserId === undefined ? [] : [clientUserId],
    clientPronouns,
    noteTemplateIds: readTemplates(fields),
    input: readInput(fields),
    date: date ?? now.toISOString(),
    partnerAppointmentId: optionalText(fields, 'partnerAppointmentId'),
    externalTreatmentPlan: readPlan(fields),
  };
}

/** At least one template id, all of them UUIDs. @throws Refusal 400 */
export function requireTemplateIds(fields: Fields): string[] {
  const templateIds = requiredTexts(fields, 'noteTemplateIds');
  if (templateIds.length === 0) throw invalid('noteTemplateIds must name at least one template.');
  if (!templateIds.every(isUuid)) throw invalid('noteTemplateIds must contain only UUIDs.');
  return [...new Set(templateIds)];
}

/** A non-empty plan, or undefined. @throws Refusal 400 if it is too long (spec, Limits) */
export function readPlan(fields: Fields): string | undefined {
  const plan = optionalText(fields, 'externalTreatmentPlan');
  if (plan !== undefined && [...plan].length > TREATMENT_PLAN_MAX_LENGTH) {
    throw invalid(`externalTreatmentPlan must not be longer than ${TREATMENT_PLAN_MAX_LENGTH} characters.`);
  }
  return plan?.trim() ? plan : undefined;
}

function readClient(fields: Fields, users: UserDirectory, providerUserId: string): string | undefined {
  const clientUserId = optionalText(fields, 'clientUserId');
  if (clientUserId === undefined) return undefined;
  const client = users.findAs('Client', clientUserId);
  if (!client) throw invalid('clientUserId must be the platform userId of a client.');
  if (!client.providerUserIds.includes(providerUserId)) throw invalid('The provider has no access to this client.');
  return clientUserId;
}

/** Exactly one of form A (sessionType) and form B (noteTemplateIds). */
function readTemplates(fields: Fields): string[] {
  const sessionType = optionalChoice(fields, 'sessionType', SESSION_TYPES);
  const byTemplates = fields.noteTemplateIds !== undefined && fields.noteTemplateIds !== null;
  if (sessionType !== undefined && byTemplates) throw invalid('Send either sessionType or noteTemplateIds, not both.');
  if (byTemplates) return requireTemplateIds(fields);
  if (sessionType === undefined) throw invalid('Either sessionType or noteTemplateIds is required.');
  if (isChoice(sessionType, COUPLE_SESSION_TYPES)) throw invalid('Couple sessions are not yet supported.');
  return [templateOf(sessionType)];
}

/** The template for a session type: always the same UUID. */
export function templateOf(sessionType: (typeof SESSION_TYPES)[number]): string {
  const hex = createHash('sha256').update(sessionType).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Exactly one of recording and text. */
function readInput(fields: Fields): SimulatedInput {
  const input = objectOf(fields.input, 'input');
  const present = (name: string) => input[name] !== undefined && input[name] !== null;
  if (present('recording') === present('text')) throw invalid('input must contain either a recording or a text.');
  if (present('text')) return { kind: 'text', text: requiredText(objectOf(input.text, 'input.text'), 'text') };
  const recording = objectOf(input.recording, 'input.recording');
  const urls = requiredTexts(recording, 'recordingUrls');
  if (urls.length === 0) throw invalid('recordingUrls must name at least one file.');
  if (!urls.every((url) => URL.canParse(url))) throw invalid('recordingUrls must contain only URLs.');
  const content = optionalChoice(recording, 'recordingContent', RECORDING_CONTENTS);
  if (!content) throw invalid(`recordingContent is required: one of ${RECORDING_CONTENTS.join(', ')}.`);
  return { kind: 'recording', urls, content };
}
