/// <reference types="jest" />
import { clock, inWords, measuresOf, restOf } from './measures.js';

const figuresOf = (summary: unknown) =>
  measuresOf(summary).measures.map(({ title, columns, rows }) => ({
    title,
    columns: columns.map(({ label }) => label),
    rows: rows.map(({ user, figures }) => [user, ...columns.map(({ field }) => figures.get(field))]),
  }));

test('shows each measure by user, with a bar for parts of a whole only', () => {
  const summary = {
    talkingRatio: { u1: { ratio: 0.25, ratioLongTerm: 1.5, duration: 0.5 }, u2: { ratio: 0.75 } },
    speechCadence: { u1: { cadence: 131.256 } },
  };
  expect(figuresOf(summary)).toEqual([
    {
      title: 'Talking ratio',
      columns: ['Ratio', 'Ratio, long term', 'Duration'],
      rows: [
        ['u1', { text: '0.25', share: 0.25 }, { text: '1.5' }, { text: '0.5' }],
        ['u2', { text: '0.75', share: 0.75 }, { text: undefined }, { text: undefined }],
      ],
    },
    { title: 'Speech cadence', columns: ['Words per minute'], rows: [['u1', { text: '131.26' }]] },
  ]);
});

test('loses nothing that the specification does not show', () => {
  const summary = {
    laughter: { u1: { count: 3, kind: 'warm', at: [1, 2], on: false } },
    two: { u1: { speechRate: 1, speech_rate: 2 } },
    version: 7,
    byHour: [{ hour: 1 }],
    mixed: { u1: { count: 1 }, total: 4 },
  };
  expect(figuresOf(summary)).toEqual([
    {
      title: 'Laughter',
      columns: ['Count', 'Kind', 'At', 'On'],
      rows: [['u1', { text: '3' }, { text: 'warm' }, { text: '[1,2]' }, { text: 'false' }]],
    },
    { title: 'Two', columns: ['Speech rate', 'speech_rate'], rows: [['u1', { text: '1' }, { text: '2' }]] },
  ]);
  const { version, byHour, mixed } = summary;
  expect(measuresOf(summary).rest).toEqual({ version, byHour, mixed });
  expect([undefined, null].map(measuresOf)).toEqual(Array(2).fill({ measures: [], rest: {} }));
  expect([[1], 'text'].map((other) => measuresOf(other).rest)).toEqual([{ summary: [1] }, { summary: 'text' }]);
});

test('shows times in a recording, names in words, and unknown members', () => {
  expect([-1, 0, 65_900, 3_661_000].map(clock)).toEqual(['0:00', '0:00', '1:05', '1:01:01']);
  expect(['medical_condition', 'entityType', '', '_'].map(inWords)).toEqual([
    'Medical condition',
    'Entity type',
    '',
    '_',
  ]);
  expect(restOf({ headline: 'a', gist: 'b', mood: 'c', gone: null }, 'headline', 'gist')).toEqual({ mood: 'c' });
});
