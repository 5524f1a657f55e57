import type { CreateSessionRequest } from './create-session.dto.js';

export const EXAMPLE_TEMPLATE = '8bc81bb8-ff09-450a-8512-e7334b3fee7d';

/** Bodies of `POST /v1/sessions` as OpenAPI shows them: each can be sent, unlike one with every field. */
export const CREATE_EXAMPLES: Record<string, { summary: string; value: CreateSessionRequest }> = {
  text: {
    summary: "From a provider's text",
    value: {
      provider: 'p-1',
      client: 'c-1',
      noteTemplateIds: [EXAMPLE_TEMPLATE],
      input: { text: { text: 'Came with better sleep; went through the plan for the week.' } },
      date: '2026-01-31T08:00:00Z',
      partnerAppointmentId: 'visit-17',
      externalTreatmentPlan: '# Goals\n\nSleep through the night.',
    },
  },
  recording: {
    summary: 'From recordings, with pronouns in the place of a client',
    value: {
      provider: 'p-1',
      clientPronouns: 'NeutralThem',
      noteTemplateIds: [EXAMPLE_TEMPLATE],
      input: {
        recording: { recordingUrls: ['https://files.example.org/1.wav'], recordingContent: 'Recording' },
      },
    },
  },
  sessionType: {
    summary: 'By session type (work in progress at the platform)',
    value: { provider: 'p-1', client: 'c-1', sessionType: 'Soap', input: { text: { text: 'Slept better.' } } },
  },
};
