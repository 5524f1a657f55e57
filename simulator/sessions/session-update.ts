import type { SimulatorState } from '../state.js';
import { refuseRegeneration, regenerates, type SessionChange } from './read-update.js';
import type { SimulatedSession } from './session.js';
import { beginRegeneration } from './session-run.js';

/**
 * Applies an update (spec, Update an existing session). Before processing it only changes what the first run will use;
 * without AI notes, it regenerates nothing.
 *
 * @throws Refusal 400 if the session's notes cannot be regenerated
 */
export function applyUpdate(state: SimulatorState, session: SimulatedSession, change: SessionChange): void {
  const regenerating = regenerates(change, session.aiNotes);
  if (regenerating) refuseRegeneration(session);
  const templateIds = [...new Set([...session.noteTemplateIds, ...(change.noteTemplateIds ?? [])])];
  session.noteTemplateIds = templateIds;
  session.externalTreatmentPlan = change.externalTreatmentPlan ?? session.externalTreatmentPlan;
  session.speakerMapping = { ...session.speakerMapping, ...change.speakerMapping };
  if (change.text !== undefined) session.input = { kind: 'text', text: change.text };
  if (session.state === 'InProgress') {
    session.wantedTemplateIds = templateIds;
    return;
  }
  if (!regenerating || !session.aiNotes) return;
  const contextChanged = change.speakerMapping || change.text !== undefined || change.externalTreatmentPlan;
  beginRegeneration(state, session, contextChanged ? templateIds : (change.noteTemplateIds ?? templateIds));
}
