import { shownAppointment } from '../model/session-row.js';
import { createRequest, inputKind } from './create-rules.js';
import type { CreateSessionRequest } from './create-session.dto.js';

const provider = { id: 'a', externalId: 'p-1', platformUserId: 'P1' };
const client = { id: 'b', externalId: 'c-1', platformUserId: 'C1' };
const text: CreateSessionRequest['input'] = { text: { text: 'What was said.' } };
const dto: CreateSessionRequest = {
  provider: 'p-1',
  noteTemplateIds: ['t-1'],
  input: text,
  partnerAppointmentId: 'visit-1',
};

it('sends people’s platform ids, never their EHR ids', () => {
  const body = createRequest({ ...dto, client: 'c-1' }, { provider, client }, 's-1');
  expect(body).toEqual({
    providerUserId: 'P1',
    clientUserId: 'C1',
    noteTemplateIds: ['t-1'],
    input: text,
    partnerAppointmentId: 'visit-1',
  });
});

it('form A sends the session type and no templates', () => {
  const { noteTemplateIds: _, ...rest } = dto;
  const body = createRequest({ ...rest, sessionType: 'Soap' }, { provider, client: null }, 's-1');
  expect(body).toMatchObject({ sessionType: 'Soap' });
  expect(body).not.toHaveProperty('noteTemplateIds');
});

it('keeps the order of recordings and omits null and blank fields', () => {
  const recording = {
    recordingUrls: ['https://b.example.org', 'https://a.example.org'],
    recordingContent: 'Recording',
  };
  const input = { recording, text: null } as CreateSessionRequest['input'];
  const blank = { clientPronouns: null, sessionType: null, date: null, externalTreatmentPlan: ' \n' };
  expect(createRequest({ ...dto, ...blank, input }, { provider, client: null }, 's-1')).toEqual({
    providerUserId: 'P1',
    noteTemplateIds: ['t-1'],
    input: { recording },
    partnerAppointmentId: 'visit-1',
  });
  expect([inputKind(input), inputKind(text)]).toEqual(['recording', 'text']);
});

it('sends pronouns, date and plan unchanged', () => {
  const given = {
    clientPronouns: 'FeminineHer',
    date: '2026-01-31T08:00:00+01:00',
    externalTreatmentPlan: ' # Goals\n',
  } as const;
  expect(createRequest({ ...dto, ...given }, { provider, client: null }, 's-1')).toMatchObject(given);
});

it.each(['20260131T080000+0100', '2026-W05-6T08:00:00+01:00'])('sends the date %s in the extended form', (date) => {
  expect(createRequest({ ...dto, date }, { provider, client: null }, 's-1').date).toBe('2026-01-31T08:00:00+01:00');
});

it('sends the EHR’s appointment id, or a generated one that is shown as absent', () => {
  const sentFor = (partnerAppointmentId: string | null) =>
    createRequest({ ...dto, partnerAppointmentId }, { provider, client: null }, 's-1').partnerAppointmentId;
  expect([sentFor('visit-1'), sentFor(null)]).toEqual(['visit-1', 'notebridge:s-1']);
  expect([shownAppointment('visit-1'), shownAppointment('notebridge:s-1')]).toEqual(['visit-1', null]);
  expect([shownAppointment(null), shownAppointment(undefined)]).toEqual([null, null]);
});
