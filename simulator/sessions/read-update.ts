import { isUuid, objectOf } from '../body-fields.js';
import { invalid } from '../refusal.js';
import { readPlan, requireTemplateIds } from './read-create.js';
import type { SimulatedInput, SimulatedSession } from './session.js';

/** The changes of an update, without fields that are missing, null or blank. */
export interface SessionChange {
  noteTemplateIds?: string[];
  externalTreatmentPlan?: string;
  speakerMapping?: Record<string, string>;
  text?: string;
}

/**
 * Reads an update (spec, Update an existing session, the applicability table as corrected there).
 *
 * @throws Refusal 400: an empty patch, a malformed value, or a field that this kind of session does not support
 */
export function readUpdate(body: unknown, kind: SimulatedInput['kind']): SessionChange {
  const fields = objectOf(body);
  const change: SessionChange = {
    noteTemplateIds: isBlankList(fields.noteTemplateIds) ? undefined : requireTemplateIds(fields),
    externalTreatmentPlan: readPlan(fields),
    speakerMapping: readSpeakerMapping(fields.speakerMapping),
    text: readText(fields.input),
  };
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalid('At least one of noteTemplateIds, externalTreatmentPlan, speakerMapping and input must be present.');
  }
  if (change.speakerMapping && kind === 'text')
    throw invalid('speakerMapping does not apply to a text-to-note session.');
  if (change.text !== undefined && kind === 'recording') throw invalid('input does not apply to a recording session.');
  return change;
}

/** True if a change regenerates notes. A plan does so only with AI notes. */
export function regenerates(change: SessionChange, aiNotes: boolean): boolean {
  return Boolean(
    change.noteTemplateIds || change.speakerMapping || change.text || (change.externalTreatmentPlan && aiNotes),
  );
}

/** @throws Refusal 400 if this session's notes cannot be regenerated (spec, Errors, 400) */
export function refuseRegeneration(session: SimulatedSession): void {
  if (session.state === 'Processing') throw invalid('The session is being processed.');
  if (session.state === 'Error') throw invalid('The processing of this session has failed.');
  if (session.transcriptDeleted) throw invalid('The transcript of this session has been deleted.');
  if (session.editedByHand) throw invalid('A note of this session was edited by hand.');
}

function isBlankList(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function readSpeakerMapping(value: unknown): Record<string, string> | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const mapping = objectOf(value, 'speakerMapping');
  if (!Object.values(mapping).every(isUuid)) throw invalid('speakerMapping must contain only user UUIDs.');
  return Object.keys(mapping).length === 0 ? undefined : (mapping as Record<string, string>);
}

function readText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const { text } = objectOf(value, 'input');
  if (text === null) return undefined;
  if (typeof text !== 'string') throw invalid('input.text is required and must be a string.');
  return text.trim() === '' ? undefined : text;
}
