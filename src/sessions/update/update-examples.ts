import { EXAMPLE_TEMPLATE } from '../create/create-examples.js';
import type { UpdateSessionRequest } from './update-session.dto.js';

/** Bodies of `PATCH /v1/sessions/{id}`. */
export const UPDATE_EXAMPLES: Record<string, { summary: string; value: UpdateSessionRequest }> = {
  text: {
    summary: 'Of a session from a text',
    value: { input: { text: 'Slept better, and went for walks.' }, noteTemplateIds: [EXAMPLE_TEMPLATE] },
  },
  recording: {
    summary: 'Of a session from recordings',
    value: {
      speakerMapping: { A: '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b' },
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
};
