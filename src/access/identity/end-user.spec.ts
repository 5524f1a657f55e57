import { endUserOf } from './end-user.js';

test('the EHR may name its user and the reason', () => {
  const headers = { 'notebridge-on-behalf-of': 'Practitioner/u-17', 'notebridge-purpose': 'TREAT' };
  expect(endUserOf(headers)).toEqual({ onBehalfOf: 'Practitioner/u-17', purpose: 'TREAT' });
  expect(endUserOf({})).toEqual({});
});

test.each(['', 'Jane Roe', 'jane@ehr.example', 'ü', 'a'.repeat(129), 'a,b', 'x\u0000'])('%j is no id', (value) => {
  expect(() => endUserOf({ 'notebridge-on-behalf-of': value })).toThrow(
    expect.objectContaining({ status: 400, type: 'bad-on-behalf-of' }),
  );
  expect(() => endUserOf({ 'notebridge-purpose': value })).toThrow(
    expect.objectContaining({ status: 400, type: 'bad-purpose' }),
  );
});
