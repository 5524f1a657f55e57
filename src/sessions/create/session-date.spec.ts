import 'reflect-metadata';
import { isSessionDateTime } from './create-session.dto.js';

it.each([
  '2026-01-31T08:00',
  '2026-01-31T08:00:00',
  '2026-01-31T08:00:00Z',
  '2026-01-31T08:00:00.123456Z',
  '2026-01-31T08:00:00+05:30',
  '2026-01-31T08:00:00-08',
  '2024-02-29T23:59:59Z',
])('accepts %s as an ISO 8601 date with a time of day', (text) => {
  expect(isSessionDateTime(text)).toBe(true);
});

// A date without a time would be midnight in an unknown time zone.
it.each([
  '2026-01-31',
  '2026-02-31T08:00:00Z',
  'T',
  '',
  'now',
  '31.01.2026',
  '2026-1-31',
  '2026-13-01',
  '2026-00-10',
  '2025-02-29',
  '2026-01-31T24:00:00Z',
  '2026-01-31T08:60:00Z',
  '2026-01-31T08:00:60Z',
  '2026-01-31 08:00:00',
  '2026-01-31T08:00:00Z; DROP',
  1_767_225_600_000,
  null,
])('rejects %j', (text) => {
  expect(isSessionDateTime(text)).toBe(false);
});
