import type { Note } from '../../src/platform/contract/session-answer.js';
import type { SimulatedSession } from './session.js';

/** Three shapes of a document; a template id always has the same one. */
const SHAPES: readonly (readonly (readonly [category: string, categoryName: string])[])[] = [
  [
    ['ClientPresentation', 'Client presentation'],
    ['TherapeuticIntervention', 'Therapeutic interventions'],
    ['Plan', 'Plan'],
  ],
  [
    ['Subjective', 'Subjective'],
    ['Objective', 'Objective'],
    ['Assessment', 'Assessment'],
    ['Plan', 'Plan'],
  ],
  [
    ['Data', 'Data'],
    ['Assessment', 'Assessment'],
    ['Plan', 'Plan'],
  ],
];

const STATEMENTS = [
  'The client described a tight chest after a deadline was moved, and stepped outside until it eased.',
  'A paced breathing exercise was used independently and reviewed in session.',
  'The thought of letting others down was weighed against the evidence.',
  'The client keeps a daily record of one such moment and brings it to the next session.',
];

/** How much of the provider's text a note quotes, in characters. */
const QUOTE_LENGTH = 120;

/**
 * The notes of one template. The text differs in each generation, as if a model wrote it, and contains the number of the
 * generation. It also shows the plan, the text and the speaker mapping that were used.
 */
export function notesFor(session: SimulatedSession, templateId: string): Note[] {
  const shape = SHAPES[Number.parseInt(templateId.slice(0, 4), 16) % SHAPES.length] ?? [];
  return shape.flatMap(([category, categoryName], index) => [
    {
      category,
      categoryName,
      text: `${STATEMENTS[(index + session.generation) % STATEMENTS.length]} (Generation ${session.generation}.)`,
      formatting: { nestingLevel: 0 },
    },
    ...marksOf(session, category).map((text) => ({
      category,
      categoryName,
      text,
      formatting: { nestingLevel: 1 },
    })),
  ]);
}

function marksOf(session: SimulatedSession, category: string): string[] {
  if (category === 'Plan') {
    const heading = session.externalTreatmentPlan?.trim().split('\n')[0];
    return [heading ? `In line with the treatment plan: ${heading}` : 'No treatment plan was given.'];
  }
  if (category === 'Assessment') return ['No risk to self or others was voiced.'];
  if (session.input.kind === 'text') return [`From the provider's notes: ${session.input.text.slice(0, QUOTE_LENGTH)}`];
  return [`Speakers: ${Object.keys(session.speakerMapping).sort().join(', ') || 'not mapped'}.`];
}
