import fc from 'fast-check';
import { propertyRuns } from '../config/property-runs.spec-support.js';
import { isoDateTime } from './iso-date-time.js';

it.each([
  ['2026-01-31T08:00', '2026-01-31T08:00:00'],
  ['2026-01-31T08:00:00', '2026-01-31T08:00:00'],
  ['2026-01-31T08:00:00Z', '2026-01-31T08:00:00Z'],
  ['2026-01-31T08:00:00.123456Z', '2026-01-31T08:00:00.123456Z'],
  ['2026-01-31T08:00:00,5Z', '2026-01-31T08:00:00.5Z'],
  ['2026-01-31T08:00:00+05:30', '2026-01-31T08:00:00+05:30'],
  ['2026-01-31T08:00:00-08', '2026-01-31T08:00:00-08:00'],
  ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59Z'],
  ['20260131T080000Z', '2026-01-31T08:00:00Z'],
  ['20260131T0800+0530', '2026-01-31T08:00:00+05:30'],
  ['2026-W05-6T08:00:00Z', '2026-01-31T08:00:00Z'],
  ['2026W056T080000Z', '2026-01-31T08:00:00Z'],
  ['2026-W01-1T08:00:00Z', '2025-12-29T08:00:00Z'],
  ['2020-W53-7T08:00:00Z', '2021-01-03T08:00:00Z'],
  ['0099-W01-1T08:00:00Z', '0098-12-29T08:00:00Z'],
])('reads %s as %s', (text, normalized) => {
  expect(isoDateTime(text)).toBe(normalized);
});

// A date without a time would be midnight in an unknown time zone.
it.each([
  '2026-01-31',
  '20260131',
  '2026-W05-6',
  '2026-W05',
  '2026-02-31T08:00:00Z',
  '20260231T080000Z',
  '2026-W00-1T08:00:00Z',
  '2025-W53-1T08:00:00Z',
  '2026-W05-0T08:00:00Z',
  '2026-W05-8T08:00:00Z',
  '9999-W52-7T08:00:00Z',
  '2026-0131T08:00:00Z',
  '2026W05-6T08:00:00Z',
  '2026-01-31T0800:00Z',
  '2026-031T08:00:00Z',
  'T',
  '',
  'now',
  '31.01.2026',
  '2026-1-31',
  '2026-13-01T08:00:00Z',
  '2026-00-10T08:00:00Z',
  '2025-02-29T08:00:00Z',
  '2026-01-31T24:00:00Z',
  '2026-01-31T08:60:00Z',
  '2026-01-31T08:00:60Z',
  '2026-01-31T08:00:00+99',
  '2026-01-31 08:00:00',
  '2026-01-31T08:00:00Z; DROP',
  1_767_225_600_000,
  null,
])('does not read %j', (text) => {
  expect(isoDateTime(text)).toBeUndefined();
});

const moments = fc.date({
  min: new Date('0001-01-01T00:00:00Z'),
  max: new Date('9999-12-31T00:00:00Z'),
  noInvalidDate: true,
});

/** Every accepted form of a moment; the week form is counted from the Thursday of the week. */
function formsOf(moment: Date): string[] {
  const [day = '', time = ''] = moment.toISOString().split('T');
  const weekday = moment.getUTCDay() || 7;
  const thursday = new Date(moment.getTime() + (4 - weekday) * 86_400_000);
  const year = thursday.toISOString().slice(0, 4);
  const newYear = Date.parse(`${year}-01-01T00:00:00Z`);
  const week = String(Math.floor((thursday.getTime() - newYear) / (7 * 86_400_000)) + 1).padStart(2, '0');
  const days = [day, day.replaceAll('-', ''), `${year}-W${week}-${weekday}`, `${year}W${week}${weekday}`];
  const times = [time, time.replace('.', ','), time.replaceAll(':', ''), time.replace('Z', '+00:00')];
  return days.flatMap((date) => times.map((ofDay) => `${date}T${ofDay}`));
}

it('reads every form of a moment as the same instant', () => {
  fc.assert(
    fc.property(moments, (moment) => {
      const read = formsOf(moment).map((form) => Date.parse(isoDateTime(form) ?? ''));
      expect(new Set(read)).toEqual(new Set([moment.getTime()]));
    }),
    propertyRuns(),
  );
});

const pieces = fc.constantFrom(...'2026-01-31T080000Z', '-W', ':', '.', ',', '+', '05', '-', '9999', '0000', '٣', '\n');

it('never throws, and reads any other text as itself or not at all', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
      ),
      (text) => {
        const normalized = isoDateTime(text);
        if (normalized !== undefined) expect(isoDateTime(normalized)).toBe(normalized);
      },
    ),
    propertyRuns(),
  );
});

it.each(['2'.repeat(1e6), `2026-01-31T08:00:00.${'1'.repeat(1e6)}`, `2026${'-'.repeat(1e6)}`])(
  'reads a megabyte of text in linear time',
  (text) => {
    expect(isoDateTime(text)).toBeUndefined();
  },
);
