import { isMoment } from './moment.js';

it.each(['2026-01-31', '2024-02-29', '2026-01-31T08:00Z', '2026-01-31T08:00:00.5Z', '2026-01-31T08:00:00-03:30'])(
  '%s is a moment',
  (text) => {
    expect(isMoment(text)).toBe(true);
  },
);

it.each([
  '2026-02-31',
  '2025-02-29',
  '2026-04-31T08:00:00Z',
  '2026-13-01',
  '2026-01-31T08:00:00',
  '2026-01-31T24:00:00Z',
  '2026-01-31T08:00:00+99:00',
  'yesterday',
  '',
  1_767_225_600_000,
  null,
])('%j is none', (value) => {
  expect(isMoment(value)).toBe(false);
});
